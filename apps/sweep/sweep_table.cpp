#include "apps/sweep/sweep_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ostream>

#include "apps/progress.h"
#include "apps/scaling_fit.h"
#include "apps/stats.h"
#include "apps/sweep/horizon.h"
#include "apps/sweep/pilot.h"

namespace tapedeck {
namespace {

struct SoFar {
  int64_t runs = 0, reached = 0;
  std::string steps = "…";
};

SoFar of_passages(const SweepState& state, const std::vector<Cell>& runs) {
  SoFar out;
  std::vector<double> steps;
  for (const Cell& cell : runs)
    if (const CellResult* result = state.find(cell))
      steps.push_back(crossing(*result, state.targets->tightest(), cell.steps).upper);
  out.runs = std::ssize(steps);
  out.reached = std::count_if(steps.begin(), steps.end(), [](double s) { return std::isfinite(s); });
  if (!steps.empty()) out.steps = std::isinf(median(steps)) ? "not reached" : three_digits(median(steps));
  return out;
}

// At the K that the tightest target's search has come to.
SoFar of_horizons(const SweepState& state, int64_t batch) {
  const TargetSearch search = horizon_search(state, batch).tightest();
  const int64_t seeds = state.settings.seeds;
  if (!search.ended()) return {search.needed.empty() ? 0 : seeds - std::ssize(search.needed)};
  return {seeds, search.passed ? seeds : 0, search.interval()};
}

std::string tuned_text(const Tuning& tuned) {
  if (tuned.rate) return rate_text(*tuned.rate);
  return tuned.needed.empty() ? "none" : "…";
}

}  // namespace

std::string progress_table(const SweepState& state) {
  std::string out = fmt::format("{:>8} {:>6} {:>10} {:>8} {:>8} {:>13}\n", "batch", "tried", "rate", "runs", "reached",
                                state.settings.horizon ? "steps" : "median steps");
  for (const int64_t batch : state.settings.batches) {
    const Tuning tuned = tuning(state, batch);
    const auto tried = std::count_if(state.results.begin(), state.results.end(), [&](const auto& entry) {
      const Cell& cell = entry.second.first;
      return cell.purpose == Cell::Purpose::tune && cell.batch == batch;
    });
    const SoFar at =
        state.settings.horizon ? of_horizons(state, batch) : of_passages(state, runs_of(state, batch, tuned));
    out += fmt::format("{:>8} {:>6} {:>10} {:>8} {:>8} {:>13}\n", batch, tried, tuned_text(tuned),
                       fmt::format("{}/{}", at.runs, state.settings.seeds), at.reached, at.steps);
  }
  return out;
}

std::string cell_line(const SweepState& state, const Cell& cell, const CellResult& result) {
  std::string what = name(result.status);
  if (result.status == CellResult::Status::reached && state.targets) {
    const Crossing at = crossing(result, state.targets->tightest(), cell.steps);
    what = fmt::format("{} at step {:.0f}, {}", to_text(state.targets->tightest()), at.upper, seconds_text(at.seconds));
  } else if (!result.reason.empty()) {
    what += ": " + result.reason;
  } else if (cell.purpose == Cell::Purpose::pilot && state.settings.finds_targets()) {  // it cannot miss: it has none
    what = fmt::format("{} steps, lowest loss {:.4g}", result.steps, result.best_loss());
  } else if (state.settings.horizon) {
    what = fmt::format("{} steps, at their end a loss of {:.4g}", result.steps,
                       final_metric(result, {"loss", 0}).value_or(NAN));
  } else {
    what += fmt::format(": {} steps, lowest loss {:.4g}", result.steps, result.best_loss());
  }
  return fmt::format("{} batch {} rate {} seed {}: {}", name(cell.purpose), cell.batch, rate_text(cell.rate), cell.seed,
                     what);
}

void SweepTable::wipe() {
  if (lines_ > 0) stream_ << fmt::format("\033[{}A\r\033[J", lines_);
  lines_ = 0;
}

void SweepTable::message(const std::string& line) {
  if (quiet_) return;
  wipe();
  stream_ << line << std::endl;
}

void SweepTable::begins(const SweepState& state, const Cell& cell, double seconds_left) {
  if (quiet_ || !terminal_) return;
  wipe();
  const bool tuning = state.targets && pilot_cells_needed(state).empty();
  std::string text = tuning ? progress_table(state) : "";
  text += fmt::format("{} cells done; now {} at batch {}, rate {}, seed {}{}\n", state.results.size(),
                      name(cell.purpose), cell.batch, rate_text(cell.rate), cell.seed,
                      seconds_left > 0 ? "; about " + duration_text(seconds_left) + " left" : "");
  stream_ << text << std::flush;
  lines_ = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

void SweepTable::ended(const SweepState& state, const Cell& cell, const CellResult& result) {
  if (quiet_) return;
  if (!terminal_)
    stream_ << fmt::format("{:>4} {}", state.results.size(), cell_line(state, cell, result)) << std::endl;
  else if (result.status == CellResult::Status::failed)
    message(cell_line(state, cell, result));
}

}  // namespace tapedeck
