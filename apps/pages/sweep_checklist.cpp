#include "apps/pages/sweep_checklist.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "apps/sweep/cell.h"

namespace tapedeck {
namespace {

struct Answer {
  Judged::Verdict verdict;
  std::string why;
};
Answer judged(bool holds, const std::string& why) {
  return {holds ? Judged::Verdict::holds : Judged::Verdict::fails, why};
}
Answer judged(bool holds, const std::string& yes, const std::string& no) { return judged(holds, holds ? yes : no); }
Answer no_matter(const std::string& why) { return {Judged::Verdict::other, why}; }

bool is_counted(const Json& cell) {
  const std::string purpose = text_in(cell, {"purpose"});
  return purpose != "pilot" && purpose != "tune";
}

std::string named(const std::vector<double>& sizes) {
  std::string out = sizes.size() == 1 ? "batch " : "batches ";
  for (size_t i = 0; i < sizes.size(); ++i) out += (i ? ", " : "") + digits(sizes[i]);
  return out;
}

// Sizes that do not fulfil it.
template <class F>
std::vector<double> sizes_without(const Json& summary, const F& fulfils) {
  std::vector<double> out;
  for (const Json& size : list_in(summary, {"sizes"}))
    if (!fulfils(size)) out.push_back(number_in(size, {"batch"}));
  return out;
}

Answer complete(const Json& summary) {
  return judged(text_in(summary, {"status"}) == "complete", "every planned cell has a result",
                "cells are still to run");
}

Answer intervals(const Json& summary) {
  if (list_in(summary, {"sizes"}).empty()) return no_matter("no size has been measured");
  if (is_horizon(summary)) return no_matter("all runs of a size together have one interval of steps, and no median");
  const auto few = sizes_without(summary, [](const Json& size) { return number_in(size, {"n"}) >= 6; });
  return judged(few.empty(), "each size's median has its exact 95 % interval, and n stands beside it",
                named(few) + ": fewer than the 6 runs that an interval of a median takes (--seeds 10)");
}

Answer seeds_apart(const Json& summary) {
  std::set<double> tuning, counted, both;
  for (const Json& cell : list_in(summary, {"cells"}))
    (is_counted(cell) ? counted : tuning).insert(number_in(cell, {"seed"}));
  if (tuning.empty() || counted.empty()) return no_matter("there are not both kinds of cells");
  std::set_intersection(tuning.begin(), tuning.end(), counted.begin(), counted.end(), std::inserter(both, both.end()));
  return judged(both.empty(),
                fmt::format("{} of tuning, {} of the report, none of them in both",
                            times(double(tuning.size()), "seed"), counted.size()),
                fmt::format("{} of {} seeds of the report had been seen in tuning", both.size(), counted.size()));
}

// Whether the order that cells began in mixed the sizes, so that a machine that grows slow or warm favoured none.
Answer shuffled(const Json& summary) {
  std::vector<std::pair<double, double>> cells;
  int silent = 0;
  for (const Json& cell : list_in(summary, {"cells"})) {
    const double batch = number_in(cell, {"batch"}), began = number_in(cell, {"began"});
    if (!is_counted(cell) || !(batch > 0) || text_in(cell, {"status"}) == "failed") continue;
    if (std::isnan(began))
      ++silent;
    else
      cells.emplace_back(began, std::log(batch));
  }
  if (silent > 0) return no_matter("when it began is not recorded of " + times(silent, "run"));
  if (cells.size() < 6) return no_matter("fewer than 6 runs");
  std::sort(cells.begin(), cells.end());
  const auto n = static_cast<double>(cells.size());
  double mean = 0, product = 0, squares = 0;
  for (const auto& cell : cells) mean += cell.second / n;
  for (size_t i = 0; i < cells.size(); ++i) {
    const double off = cells[i].second - mean;
    product += off * (static_cast<double>(i) - (n - 1) / 2), squares += off * off;
  }
  if (squares < 1e-12) return no_matter("one size alone");
  const double r = product / std::sqrt(squares * n * (n * n - 1) / 12);
  return judged(std::abs(r) < 3 / std::sqrt(n),
                fmt::format("by when they began: place and log size of {:.0f} runs correlate by {:+.2f}", n, r));
}

Answer equal_trials(const Json& summary) {
  double least = NAN, most = NAN, fewest = NAN, largest = NAN;
  for (const Json& size : list_in(summary, {"sizes"})) {
    const Json& tuned = list_in(size, {"tuned"});
    if (tuned.empty()) continue;
    fewest = std::fmin(fewest, double(tuned.size())), largest = std::fmax(largest, double(tuned.size()));
    for (const Json& t : tuned)
      least = std::fmin(least, number_in(t, {"n"})), most = std::fmax(most, number_in(t, {"n"}));
  }
  if (std::isnan(fewest) || std::isnan(least)) return no_matter("no rates were tried against each other");
  const auto range = [](double low, double high) {
    return low == high ? digits(low) : digits(low) + " to " + digits(high);
  };
  return judged(fewest == largest && least == most,
                fmt::format("{} rates a size, {} of each{}", range(fewest, largest),
                            least == most ? times(least, "run") : range(least, most) + " runs",
                            fewest == largest ? "" : ": grids grew where the best lay at their edge"));
}

Answer inside(const Json& summary) {
  bool any = false;
  for (const Json& size : list_in(summary, {"sizes"})) any |= !std::isnan(number_in(size, {"rate"}));
  if (!any) return no_matter("no rate was tuned");
  const auto edge = sizes_without(summary, [](const Json& size) { return text_in(size, {"edge"}).empty(); });
  return judged(edge.empty(), "no tuned rate is the lowest or highest that was tried",
                named(edge) + ": the best rate lies at an edge");
}

Answer fixed_targets(const Json& summary) {
  const Json& values = list_in(summary, {"targets", "values"});
  if (values.empty()) return no_matter("there are no targets yet");
  Targets targets{text_in(summary, {"targets", "metric"}), {}, "", ""};
  for (const Json& value : values)
    if (value.is_number()) targets.values.push_back(value.get<double>());
  const std::string hash = text_in(summary, {"targets", "hash"});
  return judged(hash == targets.hash(), fmt::format("their hash {} is that of these values", hash),
                "their hash is not that of these values");
}

Answer one_time_costs(const Json& summary) {
  if (!is_true(summary, {"timed"})) return no_matter("seconds are not compared");
  int checked = 0;
  for (const Json& cell : list_in(summary, {"cells"})) {
    const double train = number_in(cell, {"train_seconds"}), wall = number_in(cell, {"wall_seconds"});
    if (std::isnan(train) || std::isnan(wall)) continue;
    ++checked;
    if (train > wall) return judged(false, text_in(cell, {"id"}) + " trained for longer than it took");
    for (const Json& at : list_in(cell, {"crossings"}))
      if (number_in(at, {"seconds"}) > train)
        return judged(false, text_in(cell, {"id"}) + " crossed a target after it had ended");
  }
  if (checked == 0) return no_matter("there are no cells");
  return judged(
      true,
      fmt::format("seconds are those of the training clock, which in each of {} cells is less than the wall clock",
                  checked));
}

Answer whole_batches(const Json& summary) {
  std::set<double> short_ones;
  double least = 1;
  bool any = false;
  for (const Json& cell : list_in(summary, {"cells"})) {
    const double share = number_in(cell, {"examples"}) / (number_in(cell, {"steps"}) * number_in(cell, {"batch"}));
    if (!std::isfinite(share)) continue;
    any = true;
    if (share < 0.98) short_ones.insert(number_in(cell, {"batch"})), least = std::min(least, share);
  }
  if (!any) return no_matter("there are no steps");
  return judged(short_ones.empty(), "examples are steps times the batch, within 2 %",
                fmt::format("{}: the last batch of each pass over the data is short, so that a step saw as little as "
                            "{:.0f} % of B on average; the "
                            "law takes these for whole",
                            named({short_ones.begin(), short_ones.end()}), 100 * least));
}

Answer recorded(const Json& machine) {
  std::string lacks;
  for (const char* key : {"processor", "compiler", "flags", "libraries", "commit"})
    if (text_in(machine, {key}).empty() || text_in(machine, {key}) == "unknown")
      lacks += (lacks.empty() ? "" : ", ") + std::string(key);
  return judged(lacks.empty(), "processor, compiler, flags, libraries and commit", "unknown: " + lacks);
}

Answer whole_machine(const Json& machine) {
  const double threads = number_in(machine, {"threads"}), cores = number_in(machine, {"allowed_cores"});
  if (std::isnan(threads) || std::isnan(cores)) return no_matter("threads or cores are not recorded");
  return judged(threads >= cores, fmt::format("{} of {}", times(threads, "thread"), times(cores, "core")));
}

Answer quiet(const Json& machine) {
  const Json& busy = part_of(machine, {"load", "busy"});
  if (!busy.is_boolean()) return no_matter("the load was not recorded");
  return judged(!busy.get<bool>(), "nothing else ran when it began",
                "other programs ran when it began: seconds may be too long");
}

// Each search has one interval of K, of which no interval of a ratio can be made.
Answer searched_again(const Json& twice) {
  const std::string first = range_in(part_of(twice, {"first"})).text(),
                    second = range_in(part_of(twice, {"second"})).text();
  if (!part_of(twice, {"agree"}).is_boolean())
    return no_matter("no two searches came to an end, or none of them passed");
  return judged(is_true(twice, {"agree"}), fmt::format("steps in {} and in {} agree", first, second),
                fmt::format("steps in {} and in {}: {} apart", first, second, places_in(twice)));
}

Answer again(const Json& summary) {
  if (const Json& twice = part_of(summary, {"again", "horizons"}); twice.is_object()) return searched_again(twice);
  if (!part_of(summary, {"again", "covers_one"}).is_boolean())
    return no_matter("too few runs, or it was not asked for");
  return judged(is_true(summary, {"again", "covers_one"}),
                fmt::format("ratio of steps {} to {}", digits(number_in(summary, {"again", "steps", "low"})),
                            digits(number_in(summary, {"again", "steps", "high"}))));
}

Answer bracketed(const Json& summary) {
  const Json& fit = part_of(summary, {"fit"});
  const LawFigures law(fit);
  if (std::isnan(law.b_crit)) return no_matter("there is no law, or it does not bend");
  bool below = false, above = false;
  for (const Json& row : list_in(fit, {"rows"}))
    if (number_in(row, {"reached"}) > 0)
      below |= number_in(row, {"batch"}) <= law.b_crit / 4, above |= number_in(row, {"batch"}) >= 2 * law.b_crit;
  return judged(below && above,
                fmt::format("some that reached are at most B_crit/4 = {}, some at least 2 B_crit = {}",
                            digits(law.b_crit / 4), digits(2 * law.b_crit)),
                fmt::format("none that reached is {}: B_crit is extrapolated",
                            below ? "2 B_crit = " + digits(2 * law.b_crit) + " or more"
                                  : "B_crit/4 = " + digits(law.b_crit / 4) + " or less"));
}

Answer misses_count(const Json& summary) {
  const double n = number_in(summary, {"fit", "n"});
  if (std::isnan(n)) return no_matter("there is no law");
  if (is_horizon(summary)) return no_matter("all seeds of a size are one entry of the law");
  double runs = 0, missed = 0;
  for (const Json& size : list_in(summary, {"sizes"})) {
    runs += number_in(size, {"n"});
    missed += number_in(size, {"n"}) - number_in(size, {"reached"});
  }
  if (std::isnan(runs) || std::isnan(missed)) return no_matter("not every size says how many runs it has");
  return judged(n == runs, fmt::format("{:.0f} of {:.0f} runs are in the law, {:.0f} of them as intervals without end",
                                       n, runs, missed));
}

Answer reasons(const Json& summary) {
  int broken = 0, bare = 0;
  for (const Json& cell : list_in(summary, {"cells"})) {
    const std::string status = text_in(cell, {"status"});
    if (status != "diverged" && status != "failed") continue;
    ++broken, bare += text_in(cell, {"reason"}).empty();
  }
  if (broken == 0) return no_matter("none did");
  return judged(bare == 0, fmt::format("{} listed, each with its reason", broken),
                fmt::format("{} of {} have no reason", bare, broken));
}

}  // namespace

std::vector<Judged> sweep_checklist(const Json& summary, const Json& machine) {
  std::vector<Judged> out;
  const auto judge = [&](const char* rule, const char* text, const Answer& answer) {
    out.push_back({rule, text, answer.verdict, answer.why});
  };
  judge("5", "n and an exact interval stand beside each median", intervals(summary));
  judge("9", "setup, machine and build are recorded", recorded(machine));
  judge("2", "the whole machine is used", whole_machine(machine));
  judge("10", "one-time costs are in no time", one_time_costs(summary));
  judge("7", "the same size twice shows no difference", again(summary));
  judge("", "failed and diverged cells are listed", reasons(summary));
  judge("", "runs that missed are in the law", misses_count(summary));
  judge("", "seeds of tuning and of the report are apart", seeds_apart(summary));
  judge("", "cells ran in a shuffled order", shuffled(summary));
  judge("", "every size had equally many trials in tuning", equal_trials(summary));
  judge("", "every tuned rate lies inside of what was tried", inside(summary));
  judge("", "targets are as they were fixed", fixed_targets(summary));
  judge("", "every step saw B examples", whole_batches(summary));
  judge("", "the sizes bracket B_crit", bracketed(summary));
  judge("", "the machine was quiet", quiet(machine));
  judge("", "the sweep is complete", complete(summary));
  return out;
}

}  // namespace tapedeck
