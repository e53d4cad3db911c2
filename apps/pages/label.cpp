#include "apps/pages/label.h"

#include <algorithm>

#include "data/utf8.h"

namespace tapedeck {
namespace {

// Of a character at size 1, at least that of Helvetica, Arial, Liberation Sans and DejaVu Sans.
double width_of(char32_t c) {
  if (c >= 0x2e80) return 1.1;  // an ideograph, or a picture
  if (c >= 128) return c == U'·' || c == U'’' ? 0.45 : 0.9;
  constexpr std::string_view narrow = "ijl.,:;'|! ", slim = "frtI()[]-/\"", wide = "mwMW@%";
  const char plain = static_cast<char>(c);
  if (narrow.find(plain) != narrow.npos) return 0.36;
  if (slim.find(plain) != slim.npos) return 0.47;
  if (wide.find(plain) != wide.npos) return 1.03;
  return plain >= 'A' && plain <= 'Z' ? 0.79 : plain >= '0' && plain <= '9' ? 0.64 : 0.65;
}

}  // namespace

double text_width(std::string_view text, double size) {
  double width = 0;
  while (!text.empty()) {
    const auto c = take_character(text);
    if (!c) text.remove_prefix(1);
    width += width_of(c.value_or(0xfffd));
  }
  return size * width;
}

Box text_area(double x, double y, std::string_view text, double size, Svg::Anchor anchor) {
  const double width = text_width(text, size);
  const double left = anchor == Svg::Anchor::start ? x : anchor == Svg::Anchor::middle ? x - width / 2 : x - width;
  return {left, y - 0.95 * size, left + width, y + 0.27 * size};
}

std::string shortened(std::string_view text, double size, double width) {
  if (text_width(text, size) <= width) return std::string(text);
  std::string out;
  std::string_view rest = text;
  while (!rest.empty()) {
    const size_t before = rest.size();
    if (!take_character(rest)) rest.remove_prefix(1);
    std::string longer = std::string(text.substr(0, text.size() - rest.size()));
    if (text_width(longer + "…", size) > width) break;
    out = std::move(longer);
    if (rest.size() == before) break;
  }
  return out + "…";
}

bool Labels::free(const Box& box) const {
  return box.within(frame_) && std::none_of(taken_.begin(), taken_.end(), [&](const Box& b) { return b.meets(box); });
}

bool Labels::place(const std::vector<std::pair<double, double>>& near, std::string_view text, double size,
                   Placed& out) {
  const double up = 0.9 * size, gap = 0.6 * size;
  struct Try {
    double dx, dy;
    Svg::Anchor anchor;
  };
  std::vector<Try> tries;
  for (const double far : {1.0, 2.2, 3.6, 5.2})
    for (const auto anchor : {Svg::Anchor::start, Svg::Anchor::end, Svg::Anchor::middle}) {
      const double side = anchor == Svg::Anchor::start ? gap : anchor == Svg::Anchor::end ? -gap : 0;
      for (const double dy : {-gap * far, up + gap * far}) tries.push_back({side, dy, anchor});
      if (side != 0 && far == 1) tries.push_back({side, 0.35 * size, anchor});
      if (side != 0) tries.push_back({3 * far * side, 0.35 * size, anchor});
    }
  size_t fewest = static_cast<size_t>(-1);
  Box best{};
  for (const auto& [x, y] : near)
    for (const Try& t : tries) {
      const Box box = text_area(x + t.dx, y + t.dy, text, size, t.anchor);
      if (!free(box)) continue;
      const auto covered = static_cast<size_t>(std::count_if(drawn_.begin(), drawn_.end(), [&](const auto& point) {
        return point.first >= box.left && point.first <= box.right && point.second >= box.top &&
               point.second <= box.bottom;
      }));
      if (covered >= fewest) continue;
      fewest = covered, best = box;
      out = {x + t.dx, y + t.dy, t.anchor};
    }
  if (fewest == static_cast<size_t>(-1)) return false;
  take(best);
  return true;
}

}  // namespace tapedeck
