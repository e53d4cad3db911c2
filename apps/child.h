// Runs another program and waits for it. No shell is in between, so no word is taken apart or expanded.
#pragma once
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace tapedeck {

struct Finished {
  int code = 0;     // its exit code; 128 + signal where one ended it
  std::string out;  // what it wrote to its standard output
};

using Source = std::function<size_t(uint8_t* out, size_t n)>;  // up to n bytes; 0: no more

// For as long as it lives, SIGINT (Ctrl-C) and SIGTERM end the program that run_program waits for and not this process:
// run_program throws Interrupted, and whoever called it can tidy up. One at a time.
class PassSignalsOn {
 public:
  PassSignalsOn();
  ~PassSignalsOn();
  PassSignalsOn(const PassSignalsOn&) = delete;
  PassSignalsOn& operator=(const PassSignalsOn&) = delete;

 private:
  struct sigaction before_[2];
};
struct Interrupted {};  // no Error: nothing failed

// words[0] is a program's name, looked for in PATH; nullopt: there is none of that name. Its standard input is what
// `input` gives, all of which it must take before it writes. Standard error stays ours. Throws Error when the system
// gives no process or pipe.
std::optional<Finished> run_program(const std::vector<std::string>& words, const Source& input = {});

}  // namespace tapedeck
