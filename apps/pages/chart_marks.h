// What a chart draws within its plot. Lines are cut at the plot's edges, so that no coordinate leaves it.
#pragma once
#include "apps/pages/chart.h"
#include "apps/pages/label.h"
#include "apps/pages/picture.h"

namespace tapedeck {

struct Plot {
  Box box;
  const Ruler &x, &y;
};

void draw_region(Picture& picture, const Plot& plot, const Region& region);
void draw_band(Picture& picture, const Plot& plot, const Band& band);
void draw_guide(Picture& picture, const Plot& plot, const Guide& guide);
// Returns how many of its points cannot be shown. Tells `labels`, where there are any, what it covers.
int64_t draw_series(Picture& picture, const Plot& plot, const Series& series, Labels* labels);
void draw_key(Picture& picture, const Series& series, double x, double y);  // 20 pixels of the series, for the legend
// Where the series ends within the plot: where its note belongs. False where nothing of it is shown.
bool last_place(const Plot& plot, const Series& series, double& x, double& y);

}  // namespace tapedeck
