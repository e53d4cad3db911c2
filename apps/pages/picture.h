// SVG text whose colours are classes of the page's style sheet, unlike those of apps/svg.h, which stands alone.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/svg.h"

namespace tapedeck {

class Picture {
 public:
  Picture(double width, double height, std::string_view label);  // label: what it shows, for those who hear it
  void rect(const Box& box, std::string_view style, std::string_view title = {});
  void line(double x1, double y1, double x2, double y2, std::string_view style);
  void path(const std::string& data, std::string_view style, std::string_view title = {});
  void circle(double x, double y, double radius, std::string_view style, std::string_view title = {});
  void text(double x, double y, std::string_view text, double size, Svg::Anchor anchor = Svg::Anchor::start,
            std::string_view style = {}, std::string_view title = {});
  std::string finish() const { return out_ + "</svg>\n"; }

 private:
  void element(const char* tag, const std::string& attributes, std::string_view style, std::string_view title);
  std::string out_;
};

std::string figure(const std::string& svg, std::string_view title, std::string_view note, bool large);

}  // namespace tapedeck
