// CHECK(condition, "op: what, got {}, fix", values...) throws an Error that says it to a person, with its place.
// Formatting happens in check.cpp, so that this header costs nothing to include and nvcc never sees fmt.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

namespace tapedeck {

// Every failure that a person can cause. what() ends in its place: "(at mlp.in, ops/matmul.cpp:38)".
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};
struct UsageError : Error {  // a wrong option or value: exit code 2; carries no place
  using Error::Error;
};
struct OutOfMemory : Error {  // exit code 4
  using Error::Error;
};
struct Diverged : Error {  // a loss or gradient that is not finite: exit code 5
  using Error::Error;
};

// One value for a message; whatever has str() (a Shape) converts as text.
class CheckValue {
 public:
  enum class Kind { integer, natural, real, text };
  template <class T>
  CheckValue(const T& value) {
    if constexpr (std::is_same_v<T, bool>)
      text_ = value ? "true" : "false";
    else if constexpr (std::is_integral_v<T>)
      kind_ = std::is_signed_v<T> ? Kind::integer : Kind::natural, integer_ = static_cast<int64_t>(value);
    else if constexpr (std::is_floating_point_v<T>)
      kind_ = Kind::real, real_ = static_cast<double>(value);
    else if constexpr (std::is_convertible_v<const T&, std::string_view>)
      text_ = std::string_view(value);
    else
      text_ = value.str();
  }
  Kind kind() const { return kind_; }
  int64_t integer() const { return integer_; }
  double real() const { return real_; }
  const std::string& text() const { return text_; }

 private:
  Kind kind_ = Kind::text;
  int64_t integer_ = 0;
  double real_ = 0;
  std::string text_;
};

std::string format_text(const char* format, std::initializer_list<CheckValue> values);

[[noreturn]] void check_failed(const char* file, int line, const char* format,
                               std::initializer_list<CheckValue> values = {});

// One sentence from a format and values, for UsageError, OutOfMemory and Diverged:  throw UsageError(text("…", x));
template <class... T>
std::string text(const char* format, const T&... values) {
  return format_text(format, {CheckValue(values)...});
}

}  // namespace tapedeck

#define CHECK(condition, format, ...)                                                          \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::tapedeck::check_failed(__FILE__, __LINE__, format, {__VA_ARGS__}); /* never returns */ \
  } while (false)
