// The cells of a sweep as runs of `tapedeck train`, each in a folder of its own below the sweep's. A cell's folder
// bears its name and a hash of every option that its result depends on, so that it is found again, whoever ran it, and
// never taken for another. cell.json in it tells when it began and whether others ran beside it.
#pragma once
#include <filesystem>

#include "apps/problem.h"
#include "apps/sweep/sweep_state.h"

namespace tapedeck {

class TrainCells {
 public:
  // `sweep`: the configuration of the sweep, its device named. Keeps the references.
  TrainCells(const Config& sweep, const Problem& problem, Device device, std::filesystem::path folder);

  // The words of `tapedeck train` that are the cell; the result is the same.
  std::vector<std::string> command(const Cell& cell, const std::optional<Targets>& targets) const;

  // What an ended cell came to, also where it failed; none where it has not run, or not to its end.
  std::optional<CellResult> there(const Cell& cell, const std::optional<Targets>& targets) const;

  // Runs it, or goes on with it; none where it was interrupted. A failure is a result, and is written down as
  // failure.json. Throws Busy where another process is at it, and Error where not even a failure can be written down.
  std::optional<CellResult> run(const Cell& cell, const std::optional<Targets>& targets) const;

  std::filesystem::path path(const Cell& cell, const std::optional<Targets>& targets) const;

 private:
  std::vector<Setting> settings(const Cell& cell, const std::optional<Targets>& targets) const;
  Config config(const Cell& cell, const std::optional<Targets>& targets) const;  // of train, with its folder

  const Config& sweep_;
  const Problem& problem_;
  const Device device_;
  const std::filesystem::path folder_;
};

// What a run folder says of a run that has ended. Throws Error where its files are damaged.
std::optional<CellResult> read_result(const std::filesystem::path& run);

}  // namespace tapedeck
