// Bytes are counted on recorded forward passes of one and of two examples: what is saved is affine in the batch. Each
// piece of the model then takes one of its ways to save, by a knapsack over the pieces: the least FLOP for at least the
// bytes that are too many.
#include "apps/recompute_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>

#include "apps/stats.h"
#include "engine/backend.h"
#include "engine/recompute.h"

namespace tapedeck {
namespace {

constexpr int measured_steps = 3;
constexpr size_t cells = 2000;  // of the knapsack: so finely it counts bytes

std::string size_text(size_t bytes) {
  const double b = static_cast<double>(bytes);
  return bytes < 1 << 20 ? fmt::format("{:.1f} KiB", b / 1024) : fmt::format("{:.1f} MiB", b / (1 << 20));
}

class Trial {  // the model with made-up examples
 public:
  Trial(const Config& config, const Problem& problem, Device device)
      : model(make_model(config, problem)),
        problem_(problem),
        device_(device),
        parameters_(*model, device, find_precision(config), 0) {}

  size_t saved(int64_t batch) const {
    const double one = static_cast<double>(saved_by(1)), two = static_cast<double>(saved_by(2));
    return static_cast<size_t>(std::llround(one + (two - one) * static_cast<double>(batch - 1)));
  }
  // Seconds of computing again over those of forward and backward; the median of some steps.
  double share_of_time(int64_t batch) {
    std::vector<double> shares;
    for (int i = 0; i <= measured_steps; ++i) {
      const double share = share_of_one_step(problem_.throw_away(batch));
      if (i > 0) shares.push_back(share);  // the first warms up
    }
    return median(shares);
  }

  const std::unique_ptr<Network> model;

 private:
  size_t saved_by(int64_t batch) const {
    const Inputs inputs = problem_.throw_away(batch);
    Tape tape;
    const Tensor loss = problem_.loss((*model)(inputs.x, {.training = true}), inputs);
    return saved_activations(tape, inputs);
  }
  double share_of_one_step(const Inputs& inputs) {
    using Clock = std::chrono::steady_clock;
    parameters_.forget_gradients();
    backend(device_).sync();
    const RecomputeClock again;
    const auto start = Clock::now();
    Tape tape;
    tape.backward(problem_.loss((*model)(inputs.x, {.training = true}), inputs));
    backend(device_).sync();
    return again.seconds() / std::chrono::duration<double>(Clock::now() - start).count();
  }

  const Problem& problem_;
  const Device device_;
  ParameterSet parameters_;
};

struct Gain {           // of one way to save, for a piece
  double bytes, flops;  // that it saves, and computes again
};

// The way of each piece that together save at least `needed` bytes for the least FLOP, the greatest savers first:
// backward comes to the first pieces last, and makes again what they need when all else is gone.
std::vector<size_t> cheapest(const std::vector<Gain>& gains, int64_t pieces, double needed) {
  constexpr double never = std::numeric_limits<double>::infinity();
  struct Best {  // of the first pieces, that fill so many cells
    double flops = never;
    size_t way = 0, from = 0;  // of the last of them, and the cells filled before it
  };
  const double cell = needed / cells;
  std::vector<std::vector<Best>> best(static_cast<size_t>(pieces) + 1, std::vector<Best>(cells + 1));
  best[0][0].flops = 0;
  for (size_t piece = 1; piece < best.size(); ++piece)
    for (size_t from = 0; from <= cells; ++from) {
      const double before = best[piece - 1][from].flops;
      if (before == never) continue;
      for (size_t way = 0; way < gains.size(); ++way) {
        const size_t filled = from + static_cast<size_t>(gains[way].bytes / cell);
        Best& to = best[piece][std::min(cells, filled)];  // the last cell stands for more, too
        if (before + gains[way].flops < to.flops) to = {before + gains[way].flops, way, from};
      }
    }
  const auto saves_more = [&](size_t a, size_t b) { return gains[a].bytes > gains[b].bytes; };
  if (best.back()[cells].flops == never) {  // rounded to cells the most that there is may miss what is needed by a hair
    const auto most =
        std::max_element(gains.begin(), gains.end(), [](const Gain& a, const Gain& b) { return a.bytes < b.bytes; });
    return std::vector<size_t>(static_cast<size_t>(pieces), static_cast<size_t>(most - gains.begin()));
  }
  std::vector<size_t> chosen;
  for (size_t piece = best.size() - 1, at = cells; piece > 0; --piece) {
    chosen.push_back(best[piece][at].way);
    at = best[piece][at].from;
  }
  std::stable_sort(chosen.begin(), chosen.end(), saves_more);
  return chosen;
}

std::string pieces_text(const Network& model, const std::vector<size_t>& chosen) {
  const std::vector<Network::Saving> ways = model.ways();
  if (chosen.size() == 1) return ways[chosen[0]].what;
  std::string out = model.part_name();
  for (size_t first = 0, end; first < chosen.size(); first = end) {
    for (end = first + 1; end < chosen.size() && chosen[end] == chosen[first];) ++end;
    out += fmt::format("{}{}{}: {}", first == 0 ? " " : "; ", first,
                       end - first > 1 ? fmt::format("–{}", end - 1) : std::string(), ways[chosen[first]].what);
  }
  return out;
}

}  // namespace

RecomputePlan plan_recompute(const Config& config, const Problem& problem, Device device) {
  const size_t budget = static_cast<size_t>(config.recompute.amount);
  Config plain = config;
  plain.recompute = {};
  const Trial trial(plain, problem, device);
  Network& model = *trial.model;
  const int64_t pieces = model.pieces();
  const auto saved_with = [&](const std::vector<size_t>& ways) {
    for (int64_t piece = 0; piece < pieces; ++piece) model.save(piece, ways[static_cast<size_t>(piece)]);
    return trial.saved(config.batch);
  };
  const auto everywhere = [&](size_t way) { return std::vector<size_t>(static_cast<size_t>(pieces), way); };
  const std::vector<Network::Saving> ways = model.ways();
  const size_t all = saved_with(everywhere(0));
  std::vector<Gain> gains;
  size_t least = all, thriftiest = 0;
  for (size_t way = 0; way < ways.size(); ++way) {
    const size_t saved = saved_with(everywhere(way));
    if (saved < least) least = saved, thriftiest = way;
    const double gained = static_cast<double>(all) - static_cast<double>(saved);
    gains.push_back({std::max(gained, 0.0) / static_cast<double>(pieces), ways[way].flops});
  }
  if (budget < least)
    throw UsageError(
        text("--recompute budget={}: the {} saves at least {} bytes ({}) for a batch of {}, whatever it computes again "
             "({} bytes without): use budget={} or more, or a smaller --batch",
             budget, model.name(), least, size_text(least), config.batch, all, least));

  RecomputePlan plan{
      .ways = everywhere(0), .budget = budget, .saved = all, .saved_all = all, .counted = 0, .pieces = {}};
  // A piece saves as much as when all do the same, but for what it shares with its neighbours: so the plan is measured,
  // and where that is too much the next must save more. The last resort is known to fit.
  for (double needed = static_cast<double>(all) - static_cast<double>(budget); plan.saved > budget;) {
    const bool can = needed < static_cast<double>(all - least);
    plan.ways = can ? cheapest(gains, pieces, needed) : everywhere(thriftiest);
    plan.saved = saved_with(plan.ways);
    const double too_much = static_cast<double>(plan.saved) - static_cast<double>(budget);
    needed += std::max(too_much, 0.01 * static_cast<double>(all - least));  // it ends, whatever neighbours share
    if (!can) break;
  }
  double flops = 0;
  for (const size_t way : plan.ways) flops += ways[way].flops;
  plan.counted = flops / model.training_flops();
  plan.pieces = pieces_text(model, plan.ways);
  return plan;
}

RecomputeTime measure_recompute(const Config& planned, const Problem& problem, Device device) {
  const int64_t batch = std::min<int64_t>(planned.batch, 16);
  return {Trial(planned, problem, device).share_of_time(batch), batch};
}

std::string plan_text(const RecomputePlan& plan, const RecomputeTime& time) {
  return fmt::format(
      "recompute: {} saved for backward instead of {}, the budget is {}\n"
      "  {}\n"
      "  computes {:.1f} % of a step's FLOP again (counted), in {:.1f} % of its time (measured on {} examples)\n",
      size_text(plan.saved), size_text(plan.saved_all), size_text(plan.budget), plan.pieces, 100 * plan.counted,
      100 * time.share, time.batch);
}

Config with_recompute_planned(const Config& config, const Problem& problem, Device device) {
  Config planned = config;
  if (config.recompute.kind != Recompute::Kind::budget) {
    make_model(config, problem);  // refuses more parts in a segment than there are
    return planned;
  }
  const RecomputePlan plan = plan_recompute(config, problem, device);
  planned.recompute.plan = plan.ways;
  if (!config.quiet) std::cerr << plan_text(plan, measure_recompute(planned, problem, device)) << std::flush;
  return planned;
}

}  // namespace tapedeck
