// tapedeck fit FILE.csv: the scaling law of runs made elsewhere. What the file holds: scaling_runs.h; what is said of
// it: scaling_report.h.
#include <iostream>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/record.h"
#include "apps/scaling_report.h"

namespace tapedeck {

int run_fit(const Config& config) {
  const ScalingRuns data = read_scaling_runs(config.file);
  const ScalingFit fit = fit_runs(data, static_cast<uint64_t>(config.seed), config.file);
  if (config.json)
    std::cout << json_text({{"format_version", kFormatVersion},
                            {"command", "fit"},
                            {"file", config.file},
                            {"fit", fit_json(fit)}})
              << "\n";
  else
    std::cout << config.file << ": " << fit_text(fit);
  return exit_done;
}

}  // namespace tapedeck
