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

#include "engine/backend.h"
#include "engine/recompute.h"

namespace tapedeck {
namespace {

constexpr int measured_steps = 3;
constexpr int64_t cells = 2000;  // of the knapsack: so finely it counts bytes

std::string size_text(size_t bytes) {
  const double b = static_cast<double>(bytes);
  return bytes < 1 << 20 ? fmt::format("{:.1f} KiB", b / 1024) : fmt::format("{:.1f} MiB", b / (1 << 20));
}

class Trial {  // the model with made-up examples
 public:
  Trial(const Config& config, const Problem& problem, Device device)
      : problem_(problem),
        device_(device),
        model(make_model(config, problem)),
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
    std::nth_element(shares.begin(), shares.begin() + measured_steps / 2, shares.end());
    return shares[measured_steps / 2];
  }

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

 public:
  const std::unique_ptr<Network> model;

 private:
  ParameterSet parameters_;
};

struct Way {
  double bytes, flops;  // that a piece saves, and computes again
};

// The way of each piece that together save at least `needed` bytes for the least FLOP, the greatest savers first:
// backward comes to the first pieces last, and makes again what they need when all else is gone.
std::vector<size_t> cheapest(const std::vector<Way>& ways, int64_t pieces, double needed) {
  constexpr double never = std::numeric_limits<double>::infinity();
  const double cell = needed / cells;
  const auto cells_of = [&](const Way& way) { return static_cast<int64_t>(way.bytes / cell); };
  std::vector<std::vector<double>> cost(static_cast<size_t>(pieces) + 1, std::vector<double>(cells + 1, never));
  std::vector<std::vector<size_t>> taken(cost.size(), std::vector<size_t>(cells + 1));
  cost[0][0] = 0;
  for (size_t piece = 1; piece < cost.size(); ++piece)
    for (int64_t filled = 0; filled <= cells; ++filled)  // `cells` stands for more, too
      for (size_t way = 0; way < ways.size(); ++way) {
        if (cost[piece - 1][static_cast<size_t>(filled)] == never) continue;
        const auto to = static_cast<size_t>(std::min(cells, filled + cells_of(ways[way])));
        const double total = cost[piece - 1][static_cast<size_t>(filled)] + ways[way].flops;
        if (total < cost[piece][to]) cost[piece][to] = total, taken[piece][to] = way;
      }
  const auto saves_more = [&](size_t a, size_t b) { return ways[a].bytes > ways[b].bytes; };
  std::vector<size_t> order(ways.size());
  for (size_t way = 0; way < ways.size(); ++way) order[way] = way;
  std::stable_sort(order.begin(), order.end(), saves_more);
  // Rounded to cells the most that there is may miss what is needed by a hair.
  if (cost.back()[cells] == never) return std::vector<size_t>(static_cast<size_t>(pieces), order[0]);

  std::vector<size_t> chosen;
  size_t at = cells;
  for (size_t piece = cost.size() - 1; piece > 0; --piece) {
    const size_t way = taken[piece][at];
    chosen.push_back(way);
    for (size_t from = 0; from <= cells; ++from)  // the cell that this one was reached from
      if (static_cast<size_t>(std::min(cells, static_cast<int64_t>(from) + cells_of(ways[way]))) == at &&
          cost[piece - 1][from] + ways[way].flops == cost[piece][at]) {
        at = from;
        break;
      }
  }
  std::stable_sort(chosen.begin(), chosen.end(), saves_more);
  return chosen;
}

std::string pieces_text(const Network& model, const std::vector<size_t>& chosen) {
  const std::vector<Network::Saving> savings = model.savings();
  if (chosen.size() == 1) return savings[chosen[0]].what;
  std::string out = model.part_name();
  for (size_t first = 0, end; first < chosen.size(); first = end) {
    for (end = first + 1; end < chosen.size() && chosen[end] == chosen[first];) ++end;
    out += fmt::format("{}{}{}: {}", first == 0 ? " " : "; ", first,
                       end - first > 1 ? fmt::format("–{}", end - 1) : std::string(), savings[chosen[first]].what);
  }
  return out;
}

}  // namespace

RecomputePlan plan_recompute(const Config& config, const Problem& problem, Device device) {
  const size_t budget = static_cast<size_t>(config.recompute.amount);
  Trial trial(config, problem, device);
  Network& model = *trial.model;
  const int64_t pieces = model.pieces();
  const auto save_everywhere = [&](size_t way) {
    for (int64_t piece = 0; piece < pieces; ++piece) model.save(piece, way);
    return trial.saved(config.batch);
  };
  const std::vector<Network::Saving> savings = model.savings();
  const size_t all = save_everywhere(0);
  std::vector<Way> ways;
  size_t least = all;
  for (size_t way = 0; way < savings.size(); ++way) {
    const size_t saved = save_everywhere(way);
    least = std::min(least, saved);
    const double gained = static_cast<double>(all) - static_cast<double>(saved);
    ways.push_back({std::max(gained, 0.0) / static_cast<double>(pieces), savings[way].flops});
  }
  if (budget < least)
    throw UsageError(
        text("--recompute budget={}: the {} saves at least {} bytes ({}) for a batch of {}, whatever it computes again "
             "({} bytes without): use budget={} or more, or a smaller --batch",
             budget, model.name(), least, size_text(least), config.batch, all, least));

  RecomputePlan plan;
  plan.budget = budget, plan.saved_all = all;
  plan.savings = budget >= all ? std::vector<size_t>(static_cast<size_t>(pieces))
                               : cheapest(ways, pieces, static_cast<double>(all - budget));
  double flops = 0;
  for (size_t piece = 0; piece < plan.savings.size(); ++piece) {
    model.save(static_cast<int64_t>(piece), plan.savings[piece]);
    flops += savings[plan.savings[piece]].flops;
  }
  plan.saved = trial.saved(config.batch);
  plan.counted = flops / model.training_flops();
  plan.measured_batch = std::min<int64_t>(config.batch, 16);
  plan.measured = trial.share_of_time(plan.measured_batch);
  plan.pieces = pieces_text(model, plan.savings);
  return plan;
}

std::string RecomputePlan::str() const {
  return fmt::format(
      "recompute: {} saved for backward instead of {}, the budget is {}\n"
      "  {}\n"
      "  computes {:.1f} % of a step's FLOP again (counted), in {:.1f} % of its time (measured on {} examples)\n",
      size_text(saved), size_text(saved_all), size_text(budget), pieces, 100 * counted, 100 * measured, measured_batch);
}

Config with_recompute_planned(const Config& config, const Problem& problem, Device device) {
  Config planned = config;
  if (config.recompute.kind != Recompute::Kind::budget) return planned;
  const RecomputePlan plan = plan_recompute(config, problem, device);
  if (!config.quiet) std::cerr << plan.str() << std::flush;
  planned.recompute.plan = plan.savings;
  return planned;
}

}  // namespace tapedeck
