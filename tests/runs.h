// What the tests of stopped, killed and resumed runs share: command lines and the contents of folders.
#pragma once
#include <filesystem>
#include <fstream>
#include <map>

#include "tests/program.h"
#include "tests/test_data_folder.h"

namespace tapedeck::test {

using Words = std::vector<std::string>;
constexpr auto run_tapedeck = tapedeck::test::tapedeck;

inline Words operator+(Words words, const Words& more) {
  return words.insert(words.end(), more.begin(), more.end()), words;
}

// A run of a moment, with a checkpoint every ten steps.
inline const Words small = {"train", "--data",       "blobs", "--hidden", "8", "--checkpoint-every",
                            "10",    "--eval-every", "25",    "--quiet"};

// Every file of a folder with its bytes.
inline std::map<std::string, std::string> contents(const std::string& folder) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) all[entry.path().string()] = read_file(entry.path().string());
  return all;
}

}  // namespace tapedeck::test
