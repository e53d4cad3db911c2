// What the first row of a CSV file says of all others: how many columns there are, how they are called, and which of
// them holds the answer.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "data/csv_reader.h"

namespace tapedeck {

struct CsvLayout {
  std::string file;                  // its name, for messages
  std::vector<std::string> columns;  // names of all columns; empty: the first row is data already
  size_t count = 0;                  // of columns, with the answer's
  size_t label = 0;                  // which of them holds the answer, from 0

  bool has_header() const { return !columns.empty(); }
  std::string name(size_t column) const;  // for messages: "width", or its number from 1
  std::vector<std::string> feature_names() const;

  // Throws Error naming line, column and value unless the row has as many fields as the first one; unless the field
  // holds something; unless it holds a finite number, which is returned.
  void check_fields(size_t fields, int64_t line) const;
  void check_filled(std::string_view field, size_t column, int64_t line) const;
  double number(std::string_view field, size_t column, int64_t line) const;
};

// From the first row. It is a header when the fields outside the answer's column are text or empty, or when label is a
// name in it, and data when they are numbers or empty; part numbers and part text is refused.
// label: the answer's column, by its number from 1 or by its name in the header; empty: the last one.
// Throws Error for such a row and for a file without rows, and UsageError for a column that does not exist, naming the
// nearest.
CsvLayout read_layout(CsvReader& reader, const std::string& label);

}  // namespace tapedeck
