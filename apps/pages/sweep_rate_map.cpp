// The heat map of rates. Where every size tried the same few rates (--rates), its rows are these; else each size has a
// grid of its own, and rows are multiples of its tuned rate.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "apps/pages/html.h"
#include "apps/pages/sweep_charts.h"
#include "apps/sweep/cell.h"

namespace tapedeck {
namespace {

struct Tried {
  double rate, n, reached, diverged;
  double figure;  // median steps; with horizons the loss at their end
  double cap;
};
struct Column {
  double batch, rate;  // tuned; NaN: none
  std::vector<Tried> tried;
  double best = NAN;  // least figure of a rate
  bool horizon = false;
};

std::vector<Column> columns_of(const Json& summary) {
  std::vector<Column> out;
  for (const Json& size : list_in(summary, {"sizes"})) {
    Column column{number_in(size, {"batch"}), above_zero(number_in(size, {"rate"})), {}};
    column.horizon = is_horizon(summary);
    for (const Json& t : list_in(size, {"tuned"})) {
      const Tried tried{number_in(t, {"rate"}),
                        number_in(t, {"n"}),
                        number_in(t, {"reached"}),
                        number_in(t, {"diverged"}),
                        above_zero(number_in(t, {column.horizon ? "loss" : "steps"})),
                        number_in(t, {"cap"})};
      if (!(tried.rate > 0)) continue;
      column.tried.push_back(tried);
      column.best = std::fmin(column.best, tried.figure);
    }
    if (column.batch > 0 && !column.tried.empty()) out.push_back(column);
  }
  return out;
}

// Rates by name of row, in 4 digits; multiples of the tuned rate as powers of the fourth root of 2, the step of the
// grid.
bool same_rates(const std::vector<Column>& columns) {
  std::map<std::string, int> rates;
  size_t most = 0;
  for (const Column& c : columns) {
    most = std::max(most, c.tried.size());
    for (const Tried& t : c.tried) ++rates[rate_text(t.rate)];
  }
  return rates.size() <= most + 2;
}

double row_of(const Column& column, const Tried& tried, bool absolute) {
  if (absolute) return rounded_rate(tried.rate);
  const double centre = std::isnan(column.rate) ? column.tried[column.tried.size() / 2].rate : column.rate;
  return std::round(4 * std::log2(tried.rate / centre));
}

HeatCell cell_of(const Column& column, const Tried& t) {
  HeatCell out;
  out.best = t.rate == column.rate;
  std::string how;
  if (!std::isnan(t.figure)) {
    out.value = t.figure / column.best;
    out.text = fmt::format("{:.2f}{}", out.value, t.reached < t.n ? "△" : "");
    how = column.horizon ? fmt::format("a median loss of {} after {} steps", digits(t.figure), digits(t.cap))
                         : fmt::format("median {} steps", digits(t.figure));
    how += fmt::format(", {:.2f} of the least of this size", out.value);
  } else if (t.diverged > 0) {
    out.text = "×", out.style = "blown", how = "diverged";
  } else {
    out.text = "△", out.style = "lost", how = "missed by step " + digits(t.cap);
  }
  out.title =
      fmt::format("batch {}, rate {}{}: {}; {}, {} diverged", digits(column.batch), short_number(t.rate),
                  out.best ? " (tuned)" : "", how,
                  column.horizon ? times(t.n, "run") : fmt::format("{} of {} reached", digits(t.reached), digits(t.n)),
                  digits(t.diverged));
  return out;
}

}  // namespace

std::string rate_map_figure(const Json& summary) {
  const std::vector<Column> columns = columns_of(summary);
  if (columns.empty())
    return paragraph("No rates were tried against each other, so that there is no map of them.", "note");
  const bool absolute = same_rates(columns);
  std::map<double, std::vector<HeatCell>, std::greater<>> rows;
  for (size_t i = 0; i < columns.size(); ++i)
    for (const Tried& t : columns[i].tried) {
      std::vector<HeatCell>& row = rows[row_of(columns[i], t, absolute)];
      row.resize(columns.size());
      if (row[i].title.empty() || t.rate == columns[i].rate) row[i] = cell_of(columns[i], t);
    }
  const bool horizon = is_horizon(summary);
  HeatMap map{.title = fmt::format("{} by rate and batch size, over the least of the size",
                                   horizon ? "Loss at the end of the first horizon" : "Steps")};
  map.note =
      horizon
          ? "Frame: the tuned rate, chosen by the mean over a rate and its neighbours. × on red: diverged. Empty: not "
            "tried."
          : "Frame: the tuned rate, chosen by the mean over a rate and its neighbours. △ on grey: missed its cap; × "
            "on red: diverged; a number with △: some of its runs missed. Empty: not tried.";
  map.x_title = "batch size", map.y_title = absolute ? "learning rate" : "rate over the tuned rate of the size";
  map.log = true, map.large = true;
  for (const Column& c : columns) map.columns.push_back(digits(c.batch));
  for (auto& [row, cells] : rows) {
    map.rows.push_back(absolute ? short_number(row) : fmt::format("{:.3g}", std::pow(2, row / 4)));
    map.cells.push_back(std::move(cells));
  }
  return heat_map_figure(map);
}

}  // namespace tapedeck
