// SIGINT (Ctrl-C), SIGTERM and SIGHUP (a closed terminal). Once: the run finishes its batch, saves, and says how to go
// on. Twice: the process leaves at once, with the checkpoints that it has.
#pragma once
#include <string_view>

namespace tapedeck {

class Interruption {  // takes the signals over for as long as it lives; one at a time, on the main thread
 public:
  // `message`: a literal, for stderr at the first signal.
  explicit Interruption(
      std::string_view message = "\nstopping: this batch is finished and the run saved; once more leaves at once\n");
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  static bool asked();  // from any thread
};

}  // namespace tapedeck
