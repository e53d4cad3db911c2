#include "apps/pages/chart_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace tapedeck {
namespace {

struct Pixel {
  double x, y;
};

// The part of a segment within the box  [Liang & Barsky 1984, ACM TOG 3(1)].
std::optional<std::pair<Pixel, Pixel>> cut(const Pixel& a, const Pixel& b, const Box& box) {
  double from = 0, to = 1;
  const double dx = b.x - a.x, dy = b.y - a.y;
  const std::pair<double, double> sides[] = {
      {-dx, a.x - box.left}, {dx, box.right - a.x}, {-dy, a.y - box.top}, {dy, box.bottom - a.y}};
  for (const auto& [step, room] : sides) {
    if (step == 0 && room < 0) return std::nullopt;
    if (step < 0) from = std::max(from, room / step);
    if (step > 0) to = std::min(to, room / step);
  }
  if (from > to) return std::nullopt;
  return std::pair{Pixel{a.x + from * dx, a.y + from * dy}, Pixel{a.x + to * dx, a.y + to * dy}};
}

bool can_show(const Plot& plot, const Point& p) { return plot.x.can_show(p.x) && plot.y.can_show(p.y); }
Pixel pixel(const Plot& plot, const Point& p) { return {plot.x.at(p.x), plot.y.at(p.y)}; }

// Long lines keep the first, lowest, highest and last point of every pixel's width.
std::vector<const Point*> thinned(const Plot& plot, const std::vector<Point>& points) {
  std::vector<const Point*> out;
  const double width = plot.box.right - plot.box.left;
  for (size_t i = 0; i < points.size();) {
    if (points.size() < 2 * static_cast<size_t>(width) || !can_show(plot, points[i])) {
      out.push_back(&points[i++]);
      continue;
    }
    const double bin = std::floor(plot.x.at(points[i].x));
    size_t end = i, low = i, high = i;
    for (; end < points.size() && can_show(plot, points[end]) && std::floor(plot.x.at(points[end].x)) == bin; ++end) {
      if (points[end].y < points[low].y) low = end;
      if (points[end].y > points[high].y) high = end;
    }
    std::vector<size_t> kept = {i, low, high, end - 1};
    std::sort(kept.begin(), kept.end());
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    for (const size_t k : kept) out.push_back(&points[k]);
    i = end;
  }
  return out;
}

void draw_line(Picture& picture, const Plot& plot, const Series& series, Labels* labels) {
  std::string data;
  Pixel before{}, pen{};
  bool goes_on = false;  // from the point before
  for (const Point* p : thinned(plot, series.points)) {
    if (!can_show(plot, *p)) {
      goes_on = false;
      continue;
    }
    const Pixel here = pixel(plot, *p);
    if (const auto piece = cut(goes_on ? before : here, here, plot.box); piece && goes_on) {
      const auto& [from, to] = *piece;
      if (data.empty() || pen.x != from.x || pen.y != from.y) data += fmt::format("M{:.1f} {:.1f}", from.x, from.y);
      data += fmt::format("L{:.1f} {:.1f}", to.x, to.y);
      pen = to;
      for (double share = 0; labels && share <= 1; share += 0.125)
        labels->avoid(from.x + share * (to.x - from.x), from.y + share * (to.y - from.y));
    }
    before = here, goes_on = true;
  }
  if (data.empty()) return;
  picture.path(data,
               fmt::format("curve s{}{}{}", series.colour % 8, series.thin ? " thin" : "",
                           series.dashed            ? " dashed"
                           : series.colour % 16 > 7 ? " dotted"
                                                    : ""),
               series.name);
}

std::string triangle(double x, double y) {
  return fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}Z", x, y - 6, x + 5.5, y + 4, x - 5.5, y + 4);
}

std::string title_of(const Series& series, const Point& p) {
  if (!p.title.empty()) return p.title;
  const std::string y = !p.missed            ? ", " + short_number(p.y)
                        : std::isfinite(p.y) ? ", not reached by " + short_number(p.y)
                                             : ", not reached";
  return fmt::format("{}{}{}{}", series.name, series.name.empty() ? "" : ": ", short_number(p.x, 6), y);
}

void draw_whisker(Picture& picture, const Plot& plot, const Point& p, const std::string& style, Labels* labels) {
  if (std::isnan(p.low) || std::isnan(p.high) || !plot.x.within(p.x)) return;
  const double x = plot.x.at(p.x);
  const auto end = [&](double value, double edge) {
    return plot.y.can_show(value) ? std::clamp(plot.y.at(value), plot.box.top, plot.box.bottom) : edge;
  };
  const double low = end(p.low, plot.box.bottom), high = end(p.high, plot.box.top);
  picture.line(x, low, x, high, style);
  for (double y = high; labels && y <= low; y += 5) labels->avoid(x, y);
  if (plot.y.within(p.low)) picture.line(x - 4, low, x + 4, low, style);
  if (plot.y.within(p.high))
    picture.line(x - 4, high, x + 4, high, style);
  else  // it goes on
    picture.path(
        fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}", x - 4, high + 6, x, high + 1, x + 4, high + 6),
        "curve " + style);
}

}  // namespace

int64_t draw_series(Picture& picture, const Plot& plot, const Series& series, Labels* labels) {
  if (series.line) draw_line(picture, plot, series, labels);
  const std::string colour = fmt::format("{}", series.colour % 8);
  int64_t beyond = 0;
  double last_title = -INFINITY;
  for (const Point& p : series.points) {
    if (!series.line) draw_whisker(picture, plot, p, "s" + colour, labels);
    const bool at_top = p.missed && !plot.y.can_show(p.y);
    if ((!at_top && !plot.y.within(p.y)) || !plot.x.within(p.x)) {
      beyond += std::isfinite(p.y);
      continue;
    }
    const Pixel at = {plot.x.at(p.x), at_top ? plot.box.top + 7 : plot.y.at(p.y)};
    const bool marked = series.markers || p.missed;
    if (labels && marked) labels->take({at.x - 5, at.y - 5, at.x + 5, at.y + 5});
    if (p.missed)
      picture.path(triangle(at.x, at.y), "open s" + colour, title_of(series, p));
    else if (series.markers)
      picture.circle(at.x, at.y, series.thin ? 2.5 : 4, "f" + colour, title_of(series, p));
    else if (at.x - last_title >= 3)  // nothing to see, but for the pointer
      picture.circle(at.x, at.y, 5, "none", title_of(series, p)), last_title = at.x;
  }
  if (double x = 0, y = 0; series.diverged && last_place(plot, series, x, y))
    picture.path(fmt::format("M{:.1f} {:.1f}l8 8m0 -8l-8 8", x - 4, y - 4), "curve s" + colour, series.note);
  return beyond;
}

bool last_place(const Plot& plot, const Series& series, double& x, double& y) {
  Pixel before{};
  bool found = false, goes_on = false;
  for (const Point& p : series.points) {
    if (!can_show(plot, p)) {
      goes_on = false;
      continue;
    }
    const Pixel here = pixel(plot, p);
    if (const auto piece = cut(goes_on ? before : here, here, plot.box))
      x = piece->second.x, y = piece->second.y, found = true;
    before = here, goes_on = true;
  }
  return found;
}

void draw_region(Picture& picture, const Plot& plot, const Region& region) {
  const double left = plot.x.can_show(region.low) ? plot.x.at(region.low) : plot.box.left;
  const double right = plot.x.can_show(region.high) ? plot.x.at(region.high) : plot.box.right;
  const Box box = {std::max(left, plot.box.left), plot.box.top, std::min(right, plot.box.right), plot.box.bottom};
  if (region.shaded && box.left < box.right) picture.rect(box, "region", region.text);
}

void draw_band(Picture& picture, const Plot& plot, const Band& band) {
  std::string there, back;
  const auto clamped = [&](double y) { return std::clamp(plot.y.at(y), plot.box.top, plot.box.bottom); };
  for (const Band::Edge& edge : band.edges) {
    if (!plot.x.within(edge.x) || !plot.y.can_show(edge.high)) continue;
    const double x = plot.x.at(edge.x), low = plot.y.can_show(edge.low) ? clamped(edge.low) : plot.box.bottom;
    there += fmt::format("{}{:.1f} {:.1f}", there.empty() ? "M" : "L", x, clamped(edge.high));
    back = fmt::format("L{:.1f} {:.1f}", x, low) + back;
  }
  if (!there.empty()) picture.path(there + back + "Z", fmt::format("band f{}", band.colour % 8), band.name);
}

void draw_guide(Picture& picture, const Plot& plot, const Guide& guide) {
  if (guide.vertical && plot.x.within(guide.value)) {
    const double x = plot.x.at(guide.value);
    picture.line(x, plot.box.top, x, plot.box.bottom, "guide");
  } else if (!guide.vertical && plot.y.within(guide.value)) {
    const double y = plot.y.at(guide.value);
    picture.line(plot.box.left, y, plot.box.right, y, "guide");
  }
}

void draw_key(Picture& picture, const Series& series, double x, double y) {
  const std::string colour = fmt::format("{}", series.colour % 8);
  if (series.line)
    picture.path(fmt::format("M{:.1f} {:.1f}l20 0", x, y), fmt::format("curve s{}{}", colour,
                                                                       series.dashed            ? " dashed"
                                                                       : series.colour % 16 > 7 ? " dotted"
                                                                                                : ""));
  const bool all_missed = !series.points.empty() && std::all_of(series.points.begin(), series.points.end(),
                                                                [](const Point& p) { return p.missed; });
  if (all_missed)
    picture.path(triangle(x + 10, y + 1), "open s" + colour);
  else if (series.markers)
    picture.circle(x + 10, y, series.thin ? 2.5 : 4, "f" + colour);
}

}  // namespace tapedeck
