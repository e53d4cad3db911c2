// tapedeck evaluate RUN: rebuilds a saved model and scores it on a part of its data, or on other data.
#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/data_record.h"
#include "apps/evaluation.h"
#include "apps/experiment.h"
#include "apps/files.h"
#include "apps/record.h"
#include "apps/saved_model.h"
#include "apps/weights.h"
#include "data/catalog.h"
#include "data/utf8.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

// The run's options, and those of the data that was asked for in place of its own.
Config config_of_run(const Config& asked, const fs::path& folder) {
  Config run = saved_config(folder);
  run.recompute = {};  // of training; scoring keeps nothing
  if (asked.origin("data") == Origin::flag && asked.data != run.data) {
    run.data = asked.data;
    run.data_dir.clear(), run.label.clear(), run.validation.reset(), run.test.reset();
  }
  if (!asked.data_dir.empty()) run.data_dir = asked.data_dir;
  if (!asked.label.empty()) run.label = asked.label;
  return run;
}

struct Data {
  Dataset set;
  bool is_other;  // not what the run was trained on
};

// The data, taken as the model wants it. Throws Error with both values where it does not fit.
Data load(const Config& run, const Config& asked, const fs::path& folder) {
  const bool named = asked.origin("data") == Origin::flag;
  const bool sequences = parse_data(run.data).kind->sequences;
  const char* const holds[] = {"features", "sequences"};
  if (named && sequences != (run.model == "gpt"))
    throw UsageError(text("--data {}: holds {}, but the run in {} is of {}, which reads {}", run.data, holds[sequences],
                          folder.string(), run.model, holds[!sequences]));
  if (!named && !fs::exists(folder / "data.json")) return {load_dataset(run.data, data_options(run)), false};
  const DataRecord trained_on = read_data_record(folder);
  DataOptions options = data_options(run);
  options.encoding = &trained_on.encoding;
  Dataset data = load_dataset(run.data, options);
  if (data.features != trained_on.features)
    throw Error(text("{}: has {} {}, but the model was trained on {} with {}", data.name, data.features,
                     sequences ? "tokens an example" : "features", trained_on.name, trained_on.features));
  if (run.loss != "mse" && data.classes > trained_on.classes)
    throw Error(text("{}: has {} classes, but the model was trained on {} with {}", data.name, data.classes,
                     trained_on.name, trained_on.classes));
  const bool is_other = data_json(data)["hash"] != trained_on.hash;
  if (is_other && !named)
    throw Error(
        text("{}: its data {} is not what it was when the run was trained, so its parts are other ones: name it "
             "with --data {} to score all of it",
             folder.string(), data.name, run.data));
  if (run.loss != "mse") data.classes = trained_on.classes;  // some of them may not occur in other data
  return {std::move(data), is_other};
}

struct Scored {
  const SavedModel& model;
  std::string kind, trained_on;  // "mlp", "csv:iris.csv"
  int64_t parameters;
  std::string split;
  const Dataset& data;
  const Evaluation& result;
};

std::string report(const Scored& s) {
  const Score& score = s.result.score;
  std::string out = fmt::format("{}: {} of {} parameters{}, trained on {}\n", s.model.source, s.kind, s.parameters,
                                s.model.step ? fmt::format(" after step {}", *s.model.step) : "", s.trained_on);
  const std::string part = s.split == "test" && s.data.tests_on_validation ? "validation" : s.split;
  const std::string examples =
      s.split == "all" ? fmt::format("all {}", score.examples) : fmt::format("{} {}", score.examples, part);
  out += fmt::format("{} examples of {}\n", examples, printable(s.data.name));
  if (!score.accuracy) return out + fmt::format("loss {:.6g}, rmse {:.6g}\n", score.loss, std::sqrt(score.loss));
  if (s.data.sequences)
    return out + fmt::format("{} {:.2f} %, loss {:.6g} a token that was asked for\n",
                             s.data.whole_examples ? "exact match" : "token accuracy", 100 * *score.accuracy,
                             score.loss);
  out += fmt::format("accuracy {:.2f} % ({} right), loss {:.6g}\n", 100 * *score.accuracy,
                     std::lround(*score.accuracy * static_cast<double>(score.examples)), score.loss);
  return out + confusion_table(s.result, s.data);
}

Json document(const Config& asked, const Scored& s) {
  const Score& score = s.result.score;
  Json out = {{"format_version", kFormatVersion},
              {"command", "evaluate"},
              {"run", asked.run},
              {"source", s.model.source},
              {"step", s.model.step ? Json(*s.model.step) : Json()},
              {"parameters", s.parameters},
              {"trained_on", s.trained_on},
              {"data", s.data.name},
              {"split", s.split},
              {"examples", score.examples},
              {"loss", score.loss},
              {"accuracy", score.accuracy ? Json(*score.accuracy) : Json()},
              {"rmse", score.accuracy ? Json() : Json(std::sqrt(score.loss))},
              {"confusion", Json()},
              {"classes", Json()}};
  if (!score.accuracy || s.data.sequences) return out;
  out["confusion"] = s.result.confusion;
  const std::vector<ClassScore> classes = class_scores(s.result.confusion);
  for (size_t k = 0; k < classes.size(); ++k) {
    const ClassScore& one = classes[k];
    out["classes"].push_back({{"name", class_name(s.data, k)},
                              {"examples", one.examples},
                              {"recall", one.recall ? Json(*one.recall) : Json()},
                              {"precision", one.precision ? Json(*one.precision) : Json()}});
  }
  return out;
}

}  // namespace

int run_evaluate(const Config& asked) {
  if (!asked.predictions.empty()) refuse_to_replace("predictions", asked.predictions, asked.force);
  const Device device = prepare_machine(asked);
  const SavedModel saved = find_saved_model(asked.run);
  if (saved.run.empty())
    throw Error(text("{}: lies in no run's folder: no config.json up to three folders above says what model it is of",
                     asked.run));
  const std::string trained_on = saved_config(saved.run).data;
  const Config run = config_of_run(asked, saved.run);
  const DType dtype = find_precision(run);
  Data data = load(run, asked, saved.run);
  const std::string split = asked.origin("split") == Origin::flag || !data.is_other ? asked.split : "all";
  if (rows_to_score(data.set, split).empty())
    throw UsageError(text("--split {}: {} has no such part; leave --split away", split, data.set.name));
  if (data.set.sequences && !asked.predictions.empty())
    throw UsageError(
        text("--predictions: {} has sequences, not one answer each: see `tapedeck generate`", data.set.name));
  const Problem problem(std::move(data.set), run.loss == "mse", device, dtype);
  const auto model = make_model(run, problem);
  ParameterSet parameters(*model, device, dtype, static_cast<uint64_t>(run.seed));
  const Dataset& set = problem.data();
  load_weights(parameters, saved.bytes, saved.source, data_text(set.name, set.features, set.classes));

  say_what_is_slow(asked);
  std::cerr << saved.note;
  const Evaluation result = evaluate(
      problem, [&](const Tensor& x) { return (*model)(x, {}); }, rows_to_score(problem.data(), split));
  if (!std::isfinite(result.score.loss))
    throw Diverged(
        text("{}: the loss on the {} examples is not finite, so its answers mean nothing: train again with "
             "a lower --lr (was {})",
             saved.source, split, run.lr));
  if (!asked.predictions.empty()) write_file(asked.predictions, result.predictions);
  const Scored scored{saved, run.model, trained_on, parameters.count(), split, problem.data(), result};
  if (asked.json)
    std::cout << json_text(document(asked, scored)) << "\n";
  else
    std::cout << report(scored);
  return exit_done;
}

}  // namespace tapedeck
