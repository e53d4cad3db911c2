// Which algorithm was the fastest for each product, remembered in a file between runs, so that it is timed once and
// runs give the same bits. The file:
//   tapedeck gemm choices 1
//   33x65x17 NN f32>f32 exact bias_gelu+aux aligned 256 256 256 256 256 workspace 33554432: 0a3f…  (64 bytes in hex)
//   …
#pragma once
#include <cublasLt.h>

#include <filesystem>
#include <map>
#include <string>

namespace tapedeck {

class CublasLtChoices {
 public:
  // Reads the file if there is one. One that it does not understand counts as empty, with a note on stderr.
  explicit CublasLtChoices(std::filesystem::path file);

  const cublasLtMatmulAlgo_t* find(const std::string& key) const;  // null: never chosen
  // Writes the file anew under another name and renames it, with what other processes added meanwhile. A folder that
  // cannot be written is a note on stderr, once: the choice then holds for this process.
  void remember(const std::string& key, const cublasLtMatmulAlgo_t& algorithm);
  void forget(const std::string& key) { choices_.erase(key); }

 private:
  void write();  // ours, and of the others those that we have not
  const std::filesystem::path file_;
  std::map<std::string, cublasLtMatmulAlgo_t> choices_;
  bool noted_ = false;
};

}  // namespace tapedeck
