// A chart from its data: limits, room for the texts of the axes, what lies in the plot, then labels and the legend.
#include "apps/pages/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/pages/chart_marks.h"
#include "apps/pages/html.h"
#include "apps/pages/label.h"
#include "apps/pages/picture.h"

namespace tapedeck {
namespace {

using Anchor = Svg::Anchor;
constexpr double size = 13, small = 12;  // of text

// What counts for the ends of the y axis; see Axis::robust.
std::vector<double> values_of_y(const Chart& chart) {
  std::vector<double> values;
  double room = NAN;  // twice the first value of those that run away: the end where there are no others
  bool others = false;
  for (const Series& series : chart.series) {
    double first = NAN, last = NAN;
    for (const Point& p : series.points)
      if (std::isfinite(p.y)) first = std::isnan(first) ? p.y : first, last = p.y;
    const bool runs_away = chart.y.robust && (series.diverged || (first > 0 && last > 100 * first));
    const double most = runs_away ? std::max(2 * first, first) : INFINITY;
    others = others || (!runs_away && !std::isnan(first));
    if (runs_away && last > most) room = std::fmax(room, most);
    for (const Point& p : series.points)
      for (const double y : {p.y, p.low, p.high})
        if (std::isfinite(y) && y <= most) values.push_back(y);
  }
  if (!others && std::isfinite(room)) values.push_back(room);
  for (const Band& band : chart.bands)
    for (const Band::Edge& e : band.edges) values.insert(values.end(), {e.low, e.high});
  for (const Guide& guide : chart.guides)
    if (!guide.vertical) values.push_back(guide.value);
  return values;
}

std::vector<double> values_of_x(const Chart& chart) {
  std::vector<double> values;
  for (const Series& series : chart.series)
    for (const Point& p : series.points) values.push_back(p.x);
  for (const Band& band : chart.bands)
    for (const Band::Edge& e : band.edges) values.push_back(e.x);
  for (const Guide& guide : chart.guides)
    if (guide.vertical) values.push_back(guide.value);
  return values;
}

struct Frame {
  double width, height;
  Box plot;
  std::unique_ptr<Ruler> x, y;
  std::vector<Tick> x_ticks, y_ticks;
};

// The left margin depends on the texts of the y axis, which depend on the height alone.
Frame frame_of(const Chart& chart) {
  Frame f{};
  f.width = chart.large ? 560 : 480, f.height = chart.large ? 370 : 310;
  f.plot = {0, 28, f.width - 12, f.height - 50};
  f.y = std::make_unique<Ruler>(chart.y, values_of_y(chart), f.plot.bottom, f.plot.top);
  f.y_ticks = f.y->ticks(small);
  double widest = 20;
  for (const Tick& tick : f.y_ticks) widest = std::max(widest, text_width(tick.text, small));
  f.plot.left = widest + 12;
  const std::vector<double> xs = values_of_x(chart);
  for (int pass = 0; pass < 2; ++pass) {  // the last text of the x axis needs half its width on the right
    f.x = std::make_unique<Ruler>(chart.x, xs, f.plot.left, f.plot.right);
    f.x_ticks = f.x->ticks(small);
    for (const Tick& tick : f.x_ticks) {
      const double right = f.x->at(tick.value) + text_width(tick.text, small) / 2;
      if (right > f.width - 2) f.plot.right -= right - (f.width - 2);
    }
  }
  std::erase_if(f.x_ticks, [&](const Tick& tick) {
    const double half = text_width(tick.text, small) / 2, at = f.x->at(tick.value);
    return at + half > f.width || at - half < 0;
  });
  return f;
}

void draw_axes(Picture& picture, const Chart& chart, const Frame& f) {
  for (const Tick& tick : f.y_ticks) {
    const double y = f.y->at(tick.value);
    picture.line(f.plot.left, y, f.plot.right, y, tick.text.empty() ? "grid minor" : "grid");
    if (!tick.text.empty()) picture.text(f.plot.left - 7, y + 0.35 * small, tick.text, small, Anchor::end, "soft");
  }
  for (const Tick& tick : f.x_ticks) {
    const double x = f.x->at(tick.value);
    picture.line(x, f.plot.top, x, f.plot.bottom, tick.text.empty() ? "grid minor" : "grid");
    if (!tick.text.empty()) picture.text(x, f.plot.bottom + 20, tick.text, small, Anchor::middle, "soft");
  }
  picture.line(f.plot.left, f.plot.bottom, f.plot.right, f.plot.bottom, "axis");
  const auto title = [&](double x, double y, const std::string& text, Anchor anchor) {
    const std::string shown = shortened(text, size, f.width - 4);
    picture.text(x, y, shown, size, anchor, "soft", shown == text ? "" : text);
  };
  title(2, 15, chart.y.title, Anchor::start);
  title(f.width - 2, f.plot.bottom + 41, chart.x.title, Anchor::end);
}

struct LegendEntry {
  std::string text;
  const Series* series;  // or a band
  const Band* band;
};

// Rows of entries below the chart; returns where the next row would begin.
double draw_legend(Picture& picture, const std::vector<LegendEntry>& entries, const Frame& f, bool draw) {
  double x = 2, y = f.height + 10;
  if (entries.empty()) return f.height;
  for (const LegendEntry& entry : entries) {
    const double key = entry.series || entry.band ? 26 : 0;
    const std::string text = shortened(entry.text, size, f.width - 10 - key);
    const double width = key + text_width(text, size) + 16;
    if (x > 2 && x + width > f.width) x = 2, y += 20;
    if (draw) {
      if (entry.band) picture.rect({x, y - 9, x + 20, y + 1}, fmt::format("band f{}", entry.band->colour % 8));
      if (entry.series) draw_key(picture, *entry.series, x, y - 4);
      picture.text(x + key, y, text, size, Anchor::start, {}, text == entry.text ? "" : entry.text);
    }
    x += width;
  }
  return y + 10;
}

}  // namespace

std::string chart_svg(const Chart& chart) {
  const Frame f = frame_of(chart);
  const Plot plot{f.plot, *f.x, *f.y};
  Labels labels(f.plot);
  std::vector<LegendEntry> legend;
  for (const Band& band : chart.bands)
    if (!band.name.empty()) legend.push_back({band.name, nullptr, &band});

  Picture marks(f.width, f.height, chart.title);  // drawn twice: the legend's height is known at the end
  const auto draw = [&](Picture& picture, bool first) {
    draw_axes(picture, chart, f);
    for (const Region& region : chart.regions) draw_region(picture, plot, region);
    for (const Band& band : chart.bands) draw_band(picture, plot, band);
    for (const Guide& guide : chart.guides) draw_guide(picture, plot, guide);
    int64_t beyond = 0;
    for (const Series& series : chart.series) beyond += draw_series(picture, plot, series, first ? &labels : nullptr);
    return beyond;
  };
  const int64_t beyond = draw(marks, true);

  struct Note {
    Placed at;
    std::string text;
    std::string style;
  };
  std::vector<Note> notes;
  const auto place = [&](const std::vector<std::pair<double, double>>& near, const std::string& text,
                         const std::string& style) {
    Note note{{}, text, style};
    if (text.empty() || !labels.place(near, text, small, note.at)) return text.empty();
    notes.push_back(note);
    return true;
  };
  for (const Guide& guide : chart.guides)
    if (guide.vertical && f.x->within(guide.value))
      for (double y = f.plot.top; y < f.plot.bottom; y += 5) labels.avoid(f.x->at(guide.value), y);
  for (const Series& series : chart.series) {
    std::string said = series.name;
    double x = 0, y = 0;
    const bool shown = last_place(plot, series, x, y);
    if (!(shown && place({{x, y}}, series.note, "halo")) && !series.note.empty())
      said += (said.empty() ? "" : ": ") + series.note;
    if (!said.empty()) legend.push_back({said, &series, nullptr});
  }
  for (const Guide& guide : chart.guides) {
    const bool shown = guide.vertical ? f.x->within(guide.value) : f.y->within(guide.value);
    if (!shown) continue;
    const double at = guide.vertical ? f.x->at(guide.value) : f.y->at(guide.value);
    const double middle = (f.plot.left + f.plot.right) / 2, half = (f.plot.top + f.plot.bottom) / 2;
    const bool placed =
        guide.vertical ? place({{at, f.plot.top + 4}, {at, half}, {at, f.plot.bottom - 4}}, guide.text, "soft halo")
                       : place({{f.plot.right - 4, at}, {middle, at}, {f.plot.left + 4, at}}, guide.text, "soft halo");
    if (!placed) legend.push_back({guide.text, nullptr, nullptr});
  }
  for (const Region& region : chart.regions) {
    const double left = f.x->can_show(region.low) ? std::max(f.x->at(region.low), f.plot.left) : f.plot.left;
    const double right = f.x->can_show(region.high) ? std::min(f.x->at(region.high), f.plot.right) : f.plot.right;
    if (left >= right) continue;
    const double middle = (left + right) / 2;
    if (!place({{middle, f.plot.top + 4}, {middle, f.plot.bottom - 4}}, region.text, "soft halo"))
      legend.push_back({region.text, nullptr, nullptr});
  }
  if (beyond > 0) legend.push_back({fmt::format("{} of the points lie beyond the axis", beyond), nullptr, nullptr});

  const double height = draw_legend(marks, legend, f, false);
  Picture picture(f.width, height, fmt::format("{}: {} by {}", chart.title, chart.y.title, chart.x.title));
  draw(picture, false);
  for (const Note& note : notes) picture.text(note.at.x, note.at.y, note.text, small, note.at.anchor, note.style);
  if (chart.series.empty() && chart.bands.empty())
    picture.text((f.plot.left + f.plot.right) / 2, (f.plot.top + f.plot.bottom) / 2, "no data", size, Anchor::middle,
                 "soft");
  draw_legend(picture, legend, f, true);
  return picture.finish();
}

std::string chart_figure(const Chart& chart) { return figure(chart_svg(chart), chart.title, chart.note, chart.large); }

}  // namespace tapedeck
