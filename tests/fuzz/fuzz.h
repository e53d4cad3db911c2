// What the fuzzed readers share. A harness gives its seeds and LLVMFuzzerTestOneInput; `make fuzz` runs it.
// [llvm.org/docs/LibFuzzer.html]
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "engine/check.h"

// A file in memory, for readers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : descriptor_(memfd_create("fuzz", 0)) {
    if (descriptor_ < 0 || write(descriptor_, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
      throw std::runtime_error("no file in memory");
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// Ends the process, which the fuzzer reports with the input.
[[noreturn]] inline void broken(std::string_view promise, std::string_view what = "") {
  std::cerr << "broken promise: " << promise << ": " << what << std::endl;
  std::abort();
}
inline void promise(bool kept, std::string_view what) {
  if (!kept) broken(what);
}

// Whether a text holds a part. Compared by hand and out of the fuzzer's sight, which would put the part into its
// inputs.
__attribute__((no_sanitize("coverage"))) inline bool holds(std::string_view text, std::string_view part) {
  for (size_t i = 0; i + part.size() <= text.size(); ++i) {
    size_t same = 0;
    while (same < part.size() && text.data()[i + same] == part.data()[same]) ++same;
    if (same == part.size()) return true;
  }
  return false;
}

// Calls a reader. It may refuse, in a sentence; true when it took the input. Any other exception ends the process.
template <class F>
bool accepts(const F& read) {
  try {
    read();
    return true;
  } catch (const tapedeck::OutOfMemory& e) {
    broken("a small file needs little memory", e.what());
  } catch (const tapedeck::Error& e) {
    const std::string_view message = e.what();
    if (holds(message, "json.exception") || holds(message, "does not fit its values"))
      broken("messages are in our words", message);
    for (const char c : message)
      if (c >= 0 && c < ' ') broken("a message is one line that a terminal can show", message);
    return false;
  }
}

inline std::string_view bytes_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}
template <class T>  // numbers as they lie in memory
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<std::string> seeds();  // inputs to begin with, most of them valid

// Writes the seeds into the first folder of the command line, the corpus.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  for (int i = 1; i < *argc; ++i)
    if ((*argv)[i][0] != '-') {
      int number = 0;
      for (const std::string& seed : seeds()) std::ofstream((*argv)[i] + ("/seed-" + std::to_string(number++))) << seed;
      break;
    }
  return 0;
}
