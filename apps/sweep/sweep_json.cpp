#include <cmath>

#include "apps/scaling_report.h"
#include "apps/sweep/pilot.h"
#include "apps/sweep/sweep_report.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(); }
template <class T>
Json maybe(const std::optional<T>& x) {
  return x ? Json(*x) : Json();
}
Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json crossing_json(const CellResult& result, const Target& target, int64_t cap) {
  const Crossing at = crossing(result, target, cap);
  return {{"target", target.value},
          {"reached", at.reached},
          {"lower", number(at.lower)},
          {"upper", number(at.upper)},
          {"step", at.reached ? number(at.upper) : Json()},
          {"examples", at.reached ? Json(at.examples) : Json()},
          {"seconds", at.reached ? number(at.seconds) : Json()},
          {"first_touch", maybe(at.first_touch)}};
}

Json step_json(const std::optional<StepTimeSummary>& step) {
  if (!step) return {};
  return {{"median", step->median_ms}, {"p05", step->p05_ms}, {"p95", step->p95_ms}, {"n", step->n}};
}

Json cell_json(const Cell& cell, const CellResult& result, const std::optional<Targets>& targets, bool horizon) {
  Json out = {{"id", cell_name(cell)},
              {"purpose", name(cell.purpose)},
              {"batch", cell.batch},
              {"rate", cell.rate},
              {"seed", cell.seed},
              {"steps_cap", cell.steps},
              {"status", horizon && result.status == CellResult::Status::missed ? "ended" : name(result.status)},
              {"reason", text_or_null(result.reason)},
              {"steps", result.steps},
              {"examples", result.examples},
              {"train_seconds", number(result.train_seconds)},
              {"eval_seconds", number(result.eval_seconds)},
              {"wall_seconds", number(result.wall_seconds)},
              {"began", maybe(result.began)},
              {"side_by_side", result.side_by_side},
              {"step_ms", step_json(result.step_ms)},
              {"noise_scale", Json()},
              {"crossings", Json::array()}};
  if (const auto& noise = result.noise)
    out["noise_scale"] = {{"value", maybe(noise->value)},
                          {"low", maybe(noise->low)},
                          {"high", maybe(noise->high)},
                          {"samples", noise->samples},
                          {"state", noise->state}};
  if (targets && !horizon)  // with a horizon a passage in the middle is none
    for (const double value : targets->values)
      out["crossings"].push_back(crossing_json(result, {targets->metric, value}, cell.steps));
  return out;
}

Json figure_json(const std::optional<MedianFigure>& figure) {
  if (!figure) return {};
  return {{"median", number(figure->median)},
          {"low", figure->interval ? number(figure->interval->low) : Json()},
          {"high", figure->interval ? number(figure->interval->high) : Json()}};
}

Json rule_json(const std::optional<RuleCost>& rule) {
  if (!rule) return {};
  return {{"rate", rule->rate}, {"efficiency", maybe(rule->efficiency)}, {"at_most", rule->at_most}};
}

// The loosest target first, each by steps.
Json horizons_json(const SweepSize& size) {
  Json out = Json::array();
  if (!size.horizon) return out;
  for (const TargetSearch& search : size.horizon->targets)
    for (const HorizonTrial& trial : search.trials)
      out.push_back({{"target", search.target},
                     {"steps", trial.steps},
                     {"n", trial.n},
                     {"mean", number(trial.mean)},
                     {"p", trial.p},
                     {"passes", trial.passes()}});
  return out;
}

Json interval_json(const TargetSearch& search) {
  if (!search.ended()) return {};
  return {{"target", search.target}, {"failed", search.failed}, {"passed", maybe(search.passed)}};
}

Json intervals_json(const SweepSize& size) {
  Json out = Json::array();
  if (!size.horizon) return out;
  for (const TargetSearch& search : size.horizon->targets)
    if (search.ended()) out.push_back(interval_json(search));
  return out;
}

Json size_json(const SweepSize& size) {
  Json tuned = Json::array();
  for (const RateTrial& trial : size.tuned.trials)
    tuned.push_back({{"rate", trial.rate},
                     {"n", trial.n},
                     {"reached", size.horizon ? Json() : Json(trial.reached)},
                     {"diverged", trial.diverged},
                     {"steps", size.horizon ? Json() : number(trial.figure)},
                     {"loss", size.horizon ? number(trial.figure) : Json()},
                     {"cap", trial.cap}});
  Json noise = figure_json(size.noise);
  if (!noise.is_null()) noise["n"] = size.noise_runs;
  return {{"batch", size.batch},
          {"horizons", horizons_json(size)},
          {"horizon_intervals", intervals_json(size)},
          {"rate", maybe(size.tuned.rate)},
          {"edge", text_or_null(size.tuned.edge)},
          {"why_no_rate", text_or_null(size.tuned.why_none)},
          {"tuned", tuned},
          {"n", size.n},
          {"reached", size.reached},
          {"missed", size.missed},
          {"diverged", size.diverged},
          {"failed", size.failed},
          {"steps", figure_json(size.steps)},
          {"examples", figure_json(size.examples)},
          {"seconds", figure_json(size.seconds)},
          {"ert_seconds", maybe(size.running_time)},
          {"step_ms", step_json(size.step_ms)},
          {"noise_scale", noise},
          {"rules", {{"linear", rule_json(size.linear)}, {"square root", rule_json(size.square_root)}}}};
}

Json ratio_json(const std::optional<RatioInterval>& ratio) {
  if (!ratio) return {};
  return {{"ratio", ratio->ratio}, {"low", ratio->low}, {"high", ratio->high}, {"n", ratio->n}};
}

Json again_json(const RunsAgain& again) {
  Json horizons;
  if (again.first && again.second) {
    const auto difference = again.difference();
    horizons = {{"first", interval_json(*again.first)},
                {"second", interval_json(*again.second)},
                {"agree", difference ? Json(difference->agree()) : Json()},
                {"places", difference ? Json(difference->places) : Json()},
                {"margin", number(margin_to_pass(again.n))},
                {"at_least", difference ? Json(difference->at_least) : Json()}};
  }
  return {{"batch", again.batch > 0 ? Json(again.batch) : Json()},
          {"n", again.n},
          {"n_again", again.n_again},
          {"reached", again.reached},
          {"reached_again", again.reached_again},
          {"steps", ratio_json(again.steps)},
          {"seconds", ratio_json(again.seconds)},
          {"covers_one", again.steps ? Json(again.steps->covers_one()) : Json()},
          {"horizons", horizons}};
}

Json targets_json(const std::optional<Targets>& targets) {
  if (!targets) return {};
  return {{"metric", targets->metric},
          {"values", targets->values},
          {"source", targets->source},
          {"pilot", text_or_null(targets->pilot)},
          {"hash", targets->hash()}};
}

}  // namespace

Json sweep_json(const SweepState& state, const SweepResult& result, const SweepContext& context) {
  const SweepSettings& s = state.settings;
  double seconds = 0;
  Json cells = Json::array(), sizes = Json::array(), fits = Json::array();
  for (const auto& [name, entry] : state.results) {
    cells.push_back(cell_json(entry.first, entry.second, state.targets, s.horizon));
    seconds += entry.second.wall_seconds;
  }
  for (const SweepSize& size : result.sizes) sizes.push_back(size_json(size));
  for (const TargetFit& fit : result.fits)
    fits.push_back({{"target", fit.target},
                    {"fit", fit.fit ? fit_json(*fit.fit) : Json()},
                    {"why_none", text_or_null(fit.why_none)}});
  return {{"command", "sweep"},
          {"model", context.model},
          {"parameters", context.parameters},
          {"data", context.data},
          {"data_hash", text_or_null(context.data_hash)},
          {"train_examples", context.train_examples},
          {"device", context.device},
          {"precision", context.precision},
          {"threads", context.threads},
          {"optimizer", context.optimizer},
          {"schedule", context.schedule},
          {"preset", context.preset},
          {"seed", s.first_seed},
          {"status", context.complete ? "complete" : "incomplete"},
          {"timed", context.timed},
          {"why_not_timed", text_or_null(context.why_not_timed)},
          {"kind", s.horizon ? "fixed horizon" : "first passage"},
          {"targets", targets_json(state.targets)},
          {"base",
           {{"reference_batch", s.reference_batch},
            {"rate", s.reference_rate},
            {"alpha", s.alpha},
            {"tuning_seeds", s.tuning_seeds},
            {"seeds", s.seeds}}},
          {"sizes", sizes},
          {"fit", fits.empty() ? Json() : fits.back()["fit"]},
          {"fits", fits},
          {"again", again_json(result.again)},
          {"time", {{"cells_seconds", seconds}, {"estimated_seconds", maybe(context.estimated_seconds)}}},
          {"sentence", sweep_sentence(state, result, context)},
          {"cells", cells}};
}

}  // namespace tapedeck
