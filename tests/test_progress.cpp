// What a terminal sees and what a log file gets.
#include <doctest/doctest.h>

#include <sstream>

#include "apps/progress.h"

using namespace tapedeck;

namespace {
ProgressState at(int64_t step, double seconds) {
  return {.step = step, .last_step = 1000, .loss = 0.25, .rate = 1e-3, .examples_per_s = 12345, .seconds = seconds};
}
}  // namespace

TEST_CASE("a log file gets whole lines at the interval and no control characters") {
  // The fault: a progress bar that rewrites its line fills a log with carriage returns.
  std::ostringstream log;
  {
    Progress progress(log, false, false);
    for (int step = 1; step <= 300; ++step) progress.update(at(step, step), step % 100 == 0);
    progress.message("target reached");
  }
  CHECK_EQ(log.str(),
           "step 100/1000  loss 0.2500  rate 0.001  12345 examples/s  data wait 0 %  15 min 00 s left\n"
           "step 200/1000  loss 0.2500  rate 0.001  12345 examples/s  data wait 0 %  13 min 20 s left\n"
           "step 300/1000  loss 0.2500  rate 0.001  12345 examples/s  data wait 0 %  11 min 40 s left\n"
           "target reached\n");
}

TEST_CASE("each line of a log is flushed at once") {
  struct Counting : std::stringbuf {
    int flushes = 0;
    int sync() override { return ++flushes, 0; }
  } buffer;
  std::ostream log(&buffer);
  Progress progress(log, false, false);
  progress.update(at(100, 1), true);
  CHECK_EQ(buffer.flushes, 1);
  progress.message("hello");
  CHECK_EQ(buffer.flushes, 2);
}

TEST_CASE("a terminal gets one line rewritten in place, ten times a second at most, without colour") {
  std::ostringstream screen;
  {
    Progress progress(screen, true, false);
    for (int i = 0; i < 1000; ++i) progress.update(at(900 - i / 2, 1 + i * 1e-3), false);  // one second
    CHECK_EQ(screen.str().find('\n'), std::string::npos);
    progress.message("evaluated");
  }
  const std::string text = screen.str();
  int rewrites = 0;
  for (size_t p = 0; (p = text.find("\rstep", p)) != text.npos; ++p) ++rewrites;
  CHECK_GE(rewrites, 8);
  CHECK_LE(rewrites, 11);
  CHECK_EQ(text.find('\x1b'), std::string::npos);
  CHECK(text.ends_with("\revaluated\n"));
}

TEST_CASE("a shorter live line leaves no rest of the longer one, and the end breaks the line") {
  std::ostringstream screen;
  {
    Progress progress(screen, true, false);
    progress.update({.step = 1, .loss = 123456.5, .seconds = 0}, false);
    progress.update({.step = 2, .loss = 1, .seconds = 1}, false);
  }
  const std::string text = screen.str();
  const size_t first = text.find('\r', 1), last = text.size() - 1;
  CHECK_EQ(text[last], '\n');
  CHECK_EQ(last - first, first);  // both of one length
}

TEST_CASE("quiet prints nothing") {
  std::ostringstream out;
  for (bool terminal : {false, true}) {
    Progress progress(out, terminal, true);
    progress.update(at(100, 1), true);
    progress.message("hello");
  }
  CHECK_EQ(out.str(), "");
}

TEST_CASE("durations read as a person says them") {
  CHECK_EQ(duration_text(7.6), "8 s");
  CHECK_EQ(duration_text(65), "1 min 05 s");
  CHECK_EQ(duration_text(7380), "2 h 03 min");
}
