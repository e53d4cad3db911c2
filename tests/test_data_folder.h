// Files for the tests: real data sets where a machine has them, and throw-away folders.
#pragma once
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/this_build.h"

// The path of a file such as "mnist/train-images-idx3-ubyte.gz" in $TAPEDECK_TEST_DATA, or in shared/data beside the
// project. Where it is absent, prints the line that makes ctest list the case as skipped; the case then returns:
//   const auto path = test_data("digits/digits.csv.gz");
//   if (!path) return;
inline std::optional<std::string> test_data(const std::string& file) {
  const char* chosen = std::getenv("TAPEDECK_TEST_DATA");
  const std::filesystem::path folder = chosen ? chosen : tapedeck::test::source_dir() + "/../shared/data";
  if (std::filesystem::exists(folder / file)) return (folder / file).string();
  std::cout << "skipped: no " << file << " in " << folder.string() << "; TAPEDECK_TEST_DATA names another folder\n";
  return std::nullopt;
}

// A new empty folder, gone at the end of the scope.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    path_ = (std::filesystem::temp_directory_path() / "tapedeck-test-XXXXXX").string();
    if (!mkdtemp(path_.data())) throw std::runtime_error("no folder for temporary files: " + path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

  // Writes a file and returns its path.
  std::string write(std::string_view name, const std::vector<uint8_t>& bytes) const {
    std::ofstream file(*this / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!file.flush()) throw std::runtime_error("cannot write " + *this / name);
    return *this / name;
  }

 private:
  std::string path_;
};
