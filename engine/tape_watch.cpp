#include "engine/tape_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck {

TapeWatch*& TapeWatch::current() {
  thread_local TapeWatch* watch = nullptr;
  return watch;
}
TapeWatch::TapeWatch() : outer_(std::exchange(current(), this)) {}
TapeWatch::~TapeWatch() { current() = outer_; }

void FiniteWatch::look(const char* what, const char* op, const std::string& where, const Tensor& x) {
  if (!first_.empty() || !is_floating(x.dtype)) return;
  const std::vector<double> values = x.doubles();
  const bool finite = std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
  if (!finite) first_ = std::string(what) + " of " + op + (where.empty() ? "" : " at " + where);
}

}  // namespace tapedeck
