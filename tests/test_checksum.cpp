// The two checksums against published values, whole and in parts.
#include "data/checksum.h"

#include <doctest/doctest.h>

#include <string_view>

using namespace tapedeck;

TEST_CASE("checksums: CRC-32 and FNV-1a have the published values, in one go or in parts") {
  constexpr std::string_view digits = "123456789";
  CHECK(crc32_of(digits.data(), 9) == 0xCBF43926);  // the check value of its catalogue [Williams 1993]
  CHECK(fnv1a("foobar", 6) == 0x85944171f73967e8);  // [draft-eastlake-fnv, appendix C]
  CHECK(crc32_of(nullptr, 0) == 0);
  CHECK(fnv1a(nullptr, 0) == fnv1a_of_nothing);
  for (size_t n = 0; n <= 9; ++n) {
    const std::string_view begin = digits.substr(0, n), end = digits.substr(n);
    CHECK(crc32_of(end.data(), end.size(), crc32_of(begin.data(), n)) == 0xCBF43926);
    CHECK(fnv1a(end.data(), end.size(), fnv1a(begin.data(), n)) == fnv1a(digits.data(), 9));
  }
}
