#include "engine/tape_watch.h"

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
  if (!all_finite(x)) first_ = std::string(what) + " of " + op + (where.empty() ? "" : " at " + where);
}

}  // namespace tapedeck
