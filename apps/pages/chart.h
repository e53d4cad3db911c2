// Charts as inline SVG for the pages of html.h: lines, points, intervals, bands, regions and heat maps. Text never
// touches text nor leaves the picture, and what does not fit into the plot is said below it.
//
//   Chart chart{.title = "steps to the target", .x = {.title = "batch size", .scale = Scale::log2},
//               .y = {.title = "steps", .scale = Scale::log}};
//   chart.series.push_back({.name = "measured", .points = {{.x = 32, .y = 410, .low = 380, .high = 455}}, .line =
//   false,
//                           .markers = true});
//   chart.guides.push_back({.value = 310, .vertical = true, .text = "B_crit 310"});
//   page += chart_figure(chart);
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "apps/pages/axis.h"

namespace tapedeck {

struct Point {
  double x, y;                   // y not finite: a gap in the line; with `missed`, the top of the plot
  double low = NAN, high = NAN;  // whisker of an interval; an infinite end goes to the plot's edge
  std::string title = {};        // shown under the pointer; else "name: x, y"
  bool missed = false;           // drawn as a hollow triangle: at least this much
};

struct Series {
  std::string name = {};  // stands in the legend; empty: not there (one of many alike)
  int colour = 0;         // 0 to 7; above 7 the same colours dashed
  std::vector<Point> points = {};
  bool line = true, markers = false, thin = false, dashed = false;  // thin: small markers, too
  bool diverged = false;  // its line may leave the plot without stretching a robust axis; × marks its last point
  std::string note = {};  // stands at its last point, or in the legend: "diverged at step 7"
};

struct Band {  // filled between two curves, such as an interval of a fit
  std::string name = {};
  int colour = 0;
  struct Edge {
    double x, low, high;
  };
  std::vector<Edge> edges = {};  // in the order of x
};

struct Region {  // from low to high on the x axis, shaded; an infinite end: to the plot's edge
  double low, high;
  std::string text = {};
  bool shaded = true;  // false: only the text
};

struct Guide {  // a dashed straight line across the plot
  double value;
  bool vertical = false;
  std::string text = {};
};

struct Chart {
  std::string title = {};
  std::string note = {};  // below the title, smaller
  Axis x = {}, y = {};
  std::vector<Series> series = {};
  std::vector<Band> bands = {};
  std::vector<Region> regions = {};
  std::vector<Guide> guides = {};
  bool large = false;  // wider: the one chart that a page is about
};
std::string chart_svg(const Chart& chart);     // <svg>…</svg>, its text in the colours of the page
std::string chart_figure(const Chart& chart);  // <figure> with title and note

struct HeatCell {
  double value = NAN;      // its colour; not finite: none
  std::string text = {};   // within the cell where it fits; give it where there is no value: "diverged"
  std::string title = {};  // shown under the pointer
  bool best = false;       // framed
  std::string style = {};  // "lost", "blown": a colour of its own where there is no value
};
struct HeatMap {
  std::string title = {};
  std::string note = {};
  std::string x_title = {}, y_title = {};
  std::vector<std::string> columns = {}, rows = {};  // names, left to right and top to bottom
  std::vector<std::vector<HeatCell>> cells = {};     // [row][column]; what is missing is empty
  bool log = false;                                  // colours by the logarithm
  bool large = false;
};
std::string heat_map_svg(const HeatMap& map);
std::string heat_map_figure(const HeatMap& map);

}  // namespace tapedeck
