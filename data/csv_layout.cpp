#include "data/csv_layout.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "data/nearest.h"
#include "data/utf8.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

bool is_text(std::string_view field) { return !trimmed(field).empty() && !csv_number(field); }

// Whether the fields outside the answer's column, but for empty ones, are text. Throws Error where some are and some
// are numbers: a header with a number for a name, or data with "NA" in it? Either would be lost if taken for the other.
bool has_names(const CsvLayout& layout, std::span<const std::string> fields, int64_t line) {
  std::optional<size_t> word, number;  // the first of each
  for (size_t i = fields.size(); i-- > 0;)
    if (i != layout.label && !fields[i].empty()) (is_text(fields[i]) ? word : number) = i;
  CHECK(!word || !number,
        "{}: line {}, column {}: \"{}\" is no number, but column {} has \"{}\": if this row is data, write a number or "
        "leave the row out; if it is a header, give each column a name that is no number, or say --label NAME",
        layout.file, line, layout.name(*word), printable(fields[*word]), layout.name(*number),
        printable(fields[*number]));
  return word.has_value();
}

// "3" -> 3
std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Which column `label` means, from 0.
size_t find_label(const std::string& file, std::span<const std::string> names, const std::string& label) {
  if (label.empty()) return names.size() - 1;
  if (const auto number = whole_number(label)) {
    if (*number < 1 || *number > std::ssize(names))
      throw UsageError(text("--label {}: {} has columns 1 to {}", label, file, names.size()));
    return static_cast<size_t>(*number - 1);
  }
  const auto found = std::find(names.begin(), names.end(), label);
  if (found == names.end()) {
    if (std::none_of(names.begin(), names.end(), is_text))
      throw UsageError(
          text("--label {}: the columns of {} have no names; give a number from 1 to {}", label, file, names.size()));
    throw UsageError(
        text("--label {}: {} has no such column; did you mean {}?", label, file, printable(nearest(label, names))));
  }
  if (std::find(found + 1, names.end(), label) != names.end())
    throw UsageError(text("--label {}: {} has two columns of that name; give its number, {} for the first", label, file,
                          found - names.begin() + 1));
  return static_cast<size_t>(found - names.begin());
}

}  // namespace

std::string CsvLayout::name(size_t column) const {
  return has_header() && !columns[column].empty() ? "\"" + printable(columns[column]) + "\""
                                                  : std::to_string(column + 1);
}

std::vector<std::string> CsvLayout::feature_names() const {
  std::vector<std::string> names = columns;
  if (has_header()) names.erase(names.begin() + static_cast<ptrdiff_t>(label));
  return names;
}

void CsvLayout::check_fields(size_t fields, int64_t line) const {
  CHECK(fields == count, "{}: line {} has {} fields, but the first row has {}: a comma too {}?", file, line, fields,
        count, fields < count ? "few" : "many");
}

void CsvLayout::check_filled(std::string_view field, size_t column, int64_t line) const {
  CHECK(!trimmed(field).empty(), "{}: line {}, column {}: is empty; fill it in, or leave the row out", file, line,
        name(column));
}

double CsvLayout::number(std::string_view field, size_t column, int64_t line) const {
  const std::optional<double> value = csv_number(field);
  if (!value || !std::isfinite(*value)) {
    check_filled(field, column, line);
    CHECK(false, "{}: line {}, column {}: \"{}\" is no finite number; write one, or leave the {}", file, line,
          name(column), printable(field), value ? "row out" : "column out; is it the answer? Then say --label");
  }
  return *value;
}

CsvLayout read_layout(CsvReader& reader, const std::string& label) {
  CHECK(reader.next(), "{}: has no rows", reader.file());
  CsvLayout layout{.file = reader.file(), .columns = {}, .count = reader.fields().size()};
  CHECK(layout.count >= 2, "{}: line {} has one field, wants at least one feature and the answer with commas between",
        layout.file, reader.line());
  std::vector<std::string> names;
  for (const std::string_view field : reader.fields()) names.emplace_back(trimmed(field));
  layout.label = find_label(layout.file, names, label);
  const bool found_by_name = is_text(label);
  if (!found_by_name && !has_names(layout, names, reader.line())) return layout;
  for (size_t i = 0; i < names.size(); ++i)
    CHECK(is_utf8(names[i]), "{}: line {}: the name of column {} is not UTF-8; save the file as UTF-8", layout.file,
          reader.line(), i + 1);
  layout.columns = names;
  return layout;
}

}  // namespace tapedeck
