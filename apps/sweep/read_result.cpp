// From a run folder to what a sweep makes of it.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/files.h"
#include "apps/resume.h"
#include "apps/sweep/train_cells.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

double number_or_nan(const Json& line, const char* key) {
  const auto at = line.find(key);
  return at != line.end() && at->is_number() ? at->get<double>() : NAN;
}

[[noreturn]] void damaged(const fs::path& metrics, const std::string& what) {
  throw Error(text("{}: {}: remove this run's folder, and it runs again", metrics.string(), what));
}

std::vector<EvaluationPoint> read_curve(const fs::path& metrics) {
  std::vector<EvaluationPoint> curve;
  std::ifstream file(metrics);
  for (std::string written; std::getline(file, written);) {
    const Json line = Json::parse(written, nullptr, false);
    if (!line.is_object()) damaged(metrics, "holds a line that is no JSON object");
    if (!line.contains("validation_loss")) continue;
    for (const char* key : {"step", "examples"})
      if (!line.contains(key) || !line[key].is_number_integer())
        damaged(metrics, text("holds an evaluation whose {} is no whole number", key));
    EvaluationPoint point{
        line["step"], line["examples"], number_or_nan(line, "seconds"), number_or_nan(line, "validation_loss"), {}};
    if (const double accuracy = number_or_nan(line, "validation_accuracy"); std::isfinite(accuracy))
      point.accuracy = accuracy;
    curve.push_back(point);
  }
  return curve;
}

std::optional<NoiseFigure> read_noise(const Json& summary) {
  const Json noise = summary.value("noise_scale", Json());
  if (!noise.is_object()) return std::nullopt;
  const auto number = [&](const char* key) -> std::optional<double> {
    const double x = number_or_nan(noise, key);
    return std::isfinite(x) ? std::optional(x) : std::nullopt;
  };
  return NoiseFigure{number("value"), number("low"), number("high"), noise.value("samples", int64_t{0}),
                     noise.value("state", std::string())};
}

// A loss that ends above twice what it began with has not merely been slow.
void judge(CellResult& result, const Summary& summary) {
  using Status = CellResult::Status;
  result.reason = summary.reason.value_or("");
  result.status = summary.status == "target reached" ? Status::reached
                  : summary.status == "diverged"     ? Status::diverged
                                                     : Status::missed;
  if (result.status != Status::missed || result.curve.empty()) return;
  const double first = result.curve.front().loss, last = result.curve.back().loss;
  const int64_t skipped = summary.loss_scale.skipped.value_or(0);
  if (!(last <= 2 * first)) {
    result.status = Status::diverged;
    result.reason =
        text("the validation loss ended at {:.4g}, more than twice the {:.4g} that it began with", last, first);
  } else if (2 * skipped > result.steps) {
    result.status = Status::diverged;
    result.reason = text("{} of {} steps overflowed and were skipped", skipped, result.steps);
  }
}

// Where and when it ran, by what was written as it began; what cannot be read is not known.
void read_circumstances(CellResult& result, const fs::path& run) {
  const auto document = [&](const char* name) {
    const Json json = fs::exists(run / name) ? Json::parse(read_file(run / name), nullptr, false) : Json();
    return json.is_object() ? json : Json::object();
  };
  const Json note = document("cell.json"), machine = document("machine.json");
  if (const double began = number_or_nan(note, "began"); std::isfinite(began)) result.began = began;
  result.side_by_side = note.value("side_by_side", Json()) == true;
  if (const Json processor = machine.value("processor", Json()); processor.is_string())
    result.machine = text("{}, {} threads", processor.get<std::string>(), machine.value("threads", Json()).dump());
}

}  // namespace

std::optional<CellResult> read_result(const fs::path& run) {
  const auto summary = finished_summary(run);
  if (!summary) return std::nullopt;
  CellResult result;
  result.steps = summary->steps.value_or(0), result.examples = summary->examples.value_or(0);
  result.train_seconds = summary->time.train.value_or(0), result.eval_seconds = summary->time.eval.value_or(0);
  result.wall_seconds = summary->time.total.value_or(0);
  result.step_ms = summary->step_ms;
  result.curve = read_curve(run / "metrics.jsonl");
  result.noise = read_noise(Json::parse(read_file(run / "summary.json")));
  // A run that has not diverged ends with an evaluation.
  const int64_t last = result.curve.empty() ? 0 : result.curve.back().step;
  if (summary->status != "diverged" && last != result.steps)
    damaged(run / "metrics.jsonl",
            text("its last evaluation is at step {}, and summary.json says that the run had {}", last, result.steps));
  judge(result, *summary);
  read_circumstances(result, run);
  return result;
}

}  // namespace tapedeck
