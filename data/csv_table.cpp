#include "data/csv_table.h"

#include <algorithm>
#include <unordered_map>

#include "data/encoding.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

struct Hash {  // looks a string_view up without making a string of it
  using is_transparent = void;
  size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
};
using Words = std::unordered_map<std::string, int32_t, Hash, std::equal_to<>>;

// The number of a word, a new one for a new word.
int32_t find_or_add(Words& known, CsvTable& table, std::string_view word) {
  if (const auto found = known.find(word); found != known.end()) return found->second;
  const auto id = static_cast<int32_t>(table.words.size());
  CHECK(id < most_classes, "{}: line {}, column {}: more than {} classes; to predict numbers, say --loss mse",
        table.layout.file, table.lines.back(), table.layout.name(table.layout.label), most_classes);
  table.words.emplace_back(word);
  known.emplace(word, id);
  return id;
}

}  // namespace

int64_t CsvTable::line_of_word(int32_t word) const {
  return lines[static_cast<size_t>(std::find(answers.begin(), answers.end(), word) - answers.begin())];
}

CsvTable read_csv_table(const std::string& path, const std::string& label, bool regression) {
  CsvReader reader(path);
  CsvTable table;
  table.layout = read_layout(reader, label);
  const CsvLayout& layout = table.layout;
  Words known;
  for (bool more = !layout.has_header() || reader.next(); more; more = reader.next()) {
    const auto fields = reader.fields();
    layout.check_fields(fields.size(), reader.line());
    table.lines.push_back(reader.line());
    for (size_t i = 0; i < layout.count; ++i)
      if (i != layout.label)
        table.values.push_back(layout.number(fields[i], i, reader.line()));
      else if (regression)
        table.targets.push_back(layout.number(fields[i], i, reader.line()));
      else
        layout.check_filled(fields[i], i, reader.line()),
            table.answers.push_back(find_or_add(known, table, trimmed(fields[i])));
  }
  CHECK(!table.lines.empty(), "{}: has a header and no rows", layout.file);
  return table;
}

}  // namespace tapedeck
