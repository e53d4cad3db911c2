#include "apps/profile_window.h"

#include <fmt/format.h>

#include <charconv>

#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr int64_t most = 1'000'000;

struct Key {
  const char* name;
  int64_t ProfileWindow::*member;
  int64_t least;
};
constexpr Key keys[] = {{"skip", &ProfileWindow::skip, 0},
                        {"wait", &ProfileWindow::wait, 0},
                        {"warmup", &ProfileWindow::warmup, 0},
                        {"active", &ProfileWindow::active, 1},
                        {"repeat", &ProfileWindow::repeat, 1}};

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw UsageError(fmt::format("--window \"{}\": {}; write it as skip=0,wait=1,warmup=1,active=3,repeat=1", text, why));
}

}  // namespace

ProfileWindow::Part ProfileWindow::part(int64_t step) const {
  if (step < skip || step >= end()) return Part::outside;
  const int64_t place = (step - skip) % cycle();
  return place < wait ? Part::outside : place < wait + warmup ? Part::warmup : Part::active;
}

ProfileWindow parse_window(std::string_view text) {
  ProfileWindow window;
  bool given[std::size(keys)] = {};
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const size_t sign = part.find('=');
    const std::string_view name = part.substr(0, sign);
    size_t i = 0;
    while (i < std::size(keys) && keys[i].name != name) ++i;
    if (i == std::size(keys))
      refuse(text, fmt::format("\"{}\" is none of skip, wait, warmup, active and repeat", name));
    if (given[i]) refuse(text, fmt::format("{} is given twice", name));
    given[i] = true;
    int64_t value = -1;
    const std::string_view number = sign == part.npos ? "" : part.substr(sign + 1);
    const auto [last, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || last != number.data() + number.size() || value < keys[i].least || value > most)
      refuse(text, fmt::format("{} got \"{}\", needs a whole number from {} to {}", name, number, keys[i].least, most));
    window.*keys[i].member = value;
    begin = end + 1;
  }
  return window;
}

std::string to_text(const ProfileWindow& w) {
  return fmt::format("skip={},wait={},warmup={},active={},repeat={}", w.skip, w.wait, w.warmup, w.active, w.repeat);
}

}  // namespace tapedeck
