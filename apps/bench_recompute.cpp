// tapedeck bench recompute: the training step of a gpt by what it computes again in backward (--recompute): time of a
// step and bytes saved for backward, over those of none. All policies take turns, a step each in every round, and their
// first gradients are compared bit by bit.
#include <fmt/format.h>

#include <memory>

#include "apps/bench_report.h"
#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/device_time.h"
#include "apps/recompute_plan.h"
#include "engine/backend.h"

namespace tapedeck {
namespace {

constexpr int64_t warmup_rounds = 2;

class Policy {
 public:
  Policy(const Config& config, const Problem& problem, Device device, std::string name)
      : name(std::move(name)),
        problem_(problem),
        device_(device),
        learner_(config, problem, static_cast<uint64_t>(config.seed), device, find_precision(config)),
        inputs_(problem.throw_away(config.batch)) {
    std::vector<int32_t> ids;
    for (int64_t i = 0; i < inputs_.x.count(); ++i) ids.push_back(static_cast<int32_t>(i * 7 % problem.outputs()));
    copy(inputs_.x, Tensor::from(ids, inputs_.x.shape));
  }

  std::vector<double> first_gradients() {
    pass();
    return learner_.parameters.gradients().doubles();
  }
  void round(bool warmup) {
    Arena& arena = backend(device_).arena();
    arena.reset_peak();
    const size_t before = arena.use().bytes;
    const auto step = [this] {
      pass();
      learner_.optimizer.advance({.schedule = {.base = 1e-3}});
    };
    const double ms = time_work(device_, 1, step).front().device * 1e3;
    peak_ = arena.use().peak_bytes - before;
    if (!warmup) times_.push_back(ms);
  }
  Json row(const Policy& none) const {
    Json out = bench_row("recompute", {{"policy", name}});
    add_times(out, "median_ms", times_);
    out["saved_bytes"] = saved_;
    out["saved_over_none"] = static_cast<double>(saved_) / static_cast<double>(none.saved_);
    out["peak_bytes"] = peak_;
    add_ratio(out["time_over_none"], times_, none.times_);
    return out;
  }
  size_t saved() const { return saved_; }

  const std::string name;

 private:
  void pass() {
    learner_.parameters.forget_gradients();
    saved_ = learn(learner_, problem_, inputs_, {.training = true, .seed = 1}, 1);
  }
  const Problem& problem_;
  const Device device_;
  Learner learner_;
  Inputs inputs_;
  size_t saved_ = 0, peak_ = 0;
  std::vector<double> times_;
};

std::string table(const Json& document, const Config& config, Device device) {
  std::string out = fmt::format(
      "gpt of {} layers, width {}, {} heads, {} examples of {} tokens, {} on {}, {} thread{}; n = {} rounds, {} "
      "warm-up "
      "rounds left out\n",
      config.layers, config.width, config.heads, config.batch, document["context"].get<int64_t>(), config.precision,
      name(device), threads(), threads() == 1 ? "" : "s", config.rounds, warmup_rounds);
  out += fmt::format("{:<12} {:>10} {:>10} {:>9} {:>10}   {}\n", "policy", "median ms", "saved MiB", "of none",
                     "peak MiB", "time / none");
  const double mib = 1 << 20;
  for (const Json& row : document["rows"]) {
    out += fmt::format("{:<12} {:>10.2f} {:>10.2f} {:>8.1f}% {:>10.2f}   {}{}\n", row["policy"].get<std::string>(),
                       row["median_ms"].get<double>(), row["saved_bytes"].get<double>() / mib,
                       100 * row["saved_over_none"].get<double>(), row["peak_bytes"].get<double>() / mib,
                       ratio_text(row["time_over_none"]), unstable_mark(row));
  }
  return out + "gradients of every policy are bitwise those of none\n";
}

}  // namespace

int run_bench_recompute(const Config& config) {
  const Device device = prepare_machine(config);
  say_what_is_slow(config);
  Json document = bench_document(config, load_before_bench(config), device);
  const Problem problem(config, device, find_precision(config));

  std::vector<std::unique_ptr<Policy>> policies;
  const auto add = [&](const std::string& name, const Recompute& recompute) {
    Config with = config;
    with.recompute = recompute;
    with = with_recompute_planned(with, problem, device);
    policies.push_back(std::make_unique<Policy>(with, problem, device, name));
  };
  add("none", {});
  const std::vector<double> gradients = policies[0]->first_gradients();
  const auto budget = [&](int64_t percent) {
    add(fmt::format("budget {} %", percent),
        {Recompute::Kind::budget, static_cast<int64_t>(policies[0]->saved()) * percent / 100});
  };
  budget(65), budget(40);
  add("blocks", {Recompute::Kind::blocks});
  for (const auto& policy : policies)
    CHECK(policy == policies[0] || policy->first_gradients() == gradients,
          "bench recompute: {} has other gradients than none", policy->name);

  for (int64_t round = -warmup_rounds; round < config.rounds; ++round)
    for (const auto& policy : policies) policy->round(round < 0);

  document["device"] = name(device);
  document["layers"] = config.layers;
  document["width"] = config.width;
  document["batch"] = config.batch;
  document["context"] = problem.data().features;
  document["warmup_rounds"] = warmup_rounds;
  document["rows"] = Json::array();
  for (const auto& policy : policies) document["rows"].push_back(policy->row(*policies[0]));
  print_bench(config, document, table(document, config, device));
  return exit_done;
}

}  // namespace tapedeck
