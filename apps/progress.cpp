#include "apps/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <ostream>

namespace tapedeck {

bool stderr_is_terminal() {
  const char* term = std::getenv("TERM");
  return isatty(STDERR_FILENO) && term && *term && std::string_view(term) != "dumb";
}

std::string duration_text(double seconds) {
  const int64_t s = std::lround(seconds);
  if (s < 60) return fmt::format("{} s", s);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  return fmt::format("{} h {:02} min", s / 3600, s / 60 % 60);
}

std::string progress_line(const ProgressState& s) {
  const std::string of = s.last_step > 0 ? fmt::format("/{}", s.last_step) : "";
  std::string line = fmt::format("step {}{}  loss {:.4f}  rate {:.3g}  {:.0f} examples/s  data wait {:.0f} %", s.step,
                                 of, s.loss, s.rate, s.examples_per_s, 100 * s.data_wait);
  if (s.last_step > 0 && s.step > 0)  // at the pace so far
    line += fmt::format("  {} left", duration_text(s.seconds / static_cast<double>(s.step) *
                                                   static_cast<double>(std::max<int64_t>(0, s.last_step - s.step))));
  return line;
}

void Progress::update(const ProgressState& state, bool at_interval) {
  if (!quiet_ && (terminal_ || at_interval)) show(progress_line(state), state.seconds, at_interval);
}

void Progress::show(const std::string& line, double seconds, bool at_interval) {
  constexpr double kRefresh = 0.1;  // seconds
  if (quiet_) return;
  if (!terminal_) {
    if (at_interval) stream_ << line << std::endl;
    return;
  }
  if (live_length_ > 0 && seconds - last_shown_ < kRefresh) return;
  last_shown_ = seconds;
  const size_t padding = live_length_ > line.size() ? live_length_ - line.size() : 0;  // over the rest of a longer line
  stream_ << '\r' << line << std::string(padding, ' ') << std::flush;
  live_length_ = line.size();
}

void Progress::clear() {
  if (live_length_ > 0) stream_ << '\r' << std::string(live_length_, ' ') << '\r' << std::flush;
  live_length_ = 0;
}

void Progress::message(std::string_view line) {
  if (quiet_) return;
  clear();
  stream_ << line << std::endl;
}

void Progress::finish() {
  if (live_length_ > 0) stream_ << std::endl;
  live_length_ = 0;
}

}  // namespace tapedeck
