// Pictures as SVG text: a few shapes, with the escaping and the sizes of text that they need.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tapedeck {

std::string xml_text(std::string_view text);  // with < & > " written as entities, and what XML does not allow as ?

struct Box {
  double left, top, right, bottom;
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool within(const Box& other) const {
    return left >= other.left && right <= other.right && top >= other.top && bottom <= other.bottom;
  }
};

class Svg {
 public:
  enum class Anchor : uint8_t { start, middle, end };
  Svg(double width, double height);

  void rect(const Box& box, const char* fill, const std::string& title = {});
  void line(double x1, double y1, double x2, double y2, const char* stroke, double width = 1,
            const char* dash = nullptr);
  void polygon(const std::vector<std::pair<double, double>>& points, const char* fill);
  void circle(double x, double y, double radius, const char* fill, const std::string& title = {});
  void text(double x, double y, std::string_view text, double size = 12, Anchor anchor = Anchor::start,
            const char* fill = "#222");
  std::string finish() const { return out_ + "</svg>\n"; }

  static double text_width(std::string_view text, double size);  // at most, in a plain sans-serif
  // What text() covers.
  static Box text_box(double x, double y, std::string_view text, double size, Anchor anchor);

 private:
  std::string out_;
};

}  // namespace tapedeck
