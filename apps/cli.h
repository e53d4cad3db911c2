// The command line: finds the command, collects its options as raw text (parsed in options_value.cpp), runs it, and
// turns what it throws into one line on stderr and an exit code.
#pragma once
#include <span>

#include "apps/config.h"

namespace tapedeck {

enum ExitCode {
  exit_done = 0,
  exit_failed = 1,
  exit_usage = 2,
  exit_target_not_reached = 3,
  exit_out_of_memory = 4,
  exit_diverged = 5,
  exit_interrupted = 130  // 128 + SIGINT, as shells say it
};

struct Command {
  const char* name;           // "train", "data info"
  const char* help;           // one line
  const char* example;        // "tapedeck train --data digits"
  int (*run)(const Config&);  // returns an ExitCode or throws
};

// Results go to std::cout, messages to std::cerr. Returns the exit code of the process.
int run_command_line(int argc, const char* const* argv, std::span<const Command> commands);

}  // namespace tapedeck
