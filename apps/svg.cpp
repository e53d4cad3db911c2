#include "apps/svg.h"

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck {

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\t' ? '?' : c;
  }
  return out;
}

Svg::Svg(double width, double height)
    : out_(fmt::format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
                       "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\">\n"
                       "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                       width, height)) {}

namespace {
std::string with_title(const char* tag, const std::string& attributes, const std::string& title) {
  if (title.empty()) return fmt::format("<{} {}/>\n", tag, attributes);
  return fmt::format("<{0} {1}><title>{2}</title></{0}>\n", tag, attributes, xml_text(title));
}
}  // namespace

void Svg::rect(const Box& b, const char* fill, const std::string& title) {
  out_ += with_title("rect",
                     fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"", b.left,
                                 b.top, b.right - b.left, b.bottom - b.top, fill),
                     title);
}
void Svg::line(double x1, double y1, double x2, double y2, const char* stroke, double width, const char* dash) {
  out_ += fmt::format(
      "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"{}\"{}/>\n", x1, y1,
      x2, y2, stroke, width, dash ? fmt::format(" stroke-dasharray=\"{}\"", dash) : "");
}
void Svg::polygon(const std::vector<std::pair<double, double>>& points, const char* fill) {
  std::string list;
  for (const auto& [x, y] : points) list += fmt::format("{}{:.1f},{:.1f}", list.empty() ? "" : " ", x, y);
  out_ += fmt::format("<polygon points=\"{}\" fill=\"{}\"/>\n", list, fill);
}
void Svg::circle(double x, double y, double radius, const char* fill, const std::string& title) {
  out_ += with_title(
      "circle",
      fmt::format("cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\" fill-opacity=\"0.75\" stroke=\"white\"", x, y,
                  radius, fill),
      title);
}
void Svg::text(double x, double y, std::string_view text, double size, Anchor anchor, const char* fill) {
  constexpr const char* anchors[] = {"start", "middle", "end"};
  out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", x,
                      y, size, anchors[static_cast<int>(anchor)], fill, xml_text(text));
}

double Svg::text_width(std::string_view text, double size) {
  const auto characters = std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; });
  return 0.66 * size * static_cast<double>(characters);
}

Box Svg::text_box(double x, double y, std::string_view text, double size, Anchor anchor) {
  const double width = text_width(text, size);
  const double left = anchor == Anchor::start ? x : anchor == Anchor::middle ? x - width / 2 : x - width;
  return {left, y - 0.85 * size, left + width, y + 0.25 * size};
}

}  // namespace tapedeck
