// Progress on stderr. A terminal gets one live line, rewritten in place; a file or pipe gets whole lines, flushed, with
// no control characters. Nothing is ever coloured, so NO_COLOR holds by itself.
#pragma once
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "apps/config.h"

namespace tapedeck {

struct ProgressState {
  int64_t step = 0, last_step = 0;  // last_step 0: not known
  double loss = 0, rate = 0;        // rate: learning rate
  double examples_per_s = 0;
  double data_wait = 0;  // share of the step, 0 to 1
  double seconds = 0;    // since the start, any clock; the live line moves ten times a second
};

class Progress {
 public:
  Progress(std::ostream& stream, bool terminal, bool quiet) : stream_(stream), terminal_(terminal), quiet_(quiet) {}
  ~Progress() { finish(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Call at every step. Without a terminal only calls with at_interval (every --log-every steps) print.
  void update(const ProgressState& state, bool at_interval);
  void show(const std::string& line, double seconds, bool at_interval);  // the same with a line of one's own
  void message(std::string_view line);                                   // a line of its own, above the live line
  void clear();                                                          // wipes the live line out
  void finish();                                                         // ends it

 private:
  std::ostream& stream_;
  bool terminal_, quiet_;
  size_t live_length_ = 0;
  double last_shown_ = -1;
};

bool stderr_is_terminal();  // and one that can rewrite a line: TERM is set and not "dumb"
std::string progress_line(const ProgressState& state);
std::string duration_text(double seconds);  // "8 s", "1 min 05 s", "2 h 03 min"

}  // namespace tapedeck
