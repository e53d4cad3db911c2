// kernel_name<F>(): the functor's name as a person writes it, "SoftmaxForward<float>", for messages.
#pragma once
#include <string>

namespace tapedeck {

// From what the compiler calls a function template of F; g++ says "… [with F = NAME]", clang "… [F = NAME]".
std::string readable_name(const char* pretty_function);

template <class F>
const char* kernel_name() {
  static const std::string name = readable_name(__PRETTY_FUNCTION__);
  return name.c_str();
}

}  // namespace tapedeck
