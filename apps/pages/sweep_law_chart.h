// Charts of the law: steps and examples to the target against the batch size, as measured and as fitted.
#pragma once
#include <string>
#include <vector>

#include "apps/pages/chart.h"
#include "apps/pages/sweep_read.h"

namespace tapedeck {

struct SizeMiddle {
  double batch, n, reached;
  Middle steps, examples;  // with horizons the ends are of (failed, passed]
  bool horizon = false;
};
std::vector<SizeMiddle> middles_of_sweep(const Json& summary);
std::vector<SizeMiddle> middles_of_fit(const Json& fit);  // examples: batch times steps

// The batch sizes of a page, and the ends of the axis that all its charts share: around the sizes, and B_crit where
// that is no more than 4 times beyond them. Empty ends where there is no size.
struct SizeAxis {
  SizeAxis(const std::vector<SizeMiddle>& sizes, const LawFigures& law);
  void widen(const SizeAxis& other);  // to the sizes of both
  Axis axis() const;
  std::vector<double> grid(int n = 60) const;  // for curves; empty where there is no size
  double low = NAN, high = NAN;
};
SizeAxis axis_of_sweep(const Json& summary);

Chart steps_chart(const std::vector<SizeMiddle>& sizes, const std::vector<CountedRun>& runs, const Json& fit);
Chart examples_chart(const std::vector<SizeMiddle>& sizes, const std::vector<CountedRun>& runs, const Json& fit);

// What these and the chart of time have in common. Runs that missed are triangles at what they had come to; those that
// diverged are crosses at the plot's top, where they stretch nothing.
struct Measured {
  double batch;
  Middle middle;
  std::string title;
};
using FigureOfRun = double CountedRun::*;
void add_runs(Chart& chart, const std::vector<CountedRun>& runs, FigureOfRun figure);
void add_middles(Chart& chart, const std::vector<Measured>& middles, const char* name = "medians");
void add_curve(Chart& chart, const SizeAxis& sizes, const std::string& name, int colour,
               double (*value)(const LawFigures&, double), const LawFigures& law, bool dashed = false);
// Its 95 % band in fit_json(): steps, of examples times the batch. An empty name stands in no legend.
void add_law_band(Chart& chart, const Json& fit, const std::string& name, int colour, bool of_examples = false);
// Slope -1 from the smallest size at which most runs reached the target, down to the end of the axis; named once.
void add_ideal(Chart& chart, const SizeAxis& sizes, const std::vector<SizeMiddle>& middles);
// B_crit as a line, its interval as a band over the whole height; ends of the y axis from what was added.
void add_critical_size(Chart& chart, const SizeAxis& sizes, const LawFigures& law);
void fix_height(Chart& chart);
void fit_to_estimates(
    Chart& chart);  // the y axis to all points and their intervals; ends that run away stretch nothing

}  // namespace tapedeck
