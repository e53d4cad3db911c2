// 47040016 -> "47,040,016": byte counts that a person compares.
#pragma once
#include <cstdint>
#include <string>

namespace tapedeck {

inline std::string grouped(uint64_t n) {
  std::string digits = std::to_string(n);
  for (size_t at = digits.size(); at > 3;) digits.insert(at -= 3, ",");
  return digits;
}

}  // namespace tapedeck
