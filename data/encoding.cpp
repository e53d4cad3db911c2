#include "data/encoding.h"

#include <algorithm>
#include <cmath>

#include "data/utf8.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

// " (the first to differ: + and =)", where both have one
std::string difference(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (x == a.end() || y == b.end()) return "";
  return text(" (the first to differ: {} and {})", printable(*x), printable(*y));
}

}  // namespace

void fit_columns(Encoding& encoding, std::span<const double> values, size_t columns, std::span<const int32_t> train,
                 std::string_view source) {
  const auto row = [&](int32_t i) { return values.subspan(static_cast<size_t>(i) * columns, columns); };
  const double n = static_cast<double>(train.size());
  const auto first = row(train[0]);
  std::vector<double> sum(columns), squares(columns);
  std::vector<bool> changes(columns);
  for (const int32_t i : train)
    for (size_t c = 0; c < columns; ++c) {
      sum[c] += row(i)[c];
      if (row(i)[c] != first[c]) changes[c] = true;
    }
  // A column that never changes is not left to rounding: the mean of many 0.1 is not quite 0.1.
  for (size_t c = 0; c < columns; ++c) encoding.mean.push_back(changes[c] ? sum[c] / n : first[c]);
  for (const int32_t i : train)
    for (size_t c = 0; c < columns; ++c) squares[c] += std::pow(row(i)[c] - encoding.mean[c], 2);
  for (size_t c = 0; c < columns; ++c) {
    const double deviation = std::sqrt(squares[c] / n);
    CHECK(std::isfinite(deviation), "{}: column {}: its numbers are too large to standardise; scale them down", source,
          c + 1);
    encoding.deviation.push_back(deviation > 0 ? deviation : 1);
  }
}

void take_answers(Dataset& data, std::span<const double> answers, const DataOptions& options, std::string_view source) {
  for (size_t i = 0; i < answers.size(); ++i) {
    if (options.regression) {
      data.targets.push_back(static_cast<float>(answers[i]));
      CHECK(std::isfinite(data.targets[i]), "{}: answer {} at row {} is no finite number", source, answers[i], i);
      continue;
    }
    const bool is_id = answers[i] >= 0 && answers[i] < most_classes && answers[i] == std::floor(answers[i]);
    CHECK(is_id,
          "{}: label {} at row {} is no class id, a whole number from 0 to {}; to predict numbers, say --loss mse",
          source, answers[i], i, most_classes - 1);
    data.labels.push_back(static_cast<int32_t>(answers[i]));
    data.classes = std::max(data.classes, data.labels[i] + 1);
  }
  CHECK(options.regression || options.encoding || data.classes >= 2, "{}: every label is 0; classes need two at least",
        source);
}

std::string listed(std::span<const std::string> names) {
  constexpr size_t most = 8;
  std::string list;
  for (size_t i = 0; i < std::min(names.size(), most); ++i) list += (i > 0 ? ", " : "") + printable(names[i]);
  if (names.size() > most) list += text(" and {} more", names.size() - most);
  return names.empty() ? "none" : list;
}

void check_encoding(const Dataset& data, const Encoding& of_model) {
  const Encoding& own = data.encoding;
  CHECK(own.class_names == of_model.class_names, "{}: its {} are {}, but those of the model {}{}", data.name,
        data.sequences ? "tokens" : "class names", listed(own.class_names), listed(of_model.class_names),
        difference(own.class_names, of_model.class_names));
  CHECK(own.columns == of_model.columns, "{}: its columns are {}, but those of the model {}", data.name,
        listed(own.columns), listed(of_model.columns));
  const auto said = [](const Encoding& encoding) {
    return text(encoding.mean.empty() ? "taken as they are" : "standardised, by {} means", encoding.mean.size());
  };
  CHECK(own.mean.size() == of_model.mean.size(), "{}: its features are {}, but those of the model are {}", data.name,
        said(own), said(of_model));
  CHECK(own == of_model, "{}: its columns are standardised by other means than those of the model", data.name);
}

}  // namespace tapedeck
