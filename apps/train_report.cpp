#include "apps/train_report.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <iterator>

#include "apps/noise_meter.h"
#include "apps/stats.h"

namespace tapedeck {
namespace {

// What the share of right answers is called.
const char* accuracy_name(const Dataset& data) {
  return data.whole_examples ? "exact match" : data.sequences ? "token accuracy" : "accuracy";
}

std::string score_text(const char* part, const Dataset& data, Number loss, Number accuracy) {
  if (!loss) return fmt::format("{} not scored", part);
  return accuracy ? fmt::format("{} {} {:.4f}, loss {:.4f}", part, accuracy_name(data), *accuracy, *loss)
                  : fmt::format("{} loss {:.4f}", part, *loss);
}

// What a second of training does. Examples of sequences are alike, so their tokens are what people compare.
std::string speed_text(const Summary& s, const Problem& problem) {
  if (!problem.sequences())
    return fmt::format("{:.3g} examples/s, {:.3g} GFLOP/s", s.throughput.examples_per_s.value_or(0),
                       s.gflops.value_or(0));
  return fmt::format(
      "{:.3g} tokens/s, {:.3g} GFLOP/s{}", s.throughput.tokens_per_s.value_or(0), s.gflops.value_or(0),
      s.peak_gflops ? fmt::format(" ({:.0f} % of the best product here)", 100 * s.gflops.value_or(0) / *s.peak_gflops)
                    : " (`tapedeck info` measures what this machine could do)");
}

std::string target_text(const Target& target) {
  return fmt::format("validation {} {} {}", target.metric, target.metric == "loss" ? "≤" : "≥", target.value);
}

// Seconds to the target of each run, infinite where it was missed.
std::vector<double> seconds_to_target(const std::vector<Summary>& runs) {
  std::vector<double> seconds;
  for (const Summary& run : runs)
    seconds.push_back(run.target.reached.value_or(false) ? run.target.seconds.value_or(NAN) : INFINITY);
  return seconds;
}

}  // namespace

void print_report(const Config& config, const std::string& report, const Json& document) {
  Json out = {{"format_version", kFormatVersion}};
  out.update(document);
  std::cout << (config.json ? json_text(out) + "\n" : report) << std::flush;
  if (!config.save.empty()) write_file(config.save, json_text(out) + "\n");
}

std::string run_report(const Summary& s, const Trainer& trainer, const Problem& problem) {
  const Dataset& data = problem.data();
  std::string out;
  const auto line = [&](const std::string& text) { out += text + "\n"; };
  line(fmt::format("{} with {} parameters on {} ({} training examples), {} on {}, {} thread{}, seed {}", s.model,
                   s.parameters.value_or(0), s.data, problem.data().train.size(), s.precision, s.device,
                   s.threads.value_or(1), s.threads == 1 ? "" : "s", s.seed.value_or(0)));
  if (const auto& tracker = trainer.tracker()) {
    const std::string target = target_text(tracker->target());
    if (const auto at = tracker->crossing()) {
      line(fmt::format("reached {} in {:.3f} s on the training clock ({:.3f} s with evaluation), n = 1 run", target,
                       at->seconds, at->seconds_with_eval));
      line(fmt::format(
          "  at step {}: {} examples, {:.1f} epochs; the crossing lies in steps ({}, {}], confirmed by the next "
          "evaluation",
          at->step, at->examples, static_cast<double>(at->examples) / static_cast<double>(problem.data().train.size()),
          tracker->last_miss(), at->step));
    } else if (s.status != "interrupted") {
      line(fmt::format("did not reach {} in {} steps{}", target, s.steps.value_or(0),
                       tracker->first_hit() ? "; one evaluation held it, none confirmed it" : ""));
    }
  }
  if (s.loss_scale.final)
    line(fmt::format("loss scale {} at the end: {} steps skipped, {} times doubled, {} times halved",
                     *s.loss_scale.final, s.loss_scale.skipped.value_or(0), s.loss_scale.growths.value_or(0),
                     s.loss_scale.backoffs.value_or(0)));
  if (s.noise_scale) line(noise_text(*s.noise_scale));
  if (!trainer.reason().empty() && s.status != "diverged") line(trainer.reason());  // that one went to stderr
  const std::string after = fmt::format(" after {} steps, {:.1f} epochs", s.steps.value_or(0), s.epochs.value_or(0));
  line(s.status == "interrupted"
           ? fmt::format("interrupted{}; {} steps are left", after, trainer.last_step() - trainer.state().step)
           : (data.tests_on_validation ? ""
                                       : score_text("test", data, s.final.test_loss, s.final.test_accuracy) + "; ") +
                 score_text("validation", data, s.final.validation_loss, s.final.validation_accuracy) + after);
  if (s.step_ms)
    line(fmt::format(
        "step {:.3g} ms (median; 5 % to 95 %: {:.3g} to {:.3g}; n = {}), {}, {:.0f} % of it waiting for data",
        s.step_ms->median_ms, s.step_ms->p05_ms, s.step_ms->p95_ms, s.step_ms->n, speed_text(s, problem),
        100 * s.data_wait_ratio.value_or(0)));
  if (s.step_ms && problem.sequences()) line("  FLOP a token: " + trainer.learner().model->flops_formula());
  line(fmt::format("time: training {:.2f} s, evaluation {:.2f}, loading data {:.2f}, warm-up {:.2f}, in all {:.2f}",
                   s.time.train.value_or(0), s.time.eval.value_or(0), s.time.data.value_or(0),
                   s.time.warmup.value_or(0), s.time.total.value_or(0)));
  return out;
}

RepeatStatistics repeat_statistics(const std::vector<Summary>& runs) {
  RepeatStatistics r;
  r.runs = static_cast<int>(runs.size());
  const std::vector<double> seconds = seconds_to_target(runs);
  std::vector<double> spent;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (std::isfinite(seconds[i])) ++r.reached;
    spent.push_back(std::isfinite(seconds[i]) ? seconds[i] : runs[i].time.train.value_or(0));
  }
  r.median = median(seconds);
  if (const auto interval = median_interval(seconds))
    r.low = interval->low, r.high = interval->high, r.coverage = interval->coverage;
  r.expected_running_time = expected_running_time(spent, r.reached);
  return r;
}

std::string repeat_report(const std::vector<Summary>& runs, const Dataset& data) {
  const std::string part = data.tests_on_validation ? "validation" : "test", loss = part + " loss",
                    accuracy = fmt::format("{} {}", part, accuracy_name(data));
  std::string out =
      fmt::format("{:>6}  {:>12}  {:>7}  {}  {}  {}\n", "seed", "to target", "step", loss, accuracy, "status");
  std::vector<double> accuracies;
  const std::vector<double> seconds = seconds_to_target(runs);
  for (size_t i = 0; i < runs.size(); ++i) {
    const Summary& run = runs[i];
    const Number lost = data.tests_on_validation ? run.final.validation_loss : run.final.test_loss;
    const Number right = data.tests_on_validation ? run.final.validation_accuracy : run.final.test_accuracy;
    if (right) accuracies.push_back(*right);
    out += fmt::format("{:>6}  {:>12}  {:>7}  {:>{}.4f}  {:>{}}  {}\n", run.seed.value_or(0),
                       run.target.metric ? seconds_text(seconds[i]) : "no target",
                       run.target.step ? std::to_string(*run.target.step) : "-", lost.value_or(NAN), loss.size(),
                       right ? fmt::format("{:.4f}", *right) : "-", accuracy.size(), run.status);
  }
  if (runs.front().target.metric) {
    const RepeatStatistics r = repeat_statistics(runs);
    out += fmt::format(
        "{} of {} runs reached the target; median {} (training clock, runs that missed count as infinite)\n", r.reached,
        r.runs, seconds_text(*r.median));
    out += r.low ? fmt::format("  exact {:.1f} % interval of the median: {} to {}, n = {}\n", 100 * *r.coverage,
                               seconds_text(*r.low), seconds_text(*r.high), r.runs)
                 : fmt::format("  no 95 % interval of a median from n = {} runs: it takes 6\n", r.runs);
    out += r.expected_running_time ? fmt::format("  expected running time (time of all runs / runs that reached): {}\n",
                                                 seconds_text(*r.expected_running_time))
                                   : "  expected running time: none reached\n";
  }
  if (accuracies.size() > 1)
    out += fmt::format("{}: median {:.4f}, sample deviation {}, n = {}\n", accuracy, median(accuracies),
                       deviation_text(sample_deviation(accuracies)), accuracies.size());
  return out;
}

Json repeat_json(const std::vector<Summary>& runs) {
  const RepeatStatistics r = repeat_statistics(runs);
  const auto number = [](const Number& x) { return x && std::isfinite(*x) ? Json(*x) : Json(); };
  Json out = {{"format_version", kFormatVersion}, {"command", "train"}, {"repeat", r.runs}};
  out["seconds_to_target"] = {{"reached", r.reached},
                              {"n", r.runs},
                              {"median", number(r.median)},
                              {"low", number(r.low)},
                              {"high", number(r.high)},
                              {"coverage", number(r.coverage)},
                              {"expected_running_time", number(r.expected_running_time)}};
  out["runs"] = Json::array();
  for (const Summary& run : runs) out["runs"].push_back(to_json(run));
  return out;
}

}  // namespace tapedeck
