#include "apps/pages/run_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "apps/pages/run_text.h"
#include "apps/stats.h"

namespace tapedeck {
namespace {

const char* axis_title(std::string_view by) {
  return by == "step" ? "optimizer steps" : by == "examples" ? "training examples seen" : "training clock, s";
}
Axis x_axis(std::string_view by) { return {.title = axis_title(by), .whole = by != "seconds"}; }
const char* axis_name(std::string_view by) {
  return by == "step" ? "steps" : by == "examples" ? "examples" : "seconds of training";
}

bool single(const Groups& groups) { return groups.size() == 1 && groups.front().runs.size() == 1; }

// One curve a run. Those of a group share its colour, and the first of them its place in the legend.
void add_curves(Chart& chart, const Groups& groups, const char* key, const char* by, bool with_note) {
  size_t runs = 0;
  for (const RunGroup& group : groups) runs += group.runs.size();
  for (size_t g = 0; g < groups.size(); ++g)
    for (size_t i = 0; i < groups[g].runs.size(); ++i) {
      const RunRecord& run = groups[g].runs[i];
      Series s{.colour = static_cast<int>(g), .points = points_of(run, key, by), .thin = runs > 3};
      if (s.points.empty() && !(run.diverged() && with_note)) continue;
      if (i == 0) s.name = group_name(groups, g);
      if (const auto step = run.diverged()) {
        s.diverged = true;
        s.note = fmt::format("{}diverged at step {}", groups[g].repeat ? run.name + " " : "", *step);
      }
      chart.series.push_back(s);
    }
}

// A logarithmic axis where the curves go far.
Scale scale_of(const Chart& chart) {
  double low = INFINITY, first = 0;
  for (const Series& s : chart.series) {
    bool begun = false;
    for (const Point& p : s.points) {
      if (!std::isfinite(p.y)) continue;
      if (p.y <= 0) return Scale::linear;
      if (!begun) first = std::max(first, p.y), begun = true;
      low = std::min(low, p.y);
    }
  }
  return low < first / 30 ? Scale::log : Scale::linear;
}

// The target of all, where they share one.
void add_target(Chart& chart, const Groups& groups, const char* metric, const char* by) {
  std::optional<double> value;
  for (const RunGroup& group : groups)
    for (const Summary& s : group.summaries()) {
      if (s.target.metric != metric || !s.target.value || (value && *value != *s.target.value)) return;
      value = s.target.value;
    }
  if (!value) return;
  chart.guides.push_back({.value = *value, .text = "target " + short_number(*value)});
  if (!single(groups) || !groups.front().first().summary) return;
  const auto& target = groups.front().first().summary->target;
  const std::string_view axis = by;
  if (axis == "step" && target.step)
    chart.guides.push_back({.value = static_cast<double>(*target.step),
                            .vertical = true,
                            .text = fmt::format("step {}", grouped(*target.step))});
  if (axis == "examples" && target.examples)
    chart.guides.push_back({.value = static_cast<double>(*target.examples), .vertical = true, .text = "reached"});
  if (axis == "seconds" && target.seconds)
    chart.guides.push_back({.value = *target.seconds, .vertical = true, .text = seconds_text(*target.seconds)});
}

bool any_point(const Chart& chart) {
  return std::any_of(chart.series.begin(), chart.series.end(), [](const Series& s) { return !s.points.empty(); });
}

Chart loss_chart(const Groups& groups, const char* by) {
  Chart chart{.title = fmt::format("Loss by {}", axis_name(by)), .x = x_axis(by)};
  chart.y = {.title = "validation loss", .robust = true};
  if (!single(groups)) {
    add_curves(chart, groups, "validation_loss", by, true);
  } else {
    const RunRecord& run = groups.front().first();
    chart.y.title = "mean loss of an example";
    const std::string note = run.diverged() ? fmt::format("diverged at step {}", *run.diverged()) : "";
    Series training{.name = "training, mean since the point before",
                    .colour = 1,
                    .points = points_of(run, "train_loss", by),
                    .diverged = !note.empty()};
    Series validation{.name = "validation", .points = points_of(run, "validation_loss", by), .diverged = !note.empty()};
    (validation.points.empty() && !training.points.empty() ? training : validation).note = note;
    chart.series = {training, validation};
    std::erase_if(chart.series, [](const Series& s) { return s.points.empty() && s.note.empty(); });
  }
  chart.y.scale = scale_of(chart);
  add_target(chart, groups, "loss", by);
  return chart;
}

Chart accuracy_chart(const Groups& groups, const char* by) {
  const std::string name = accuracy_name(groups.front().first());
  Chart chart{.title = fmt::format("{} by {}",
                                   name == "accuracy"      ? "Accuracy"
                                   : name == "exact match" ? "Exact match"
                                                           : "Token accuracy",
                                   axis_name(by)),
              .x = x_axis(by),
              .y = {.title = "validation " + name}};
  add_curves(chart, groups, "validation_accuracy", by, false);
  if (single(groups)) {
    for (Series& s : chart.series) s.name = "validation";
    if (const auto points = points_of(groups.front().first(), "train_accuracy", by); !points.empty())
      chart.series.push_back({.name = "training", .colour = 1, .points = points});
  }
  add_target(chart, groups, "accuracy", by);
  return chart;
}

bool moves(const Chart& chart) {  // else a picture of a straight line
  double low = INFINITY, high = -INFINITY;
  for (const Series& s : chart.series)
    for (const Point& p : s.points)
      if (std::isfinite(p.y)) low = std::min(low, p.y), high = std::max(high, p.y);
  return low < high;
}

}  // namespace

std::string group_name(const Groups& groups, size_t which) {
  for (size_t i = 0; i < groups.size(); ++i)
    if (i != which && groups[i].name == groups[which].name) return groups[which].path.string();
  return groups[which].name;
}

std::vector<std::string> curve_figures(const Groups& groups, const char* by) {
  std::vector<std::string> out = {chart_figure(loss_chart(groups, by))};
  if (!single(groups)) {
    Chart training{.title = fmt::format("Training loss by {}", axis_name(by)), .x = x_axis(by)};
    training.y = {.title = "mean since the point before", .robust = true};
    add_curves(training, groups, "train_loss", by, true);
    training.y.scale = scale_of(training);
    if (any_point(training)) out.push_back(chart_figure(training));
  }
  if (const Chart accuracy = accuracy_chart(groups, by); any_point(accuracy)) out.push_back(chart_figure(accuracy));
  return out;
}

std::vector<std::string> other_figures(const Groups& groups) {
  struct Other {
    const char *key, *title, *axis;
    Scale scale;
  };
  constexpr Other others[] = {
      {"gradient_norm", "Norm of the gradient", "norm, before clipping", Scale::log},
      {"lr", "Learning rate", "rate", Scale::linear},
      {"loss_scale", "Loss scale", "scale", Scale::log2},
      {"noise_scale", "Gradient noise scale", "B_simple, examples (not the critical batch size)", Scale::log}};
  std::vector<std::string> out;
  for (const Other& other : others) {
    Chart chart{
        .title = other.title, .x = x_axis("step"), .y = {.title = other.axis, .scale = other.scale, .robust = true}};
    add_curves(chart, groups, other.key, "step", false);
    if (std::string_view(other.key) == "lr") chart.y.scale = scale_of(chart);
    if (single(groups))
      for (Series& s : chart.series) s.name.clear();
    if (any_point(chart) && moves(chart)) out.push_back(chart_figure(chart));
  }
  return out;
}

std::string target_figure(const Groups& groups) {
  if (std::none_of(groups.begin(), groups.end(), [](const RunGroup& group) { return group.repeat; })) return "";
  Chart chart{.title = "Time to the target",
              .note = "a point a run; a triangle: missed, and it trained for so long",
              .x = {.title = "seed", .whole = true},
              .y = {.title = "training clock, s"}};
  for (size_t g = 0; g < groups.size(); ++g) {
    Series s{.name = group_name(groups, g), .colour = static_cast<int>(g), .line = false, .markers = true};
    for (const RunRecord& run : groups[g].runs) {
      if (!run.summary || !run.summary->target.metric) continue;
      const auto& target = run.summary->target;
      const bool reached = target.reached.value_or(false);
      Point p{.x = static_cast<double>(run.summary->seed.value_or(0)),
              .y = (reached ? target.seconds : run.summary->time.train).value_or(NAN)};
      p.missed = !reached;
      p.title = fmt::format("seed {}: {}", run.summary->seed.value_or(0), reached ? seconds_text(p.y) : run.status());
      s.points.push_back(p);
    }
    if (!s.points.empty()) chart.series.push_back(s);
    const std::vector<Summary> runs = groups[g].summaries();
    if (groups.size() == 1 && runs.size() > 1 && !s.points.empty()) {
      std::vector<double> seconds;
      for (const Point& p : s.points) seconds.push_back(p.missed ? INFINITY : p.y);
      if (const double middle = median(seconds); std::isfinite(middle))
        chart.guides.push_back({.value = middle, .text = "median " + seconds_text(middle)});
      chart.series.back().name.clear();
    }
  }
  return chart.series.empty() ? "" : chart_figure(chart);
}

}  // namespace tapedeck
