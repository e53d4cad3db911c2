#include "apps/describe_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <span>

#include "apps/record.h"
#include "data/byte_count.h"
#include "data/encoding.h"
#include "data/task_spec.h"
#include "data/tokenizer.h"
#include "data/utf8.h"

namespace tapedeck {
namespace {

struct ValueRange {
  float low = std::numeric_limits<float>::infinity(), high = -low;
  void take(std::span<const float> values) {
    for (const float x : values) low = std::min(low, x), high = std::max(high, x);
  }
};

ValueRange value_range(const Dataset& data) {
  ValueRange range;
  range.take(data.values);
  if (!data.pixels.empty()) {
    const auto [low, high] = std::minmax_element(data.pixels.begin(), data.pixels.end());
    const float ends[] = {static_cast<float>(*low) * data.pixel_scale, static_cast<float>(*high) * data.pixel_scale};
    range.take(ends);
  }
  if (data.records) {
    std::vector<float> record(static_cast<size_t>(data.features));
    for (int32_t row = 0; row < data.rows(); ++row) {
      data.records->read({&row, 1}, record.data());
      range.take(record);
    }
  }
  return range;
}

// Examples of each class among these rows.
std::vector<int64_t> class_counts(const Dataset& data, std::span<const int32_t> rows) {
  std::vector<int64_t> counts(static_cast<size_t>(data.classes));
  for (const int32_t row : rows) ++counts[static_cast<size_t>(data.labels[static_cast<size_t>(row)])];
  return counts;
}

std::string value_text(const Json& value) {
  if (value.is_number_unsigned()) return grouped(value.get<uint64_t>());
  if (!value.is_string()) return json_text(value, -1);
  return printable(value.get_ref<const std::string&>(), std::string::npos);
}

struct Split {
  const char* name;
  const std::vector<int32_t>& rows;
};
std::vector<Split> splits(const Dataset& data) {
  return {{"train", data.train}, {"validation", data.validation}, {"test", data.test}};
}

// What a model is given of an example, and what it is asked for, in the vocabulary's characters.
struct ShownExample {
  std::string given, asked;
};
ShownExample first_example(const Dataset& data) {
  const auto length = static_cast<size_t>(data.features), asked = static_cast<size_t>(data.sequences->answers_each());
  std::vector<int32_t> tokens(length), answers(length);
  const int32_t row = 0;
  gather(data, {&row, 1}, tokens.data(), answers.data());
  const Tokenizer tokenizer(data.encoding.class_names);
  if (asked == length) return {tokenizer.decode(tokens), tokenizer.decode(answers)};
  return {tokenizer.decode(std::span(tokens).first(length - asked + 1)),
          tokenizer.decode(std::span(answers).last(asked))};
}

std::string what(const Dataset& data, const DataKind& kind) {
  return kind.takes_task ? parse_task(data.name).kind->what : kind.what;
}

std::string sequences_text(const Dataset& data, const DataKind& kind) {
  const auto [given, asked] = first_example(data);
  std::string out = fmt::format("{}: {}\nfrom      {}\n", printable(data.name), what(data, kind), kind.origin);
  if (kind.takes_task) out += fmt::format("takes     {}\n", parameters(*parse_task(data.name).kind));
  out += fmt::format("rows      {} of {}, to answer at {} of them\naccuracy  of {}\n", data.rows(), data.shape,
                     data.sequences->answers_each(), data.whole_examples ? "examples, all answers right" : "answers");
  out += fmt::format("classes   {} tokens: {}\nexample   \"{}\"\nanswers   \"{}\"\n\n", data.classes,
                     listed(data.encoding.class_names), printable(given), printable(asked));
  for (const auto& [name, rows] : splits(data)) out += fmt::format("{:<10} {:>7}\n", name, rows.size());
  if (data.tests_on_validation) out += "the test part is the validation part: --test FRACTION takes one of its own\n";
  return out;
}

Json sequences_json(const Dataset& data) {
  const auto [given, asked] = first_example(data);
  return {{"answers_each", data.sequences->answers_each()},
          {"accuracy_of", data.whole_examples ? "examples" : "answers"},
          {"tests_on_validation", data.tests_on_validation},
          {"example", {{"given", given}, {"asked", asked}}}};
}

}  // namespace

Json dataset_json(const Dataset& data, const DataKind& kind) {
  Json out = {{"format_version", kFormatVersion},
              {"name", data.name},
              {"what", what(data, kind)},
              {"origin", kind.origin},
              {"rows", data.rows()},
              {"features", data.features},
              {"shape", data.shape},
              {"classes", data.classes}};
  if (data.sequences) {
    out.update(sequences_json(data));
  } else {
    const ValueRange range = value_range(data);
    out["range"] = {range.low, range.high};
  }
  if (!data.encoding.columns.empty() || kind.name == "csv") out["columns"] = data.encoding.columns;
  if (!data.encoding.class_names.empty()) out["class_names"] = data.encoding.class_names;
  for (const auto& [name, rows] : splits(data)) out["splits"][name] = {{"rows", rows.size()}};
  if (!data.labels.empty())
    for (const auto& [name, rows] : splits(data)) out["splits"][name]["class_counts"] = class_counts(data, rows);
  return out;
}

std::string dataset_text(const Dataset& data, const DataKind& kind) {
  if (data.sequences) return sequences_text(data, kind);
  const ValueRange range = value_range(data);
  const Encoding& encoding = data.encoding;
  const bool flat = data.shape == std::to_string(data.features);
  std::string out = fmt::format("{}: {}\nfrom      {}\nrows      {}\nfeatures  {}{}, values from {:.4g} to {:.4g}\n",
                                printable(data.name), kind.what, kind.origin, data.rows(), data.features,
                                flat ? "" : fmt::format(" ({})", printable(data.shape)), range.low, range.high);
  if (!encoding.columns.empty())
    out += fmt::format("columns   {}\n", listed(encoding.columns));
  else if (kind.name == "csv")
    out += "columns   without names: the file has no header, its first row is data\n";
  out += fmt::format("classes   {}\n\n{:<10} {:>7}", data.classes, "split", "rows");
  for (size_t k = 0; k < static_cast<size_t>(data.classes); ++k)
    out += fmt::format(" {:>7}", encoding.class_names.empty() ? std::to_string(k) : printable(encoding.class_names[k]));
  for (const auto& [name, rows] : splits(data)) {
    out += fmt::format("\n{:<10} {:>7}", name, rows.size());
    if (data.classes > 0)
      for (const int64_t count : class_counts(data, rows)) out += fmt::format(" {:>7}", count);
  }
  return out + "\n";
}

std::string facts_text(const Json& facts) {
  std::string out;
  for (const auto& [key, value] : facts.items()) {
    std::string label = key;
    std::replace(label.begin(), label.end(), '_', ' ');
    if (!value.is_object()) {
      out += fmt::format("{:<14} {}\n", label, value_text(value));
      continue;
    }
    out += label + "\n";
    for (const auto& [part, inside] : value.items())
      out += fmt::format("  {:<12} {}\n", printable(part), value_text(inside));
  }
  return out;
}

}  // namespace tapedeck
