// A heat map: a cell a value, its colour in nine steps, its text within where that fits.
#include <fmt/format.h>

#include <algorithm>

#include "apps/pages/chart.h"
#include "apps/pages/html.h"
#include "apps/pages/label.h"
#include "apps/pages/picture.h"

namespace tapedeck {
namespace {

using Anchor = Svg::Anchor;
constexpr double size = 13, small = 12;
constexpr int steps = 9;

struct Colours {
  double low = INFINITY, high = -INFINITY;
  bool log;
  double place(double value) const { return log ? std::log(value) : value; }
  int step(double value) const {
    const double share = high > low ? (place(value) - place(low)) / (place(high) - place(low)) : 0.3;
    return std::clamp(static_cast<int>(share * steps), 0, steps - 1);
  }
};

Colours colours_of(const HeatMap& map) {
  Colours c{.log = map.log};
  for (const auto& row : map.cells)
    for (const HeatCell& cell : row) {
      if (!std::isfinite(cell.value)) continue;
      if (cell.value <= 0) c.log = false;
      c.low = std::min(c.low, cell.value), c.high = std::max(c.high, cell.value);
    }
  return c;
}

// Names below columns: every second, third, … where they would touch.
void draw_columns(Picture& picture, const HeatMap& map, double left, double bottom, double cell) {
  double widest = 0;
  for (const std::string& name : map.columns) widest = std::max(widest, text_width(name, small));
  const auto every = static_cast<size_t>(std::max(1.0, std::ceil((widest + 6) / cell)));
  for (size_t i = 0; i < map.columns.size(); i += every) {
    const double middle = left + (static_cast<double>(i) + 0.5) * cell;
    const double room = 2 * std::min(static_cast<double>(every) * cell / 2, middle);
    picture.text(middle, bottom + 17, shortened(map.columns[i], small, room), small, Anchor::middle, "soft");
  }
}

}  // namespace

std::string heat_map_svg(const HeatMap& map) {
  const double width = map.large ? 560 : 480;
  const size_t columns = std::max<size_t>(map.columns.size(), 1);
  double names = 20;
  for (const std::string& name : map.rows) names = std::max(names, text_width(name, small));
  const double left = std::min(names, width / 3) + 10, top = 28;
  const double cell = (width - left - 4) / static_cast<double>(columns);
  const double high = std::clamp(cell * 0.6, 22.0, 34.0);
  const double bottom = top + high * static_cast<double>(std::max<size_t>(map.rows.size(), 1));
  Picture picture(width, bottom + 46, fmt::format("{}: {} by {}", map.title, map.y_title, map.x_title));
  const Colours colours = colours_of(map);
  picture.text(2, 15, shortened(map.y_title, size, width - 4), size, Anchor::start, "soft");
  for (size_t r = 0; r < map.rows.size(); ++r) {
    const double y = top + static_cast<double>(r) * high;
    picture.text(left - 7, y + high / 2 + 0.35 * small, shortened(map.rows[r], small, left - 9), small, Anchor::end,
                 "soft");
    for (size_t c = 0; c < columns; ++c) {
      const HeatCell* const data = r < map.cells.size() && c < map.cells[r].size() ? &map.cells[r][c] : nullptr;
      const double x = left + static_cast<double>(c) * cell;
      const Box box = {x + 1, y + 1, x + cell - 1, y + high - 1};
      const int step = data && std::isfinite(data->value) ? colours.step(data->value) : -1;
      picture.rect(box,
                   step < 0 ? (data && !data->style.empty() ? data->style : "empty") : fmt::format("h{}", step), data ? data->title : "");
      if (data && data->best) picture.rect({x + 2, y + 2, x + cell - 2, y + high - 2}, "best");
      if (data && text_width(data->text, small) <= cell - 6 && !data->text.empty())
        picture.text(x + cell / 2, y + high / 2 + 0.35 * small, data->text, small, Anchor::middle,
                     step >= 5 ? "turned" : "", data->title);
    }
  }
  draw_columns(picture, map, left, bottom, cell);
  picture.text(width - 2, bottom + 38, shortened(map.x_title, size, width - 4), size, Anchor::end, "soft");
  return picture.finish();
}

std::string heat_map_figure(const HeatMap& map) { return figure(heat_map_svg(map), map.title, map.note, map.large); }

}  // namespace tapedeck
