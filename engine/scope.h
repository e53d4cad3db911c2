// Scope("hidden0") names the part of the model at work. One stack of names serves error messages, the drawing of the
// tape and, as ranges, the profiler.
#pragma once
#include <string>
#include <string_view>

namespace tapedeck {

class Tracer;

class Scope {
 public:
  explicit Scope(std::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  static const std::string& path();  // "mlp.in", empty outside of every scope; of this thread

 private:
  size_t outer_length_;
  Tracer* tracer_;  // whose span it opened; null: none
};

// The path that a recorded op had, instead of the one at hand, while its backward runs.
class ScopeOf {
 public:
  explicit ScopeOf(std::string path);
  ~ScopeOf();
  ScopeOf(const ScopeOf&) = delete;
  ScopeOf& operator=(const ScopeOf&) = delete;

 private:
  std::string outer_;
};

}  // namespace tapedeck
