// tapedeck fit FILE.csv: the scaling law of runs made elsewhere. What the file holds: scaling_runs.h; what is said of
// it: scaling_report.h.
#include <filesystem>
#include <iostream>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/pages/page_file.h"
#include "apps/pages/sweep_page.h"
#include "apps/record.h"
#include "apps/scaling_report.h"
#include "engine/check.h"

namespace tapedeck {

int run_fit(const Config& config) {
  if (!config.out.empty()) check_page_file(config.out, config.force);
  if (!config.out.empty() &&
      std::filesystem::weakly_canonical(config.out) == std::filesystem::weakly_canonical(config.file))
    throw UsageError("--out " + config.out + ": is the file of runs itself; choose another");
  const ScalingRuns data = read_scaling_runs(config.file);
  const ScalingFit fit = fit_runs(data, static_cast<uint64_t>(config.seed), config.file);
  const Json document = {
      {"format_version", kFormatVersion}, {"command", "fit"}, {"file", config.file}, {"fit", fit_json(fit)}};
  if (config.json)
    std::cout << json_text(document) << "\n";
  else
    std::cout << config.file << ": " << fit_text(fit);
  if (config.out.empty()) return exit_done;
  write_file(config.out, fit_page(document));
  if (!config.json) std::cout << "wrote " << config.out << "\n";
  return exit_done;
}

}  // namespace tapedeck
