#include "apps/pages/picture.h"

#include <fmt/format.h>

#include "apps/pages/html.h"

namespace tapedeck {

Picture::Picture(double width, double height, std::string_view label)
    : out_(fmt::format("<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\" aria-label=\"{}\">\n", width, height,
                       html_text(label))) {}

void Picture::element(const char* tag, const std::string& attributes, std::string_view style, std::string_view title) {
  out_ += fmt::format("<{} {}", tag, attributes);
  if (!style.empty()) out_ += fmt::format(" class=\"{}\"", style);
  out_ += title.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", html_text(title), tag);
}

void Picture::rect(const Box& b, std::string_view style, std::string_view title) {
  element("rect",
          fmt::format("x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"", b.left, b.top, b.right - b.left,
                      b.bottom - b.top),
          style, title);
}
void Picture::line(double x1, double y1, double x2, double y2, std::string_view style) {
  element("line", fmt::format("x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"", x1, y1, x2, y2), style, {});
}
void Picture::path(const std::string& data, std::string_view style, std::string_view title) {
  element("path", fmt::format("d=\"{}\"", data), style, title);
}
void Picture::circle(double x, double y, double radius, std::string_view style, std::string_view title) {
  element("circle", fmt::format("cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\"", x, y, radius), style, title);
}
void Picture::text(double x, double y, std::string_view text, double size, Svg::Anchor anchor, std::string_view style,
                   std::string_view title) {
  constexpr const char* anchors[] = {"start", "middle", "end"};
  out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" text-anchor=\"{}\"{}>{}{}</text>\n", x, y, size,
                      anchors[static_cast<int>(anchor)], style.empty() ? "" : fmt::format(" class=\"{}\"", style),
                      html_text(text), title.empty() ? "" : fmt::format("<title>{}</title>", html_text(title)));
}

std::string figure(const std::string& svg, std::string_view title, std::string_view note, bool large) {
  std::string caption;
  if (!title.empty() || !note.empty())
    caption = fmt::format("<figcaption>{}{}</figcaption>\n", html_text(title),
                          note.empty() ? "" : fmt::format("<span class=\"note\">{}</span>", html_text(note)));
  return fmt::format("<figure{}>\n{}{}</figure>\n", large ? " class=\"large\"" : "", caption, svg);
}

}  // namespace tapedeck
