// What the tests of sweeps share: one with nothing to find out, and the cells in its folder.
#pragma once
#include "tests/runs.h"

namespace tapedeck::test {

// Nothing is to be found out: 4 sizes with 3 seeds, 12 cells.
inline const Words plain_sweep = {"sweep",         "--data",  "blobs", "--hidden", "8",    "--batches",
                                  "32,64,128,256", "--seeds", "3",     "--rates",  "0.02", "--targets",
                                  "loss=0.25",     "--steps", "300",   "--again",  "off",  "--quiet"};

// Fixed horizons for two targets, and the middle size once more.
inline const Words horizon_sweep = {
    "sweep",   "--data",    "blobs",     "--hidden", "8", "--batches", "64,256,1024",
    "--seeds", "3",         "--horizon", "--epochs", "3", "--targets", "loss=0.25,loss=0.4",
    "--rates", "0.01,0.03", "--quiet"};

inline std::vector<std::filesystem::path> cells(const std::string& sweep) {
  std::vector<std::filesystem::path> out;
  if (std::filesystem::exists(sweep + "/cells"))
    for (const auto& entry : std::filesystem::directory_iterator(sweep + "/cells")) out.push_back(entry.path());
  return out;
}

inline std::map<std::string, std::filesystem::file_time_type> ended(const std::string& sweep) {
  std::map<std::string, std::filesystem::file_time_type> out;
  for (const std::filesystem::path& cell : cells(sweep))
    if (std::filesystem::exists(cell / "summary.json"))
      out[cell.filename()] = std::filesystem::last_write_time(cell / "summary.json");
  return out;
}

}  // namespace tapedeck::test
