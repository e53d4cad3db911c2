// An environment variable that has another value in one scope; "" removes it.
#pragma once
#include <cstdlib>
#include <optional>
#include <string>

namespace tapedeck::test {

class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Environment() { set(before_.value_or("")); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const std::string& value) {
    if (value.empty())
      unsetenv(name_);
    else
      setenv(name_, value.c_str(), 1);
  }
  const char* name_;
  std::optional<std::string> before_;
};

}  // namespace tapedeck::test
