// 47040016 -> "47,040,016": byte counts that a person compares.
#pragma once
#include <cstdint>
#include <string>

namespace tapedeck {

inline std::string grouped(uint64_t n) {
  const std::string digits = std::to_string(n);
  std::string result;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) result += ',';
    result += digits[i];
  }
  return result;
}

}  // namespace tapedeck
