#include "apps/pages/sweep_page.h"

#include "apps/pages/html.h"
#include "apps/pages/run_page.h"

namespace tapedeck {

std::string sweep_page(const Json& summary, const Json& machine) {
  std::string body = heading(1, "Sweep");
  if (summary.contains("sentence") && summary["sentence"].is_string())
    body += paragraph(summary["sentence"].get<std::string>(), "lead");
  return html_page("Sweep", body + machine_html(machine) + footer());
}

}  // namespace tapedeck
