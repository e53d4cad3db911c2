#include "apps/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/utf8.h"

namespace tapedeck {
namespace {

// e^(x_k − max) / Σ e^(x − max) of the largest x
double top_probability(std::span<const double> logits) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const double x : logits) sum += std::exp(x - top);
  return 1 / sum;
}

std::string percent(std::optional<double> share) { return share ? fmt::format("{:.1f} %", 100 * *share) : "none"; }

// A name may hold whatever its file held.
std::string shown_name(const Dataset& data, size_t id) { return printable(class_name(data, id)); }

}  // namespace

std::string class_name(const Dataset& data, size_t id) {
  return id < data.encoding.class_names.size() ? data.encoding.class_names[id] : std::to_string(id);
}

Evaluation evaluate(const Problem& problem, const Model& model, std::span<const int32_t> rows) {
  const Dataset& data = problem.data();
  const size_t outputs = static_cast<size_t>(problem.outputs());
  Evaluation out;
  if (problem.sequences()) {
    out.score = problem.score(model, rows);
    return out;
  }
  if (!problem.regression()) out.confusion.assign(outputs, std::vector<int64_t>(outputs));
  out.predictions = problem.regression() ? "row,target,predicted\n" : "row,label,predicted,probability\n";
  const auto each = [&](std::span<const int32_t> batch, const std::vector<double>& values) {
    for (size_t i = 0; i < batch.size(); ++i) {
      const size_t row = static_cast<size_t>(batch[i]);
      if (problem.regression()) {
        const double target = data.classes > 0 ? data.labels[row] : static_cast<double>(data.targets[row]);
        out.predictions += fmt::format("{},{:.9g},{:.9g}\n", row, target, values[i]);
        continue;
      }
      const std::span logits = std::span(values).subspan(i * outputs, outputs);
      const size_t label = static_cast<size_t>(data.labels[row]);
      const int64_t predicted = argmax(logits);
      if (predicted >= 0) ++out.confusion[label][static_cast<size_t>(predicted)];
      out.predictions += fmt::format("{},{},{},{:.9g}\n", row, label, predicted, top_probability(logits));
    }
  };
  out.score = problem.score(model, rows, each);
  return out;
}

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

std::string confusion_table(const Evaluation& result, const Dataset& data) {
  size_t width = 9;  // of "precision"
  for (size_t k = 0; k < result.confusion.size(); ++k) width = std::max(width, shown_name(data, k).size());
  const std::vector<ClassScore> classes = class_scores(result.confusion);
  std::string out = fmt::format("\nrows: the class; columns: what it was taken for\n{:>{}}", "", width);
  for (size_t k = 0; k < classes.size(); ++k) out += fmt::format(" {:>{}}", shown_name(data, k), width);
  out += fmt::format(" {:>{}}\n", "recall", width);
  for (size_t k = 0; k < classes.size(); ++k) {
    out += fmt::format("{:>{}}", shown_name(data, k), width);
    for (const int64_t count : result.confusion[k]) out += fmt::format(" {:>{}}", count, width);
    out += fmt::format(" {:>{}}\n", percent(classes[k].recall), width);
  }
  out += fmt::format("{:>{}}", "precision", width);
  for (const ClassScore& one : classes) out += fmt::format(" {:>{}}", percent(one.precision), width);
  return out + "\n";
}

}  // namespace tapedeck
