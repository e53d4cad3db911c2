// tapedeck evaluate RUN: rebuilds a saved model and scores it on a part of its data.
//   confusion[t][p] = examples of class t that were taken for p
//   recall[t] = confusion[t][t] / row sum,   precision[p] = confusion[p][p] / column sum
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <numeric>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/experiment.h"
#include "apps/record.h"
#include "apps/weights.h"

namespace tapedeck {
namespace {

Config config_of_run(const Config& asked) {
  Config run;
  try {
    run = run_config(asked.run);
  } catch (const UsageError& e) {
    throw Error(e.what());  // what a file says is no mistake on the command line
  }
  if (!asked.data_dir.empty()) run.data_dir = asked.data_dir;
  return run;
}

std::span<const int32_t> rows_of(const Dataset& data, std::string_view split) {
  return split == "train" ? data.train : split == "validation" ? data.validation : data.test;
}

std::string class_name(const Dataset& data, size_t id) {
  return id < data.encoding.class_names.size() ? data.encoding.class_names[id] : std::to_string(id);
}

struct Evaluation {
  Score score;
  std::vector<std::vector<int64_t>> confusion;  // [class][predicted]; empty for numbers
  std::string predictions;                      // CSV
};

// e^(x_k − max) / Σ e^(x − max) of the largest x
double top_probability(std::span<const double> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - top);
  return 1 / sum;
}

Evaluation evaluate(const Problem& problem, const Model& model, std::string_view split) {
  const Dataset& data = problem.data();
  const size_t outputs = static_cast<size_t>(problem.outputs());
  Evaluation out;
  if (!problem.regression()) out.confusion.assign(outputs, std::vector<int64_t>(outputs));
  out.predictions = problem.regression() ? "row,target,predicted\n" : "row,label,predicted,probability\n";
  const auto each = [&](std::span<const int32_t> rows, const std::vector<double>& values) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t row = static_cast<size_t>(rows[i]);
      if (problem.regression()) {
        const double target = data.classes > 0 ? data.labels[row] : static_cast<double>(data.targets[row]);
        out.predictions += fmt::format("{},{:.9g},{:.9g}\n", row, target, values[i]);
        continue;
      }
      const std::span logits = std::span(values).subspan(i * outputs, outputs);
      const size_t label = static_cast<size_t>(data.labels[row]);
      const size_t predicted = static_cast<size_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
      ++out.confusion[label][predicted];
      out.predictions += fmt::format("{},{},{},{:.9g}\n", row, label, predicted, top_probability(logits));
    }
  };
  out.score = problem.score(model, rows_of(data, split), each);
  return out;
}

struct ClassScore {
  int64_t examples = 0;
  std::optional<double> recall, precision;  // none where there is nothing to divide by
};

std::vector<ClassScore> class_scores(const std::vector<std::vector<int64_t>>& confusion) {
  std::vector<ClassScore> out;
  for (size_t k = 0; k < confusion.size(); ++k) {
    ClassScore one;
    int64_t taken = 0;
    for (const std::vector<int64_t>& row : confusion) taken += row[k];
    one.examples = std::accumulate(confusion[k].begin(), confusion[k].end(), int64_t{0});
    const double right = static_cast<double>(confusion[k][k]);
    if (one.examples > 0) one.recall = right / static_cast<double>(one.examples);
    if (taken > 0) one.precision = right / static_cast<double>(taken);
    out.push_back(one);
  }
  return out;
}

std::string percent(std::optional<double> share) { return share ? fmt::format("{:.1f} %", 100 * *share) : "none"; }

std::string confusion_table(const Evaluation& result, const Dataset& data) {
  size_t width = 9;  // of "precision"
  for (size_t k = 0; k < result.confusion.size(); ++k) width = std::max(width, class_name(data, k).size());
  const std::vector<ClassScore> classes = class_scores(result.confusion);
  std::string out = fmt::format("\nrows: the class; columns: what it was taken for\n{:>{}}", "", width);
  for (size_t k = 0; k < classes.size(); ++k) out += fmt::format(" {:>{}}", class_name(data, k), width);
  out += fmt::format(" {:>{}}\n", "recall", width);
  for (size_t k = 0; k < classes.size(); ++k) {
    out += fmt::format("{:>{}}", class_name(data, k), width);
    for (const int64_t count : result.confusion[k]) out += fmt::format(" {:>{}}", count, width);
    out += fmt::format(" {:>{}}\n", percent(classes[k].recall), width);
  }
  out += fmt::format("{:>{}}", "precision", width);
  for (const ClassScore& one : classes) out += fmt::format(" {:>{}}", percent(one.precision), width);
  return out + "\n";
}

std::string report(const Config& asked, const Evaluation& result, const Problem& problem) {
  const Score& score = result.score;
  std::string out =
      fmt::format("{} on {} {} examples of {}\n", asked.run, score.examples, asked.split, problem.data().name);
  if (problem.regression()) return out + fmt::format("loss {:.6g}, rmse {:.6g}\n", score.loss, std::sqrt(score.loss));
  out += fmt::format("accuracy {:.2f} % ({} right), loss {:.6g}\n", 100 * *score.accuracy,
                     std::lround(*score.accuracy * static_cast<double>(score.examples)), score.loss);
  return out + confusion_table(result, problem.data());
}

Json document(const Config& asked, const Evaluation& result, const Problem& problem) {
  const Score& score = result.score;
  Json out = {{"format_version", kFormatVersion},
              {"command", "evaluate"},
              {"run", asked.run},
              {"data", problem.data().name},
              {"split", asked.split},
              {"examples", score.examples},
              {"loss", score.loss},
              {"accuracy", Json()},
              {"rmse", Json()},
              {"confusion", Json()},
              {"classes", Json()}};
  if (problem.regression()) {
    out["rmse"] = std::sqrt(score.loss);
    return out;
  }
  out["accuracy"] = *score.accuracy;
  out["confusion"] = result.confusion;
  const std::vector<ClassScore> classes = class_scores(result.confusion);
  for (size_t k = 0; k < classes.size(); ++k) {
    const ClassScore& one = classes[k];
    out["classes"].push_back({{"name", class_name(problem.data(), k)},
                              {"examples", one.examples},
                              {"recall", one.recall ? Json(*one.recall) : Json()},
                              {"precision", one.precision ? Json(*one.precision) : Json()}});
  }
  return out;
}

}  // namespace

int run_evaluate(const Config& asked) {
  const Device device = prepare_machine(asked);
  const Config run = config_of_run(asked);
  if (run.repeat > 1)
    throw Error(text("{}: holds the runs of {} seeds; name one, such as {}", asked.run, run.repeat,
                     (std::filesystem::path(asked.run) / text("seed-{}", run.seed)).string()));
  const DType dtype = find_precision(run);
  const Problem problem(run, device, dtype);
  const auto model = make_model(run, problem);
  const ParameterSet parameters(*model, device, dtype, static_cast<uint64_t>(run.seed));
  const std::filesystem::path weights = std::filesystem::path(asked.run) / "model.safetensors";
  load_weights(parameters, read_file(weights), weights.string(), problem.data());

  const Evaluation result = evaluate(
      problem, [&](const Tensor& x) { return (*model)(x, {}); }, asked.split);
  if (!std::isfinite(result.score.loss))
    throw Diverged(
        text("{}: the loss on the {} examples is not finite, so its answers mean nothing: train again with "
             "a lower --lr (was {})",
             asked.run, asked.split, run.lr));
  if (!asked.predictions.empty()) write_file(asked.predictions, result.predictions);
  if (asked.json)
    std::cout << json_text(document(asked, result, problem)) << "\n";
  else
    std::cout << report(asked, result, problem);
  return exit_done;
}

}  // namespace tapedeck
