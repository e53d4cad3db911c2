// What a page says of fixed horizons: every K that was tried, by target and size, and the middle size's two searches.
#include <fmt/format.h>

#include "apps/pages/axis.h"
#include "apps/pages/html.h"
#include "apps/pages/sweep_tables.h"

namespace tapedeck {
namespace {

std::string trial_text(const Json& trial) {
  const double mean = number_in(trial, {"mean"}), p = number_in(trial, {"p"});
  return fmt::format("{}: {}, p {}{}", digits(number_in(trial, {"steps"})),
                     std::isnan(mean) ? "not finite" : short_number(mean),
                     std::isnan(p) ? "n/a" : fmt::format("{:.2g}", p), is_true(trial, {"passes"}) ? ", passes" : "");
}

}  // namespace

std::string horizons_table(const Json& summary) {
  if (!is_horizon(summary)) return "";
  Table table{{"target", "batch", "fewest steps", "each K that was tried: mean over its runs, and p"}, {}};
  for (const Json& value : list_in(summary, {"targets", "values"}))
    for (const Json& size : list_in(summary, {"sizes"})) {
      const double target = value.is_number() ? value.get<double>() : NAN;
      std::string tried;
      for (const Json& trial : list_in(size, {"horizons"}))
        if (number_in(trial, {"target"}) == target) tried += (tried.empty() ? "" : "; ") + trial_text(trial);
      if (!tried.empty())
        table.rows.push_back({number_cell(short_number(target)),
                              number_cell(digits(number_in(size, {"batch"}))),
                              number_cell(range_at(size, target).text()),
                              {tried}});
    }
  if (table.rows.empty()) return "";
  return html_table(table,
                    "The fewest steps lie above the K that failed and are at most the K that passed, on a grid of √2. "
                    "A K passes where the mean over its runs is better than the target with p < 0.01. Targets share "
                    "runs, and the rate, which is tuned at the first K of the tightest.");
}

std::string searched_twice_words(const Json& summary) {
  const Json& twice = part_of(summary, {"again", "horizons"});
  const std::string batch = digits(number_in(summary, {"again", "batch"}));
  const std::string of =
      fmt::format("Batch {} was searched twice for the tightest target, with n = {} other seeds of each K", batch,
                  digits(number_in(summary, {"again", "n"})));
  if (!part_of(twice, {"agree"}).is_boolean())
    return paragraph(of + ": the two cannot be compared, since one is not at its end, or no K passed in either.");
  const std::string both =
      fmt::format("{}: the fewest steps lie in {} and in {}", of, range_in(part_of(twice, {"first"})).text(),
                  range_in(part_of(twice, {"second"})).text());
  const std::string why =
      " All runs of a search together give one interval, and of one number each there is no interval of their ratio";
  if (is_true(twice, {"agree"}))
    return paragraph(both + ". They agree, as they should: no difference is shown." + why + ".");
  return paragraph(
      fmt::format("{}. The same size differs from itself here, by {}.{}, so that how often chance does that is not "
                  "known. To pass, a mean is to be {} deviations of its runs better than the target: more --seeds ask "
                  "for less.",
                  both, places_in(twice), why, digits(number_in(twice, {"margin"}))),
      "warn");
}

}  // namespace tapedeck
