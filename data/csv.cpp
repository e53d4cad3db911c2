#include "data/csv.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "data/csv_table.h"
#include "data/encoding.h"
#include "data/packed_file.h"
#include "data/utf8.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

struct Classes {
  std::vector<std::string> names;
  std::vector<int32_t> of_word;  // class id of each word of the table
};

std::string place(const CsvTable& table, int64_t line, size_t column) {
  return text("{}: line {}, column {}", table.layout.file, line, table.layout.name(column));
}

std::string place_of_word(const CsvTable& table, size_t word) {
  return place(table, table.line_of_word(static_cast<int32_t>(word)), table.layout.label);
}

// Names in their order, and for each key its place among them.
template <class Key>
Classes number_in_order(const std::vector<Key>& key_of_word, auto name) {
  std::map<Key, int32_t> ids;
  for (const Key& key : key_of_word) ids.emplace(key, 0);
  Classes classes;
  for (auto& [key, id] : ids) {
    id = static_cast<int32_t>(classes.names.size());
    classes.names.push_back(name(key));
  }
  for (const Key& key : key_of_word) classes.of_word.push_back(ids[key]);
  return classes;
}

// Answers that are all numbers, as whole numbers: "1", "01" and "1.0" are one class.
Classes number_classes(const CsvTable& table) {
  std::vector<int64_t> numbers;
  for (const std::string& word : table.words) {
    const double value = *csv_number(word);
    CHECK(std::abs(value) < 0x1p53 && value == std::floor(value),
          "{}: \"{}\" is no class: classes are words or whole numbers; to predict numbers, say --loss mse",
          place_of_word(table, numbers.size()), printable(word));
    numbers.push_back(static_cast<int64_t>(value));
  }
  return number_in_order(numbers, [](int64_t key) { return std::to_string(key); });
}

// The classes of this file alone.
Classes find_classes(const CsvTable& table) {
  const auto words =
      std::count_if(table.words.begin(), table.words.end(), [](const auto& w) { return !csv_number(w); });
  if (words == 0) return number_classes(table);

  const bool like_header = !table.layout.has_header() && words == 1 && table.words.size() > 1 &&
                           !csv_number(table.words[0]) &&
                           std::count(table.answers.begin(), table.answers.end(), 0) == 1;
  CHECK(!like_header,
        "{}: \"{}\" is a word and all other answers are numbers: a header whose other names are numbers? Then say "
        "--label NAME, or give all of them names that are none",
        place_of_word(table, 0), printable(table.words[0]));
  for (size_t i = 0; i < table.words.size(); ++i)
    CHECK(is_utf8(table.words[i]), "{}: \"{}\" is not UTF-8; save the file as UTF-8", place_of_word(table, i),
          printable(table.words[i]));
  return number_in_order(table.words, [](const std::string& key) { return key; });
}

// The same answers by the ids of a model.
Classes map_classes(const CsvTable& table, const Classes& own, const std::vector<std::string>& names) {
  Classes classes{.names = names, .of_word = {}};
  std::map<std::string_view, int32_t> ids;
  for (size_t id = 0; id < names.size(); ++id) ids.emplace(names[id], static_cast<int32_t>(id));
  for (size_t i = 0; i < own.of_word.size(); ++i) {
    const std::string& name = own.names[static_cast<size_t>(own.of_word[i])];
    const auto found = ids.find(name);
    CHECK(found != ids.end(), "{}: \"{}\" is no class of the model, which knows {}", place_of_word(table, i),
          printable(name), listed(names));
    classes.of_word.push_back(found->second);
  }
  return classes;
}

void assign(Dataset& data, const CsvTable& table, const Classes& classes) {
  data.classes = static_cast<int>(classes.names.size());
  data.labels.clear();
  for (const int32_t word : table.answers) data.labels.push_back(classes.of_word[static_cast<size_t>(word)]);
  data.encoding.class_names = classes.names;
}

void take_targets(Dataset& data, const CsvTable& table) {
  for (size_t row = 0; row < table.targets.size(); ++row) {
    data.targets.push_back(static_cast<float>(table.targets[row]));
    CHECK(std::isfinite(data.targets[row]), "{}: {} is beyond the range of a float; scale the answers down",
          place(table, table.lines[row], table.layout.label), table.targets[row]);
  }
}

// Throws unless a model that was trained on columns so encoded can take this table.
void check_columns(const CsvTable& table, const DataOptions& options) {
  const Encoding& model = *options.encoding;
  const std::string& file = table.layout.file;
  CHECK(
      !model.mean.empty(),
      "{}: the model was trained on data that is not standardised, so it cannot take a csv; use the same kind of data",
      file);
  if (model.class_names.empty() && !options.regression)
    throw UsageError(text("{}: the model predicts numbers and knows no classes: say --loss mse", file));
  const std::vector<std::string> names = table.layout.feature_names();
  CHECK(table.features() == std::ssize(model.mean), "{}: has {} features ({}), but the model wants {} ({})", file,
        table.features(), listed(names), model.mean.size(), listed(model.columns));
  for (size_t i = 0; i < std::min(names.size(), model.columns.size()); ++i)
    CHECK(names[i] == model.columns[i], "{}: feature {} is \"{}\", but the model wants \"{}\" there", file, i + 1,
          printable(names[i]), printable(model.columns[i]));
}

void standardise(Dataset& data, const CsvTable& table) {
  const Encoding& by = data.encoding;
  const auto columns = static_cast<size_t>(data.features);
  for (size_t i = 0; i < table.values.size(); ++i) {
    const size_t column = i % columns, row = i / columns;
    data.values[i] = static_cast<float>((table.values[i] - by.mean[column]) / by.deviation[column]);
    CHECK(std::isfinite(data.values[i]), "{}: {} is too far from the mean {} of the training rows to standardise",
          place(table, table.lines[row], column + (column >= table.layout.label)), table.values[i], by.mean[column]);
  }
}

}  // namespace

Dataset load_csv(const std::string& path, const DataOptions& options) {
  const CsvTable table = read_csv_table(path, options.label, options.regression);
  if (options.encoding) check_columns(table, options);
  Dataset data{.name = data_name(path), .shape = std::to_string(table.features()), .features = table.features()};
  data.values.assign(table.values.begin(), table.values.end());

  // The split comes first, from the file's own classes and numbers: no encoding can move a row to another part.
  Classes classes;
  if (options.regression) {
    take_targets(data, table);
  } else {
    classes = find_classes(table);
    CHECK(classes.names.size() >= 2 || options.encoding,
          "{}: every row has the class \"{}\"; classes need two at least", table.layout.file,
          printable(classes.names[0]));
    assign(data, table, classes);
  }
  split_by_content(data, options);

  if (options.encoding) {
    if (!options.regression) assign(data, table, map_classes(table, classes, options.encoding->class_names));
    data.encoding = *options.encoding;
  } else {
    data.encoding.columns = table.layout.feature_names();
    fit_columns(data.encoding, table.values, static_cast<size_t>(data.features), data.train, table.layout.file);
  }
  standardise(data, table);
  check(data, !options.encoding);
  return data;
}

}  // namespace tapedeck
