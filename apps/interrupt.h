// SIGINT (Ctrl-C), SIGTERM and SIGHUP (a closed terminal). Once: the run finishes its batch, saves, and says how to go
// on. Twice: the process leaves at once, with the checkpoints that it has.
#pragma once

namespace tapedeck {

class Interruption {  // takes the signals over for as long as it lives; one at a time, on the main thread
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static bool asked();  // from any thread
};

}  // namespace tapedeck
