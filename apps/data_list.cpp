// tapedeck data list: which data sets there are.
#include <fmt/format.h>

#include <iostream>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/record.h"
#include "data/catalog.h"

namespace tapedeck {

int run_data_list(const Config& config) {
  if (config.json) {
    Json sets = Json::array();
    for (const DataKind& e : data_kinds())
      sets.push_back({{"name", e.name}, {"what", e.what}, {"size", e.size}, {"origin", e.origin}});
    std::cout << json_text({{"format_version", kFormatVersion}, {"data", sets}}) << "\n";
    return exit_done;
  }
  for (const DataKind& e : data_kinds())
    std::cout << fmt::format("{:<8} {}\n{:<8} {}\n{:<8} {}\n", e.name, e.what, "", e.size, "", e.origin);
  return exit_done;
}

}  // namespace tapedeck
