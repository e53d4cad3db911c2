// summary.json of a made-up sweep without noise: six runs a size of Smin = 100 and Emin = 6400, seven rates tried.
#pragma once
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/config.h"

namespace tapedeck::test {

inline Json middle(double x, int n) {
  return {{"median", x}, {"low", n > 5 ? Json(0.9 * x) : Json()}, {"high", n > 5 ? Json(1.1 * x) : Json()}};
}

// Smin = 100, Emin = 6400, so that B_crit = 64; a step takes 1 ms + 0.01 ms an example.
inline double law_of(double batch) { return 100 + 6400 / batch; }
inline double step_ms(double batch) { return 1 + 0.01 * batch; }

inline Json made_up_fit(const std::vector<int>& batches) {
  Json fit = {{"b_crit", {{"value", 64.0}, {"low", 50.0}, {"high", 80.0}}},
              {"smin", 100.0},
              {"emin", 6400.0},
              {"smin_interval", {{"low", 90.0}, {"high", 110.0}}},
              {"emin_interval", {{"low", 6000.0}, {"high", 7000.0}}},
              {"unit", "steps"},
              {"sigma", 0.05},
              {"n", 6 * batches.size()},
              {"reached", 6 * batches.size()},
              {"bootstrap", {{"draws", 2000}, {"seed", 1}, {"drawn_again", 3}}},
              {"leave_one_out", {{"low", 55.0}, {"high", 70.0}}},
              {"lack_of_fit", 0.02},
              {"verdict", "determined"},
              {"at_least", Json()},
              {"at_most", Json()},
              {"definitions",
               {{"half_efficient", 64.0},
                {"fifth_more_examples", 12.8},
                {"ninety_percent_efficient", 7.11},
                {"within_tenth_of_smin", 640.0}}},
              {"wall_clock",
               {{"a_seconds", 1e-3},
                {"c_seconds_per_example", 1e-5},
                {"best_batch", 80.0},
                {"best_seconds", 0.324},
                {"measured_batch", 64.0},
                {"measured_seconds", 0.328},
                {"predicted_seconds_there", 0.328}}},
              {"warnings", Json::array({"this <is> a warning"})},
              {"rows", Json::array()},
              {"band", Json::array()}};
  for (const int batch : batches) {
    Json row = middle(law_of(batch), 6);
    row.update(Json{{"batch", batch},
                    {"n", 6},
                    {"reached", 6},
                    {"fitted", law_of(batch)},
                    {"log_residual", 0.01},
                    {"seconds", middle(law_of(batch) * step_ms(batch) / 1000, 6)}});
    fit["rows"].push_back(row);
    fit["band"].push_back({{"batch", batch}, {"low", 0.9 * law_of(batch)}, {"high", 1.1 * law_of(batch)}});
  }
  return fit;
}

inline Json made_up_cell(const std::string& purpose, int batch, double rate, int seed, double steps) {
  const double seconds = steps * step_ms(batch) / 1000;
  return {{"id", fmt::format("{}-b{}-lr{:.4g}-seed{}-cap9000", purpose, batch, rate, seed)},
          {"purpose", purpose},
          {"batch", batch},
          {"rate", rate},
          {"seed", seed},
          {"steps_cap", 9000},
          {"status", "reached"},
          {"reason", Json()},
          {"steps", steps},
          {"examples", steps * batch},
          {"train_seconds", seconds},
          {"eval_seconds", 0.1},
          {"wall_seconds", seconds + 0.2},
          {"began", 1.7e9 + (37 * seed + batch) % 101},  // every size at any time
          {"side_by_side", false},
          {"step_ms", Json()},
          {"noise_scale",
           {{"value", 30.0 + seed % 7}, {"low", 20.0}, {"high", 50.0}, {"samples", 99}, {"state", "resolved"}}},
          {"crossings", Json::array({{{"target", 0.2},
                                      {"reached", true},
                                      {"lower", steps - 5},
                                      {"upper", steps},
                                      {"step", steps},
                                      {"examples", steps * batch},
                                      {"seconds", seconds},
                                      {"first_touch", steps}}})}};
}

inline Json made_up(const std::vector<int>& batches) {
  Json sizes = Json::array(), cells = Json::array();
  for (const int batch : batches) {
    const double steps = law_of(batch), rate = 0.001 * std::sqrt(batch);
    Json tuned = Json::array();
    for (int k = -3; k <= 3; ++k) {
      tuned.push_back({{"rate", rate * std::pow(2, k / 2.0)},
                       {"n", 4},
                       {"reached", k == 3   ? 0
                                   : k == 2 ? 3
                                            : 4},
                       {"diverged", k == 3 ? 2 : 0},
                       {"steps", k == 3 ? Json() : Json(steps * (1 + 0.05 * k * k))},
                       {"cap", 9000}});
      cells.push_back(made_up_cell("tune", batch, rate * std::pow(2, k / 2.0), 1000001, steps * (1 + 0.05 * k * k)));
    }
    for (int seed = 1; seed <= 6; ++seed)
      cells.push_back(made_up_cell("run", batch, rate, seed, steps * (0.97 + 0.01 * seed)));
    const double seconds = steps * step_ms(batch) / 1000;
    sizes.push_back(
        {{"batch", batch},
         {"rate", rate},
         {"edge", Json()},
         {"why_no_rate", Json()},
         {"tuned", tuned},
         {"n", 6},
         {"reached", 6},
         {"missed", 0},
         {"diverged", 0},
         {"failed", 0},
         {"steps", middle(steps, 6)},
         {"examples", middle(steps * batch, 6)},
         {"seconds", middle(seconds, 6)},
         {"ert_seconds", seconds},
         {"step_ms",
          {{"median", step_ms(batch)}, {"p05", 0.9 * step_ms(batch)}, {"p95", 2 * step_ms(batch)}, {"n", 999}}},
         {"noise_scale", {{"median", 33.0}, {"low", 30.0}, {"high", 36.0}, {"n", 6}}},
         {"rules",
          {{"linear", {{"rate", 0.0001 * batch}, {"efficiency", 0.8}, {"at_most", true}}},
           {"square root", {{"rate", rate}, {"efficiency", 1.0}, {"at_most", false}}}}}});
  }
  const Json fit = made_up_fit(batches);
  return {{"format_version", 1},
          {"command", "sweep"},
          {"model", "mlp"},
          {"data", "digits"},
          {"device", "cpu"},
          {"precision", "fp32"},
          {"optimizer", "adam"},
          {"schedule", "constant"},
          {"preset", "quick"},
          {"status", "complete"},
          {"timed", true},
          {"kind", "first passage"},
          {"threads", 1},
          {"parameters", 26122},
          {"train_examples", 100000},
          {"seed", 1},
          {"targets", {{"metric", "loss"}, {"values", {0.2}}, {"source", "given"}, {"pilot", Json()}, {"hash", "0"}}},
          {"base", {{"reference_batch", 32}, {"rate", 0.001}, {"alpha", 0.5}, {"tuning_seeds", 4}, {"seeds", 6}}},
          {"sizes", sizes},
          {"fit", fit},
          {"fits", Json::array({{{"target", 0.2}, {"fit", fit}, {"why_none", Json()}}})},
          {"again",
           {{"batch", 32},
            {"n", 6},
            {"n_again", 7},
            {"reached", 6},
            {"reached_again", 7},
            {"steps", {{"ratio", 1.01}, {"low", 0.95}, {"high", 1.07}, {"n", 6}}},
            {"seconds", Json()},
            {"covers_one", true}}},
          {"time", {{"cells_seconds", 99.0}, {"estimated_seconds", 120.0}}},
          {"sentence", "Training mlp: the critical batch size is 64 examples."},
          {"cells", cells}};
}

// The same of fixed horizons for two targets, at the second of which each size passes with `steps`.
inline Json made_up_horizons(const std::vector<int>& batches) {
  Json out = made_up(batches);
  out["kind"] = "fixed horizon", out["schedule"] = "cosine";
  out["targets"]["values"] = {0.4, 0.2};
  out["fits"].insert(out["fits"].begin(), Json{{"target", 0.4}, {"fit", out["fit"]}, {"why_none", Json()}});
  for (Json& size : out["sizes"]) {
    const double steps = size["steps"]["median"];
    size["steps"]["low"] = size["steps"]["high"] = size["examples"]["low"] = size["examples"]["high"] = Json();
    size["horizons"] = size["horizon_intervals"] = Json::array();
    for (const double target : {0.4, 0.2}) {
      const int passed = static_cast<int>(target == 0.4 ? steps / 2 : steps), failed = static_cast<int>(passed / 1.414);
      size["horizons"].push_back(
          {{"target", target}, {"steps", failed}, {"n", 6}, {"mean", 1.1 * target}, {"p", 0.9}, {"passes", false}});
      size["horizons"].push_back(
          {{"target", target}, {"steps", passed}, {"n", 6}, {"mean", 0.9 * target}, {"p", 1e-5}, {"passes", true}});
      size["horizon_intervals"].push_back({{"target", target}, {"failed", failed}, {"passed", passed}});
    }
    for (Json& tuned : size["tuned"]) tuned["loss"] = 0.25, tuned["steps"] = tuned["reached"] = Json();
  }
  for (Json& cell : out["cells"]) {
    cell["status"] = "ended", cell["crossings"] = Json::array();
    for (const Json& size : out["sizes"])
      if (size["batch"] == cell["batch"]) cell["steps_cap"] = size["horizon_intervals"][1]["passed"];
  }
  const Json interval = out["sizes"][0]["horizon_intervals"][1];
  out["again"]["steps"] = out["again"]["covers_one"] = Json();
  out["again"]["horizons"] = {
      {"first", interval}, {"second", interval}, {"agree", true}, {"places", 0}, {"at_least", false}};
  return out;
}

}  // namespace tapedeck::test
