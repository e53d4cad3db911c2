// SIGINT (Ctrl-C) and SIGTERM. Once: the run finishes its batch, saves, and says how to go on. Twice: the process
// leaves at once, with the checkpoints that it has.
#pragma once

namespace tapedeck {

class Interruption {  // takes the two signals over for as long as it lives; one at a time
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static bool asked();  // from any thread
};

}  // namespace tapedeck
