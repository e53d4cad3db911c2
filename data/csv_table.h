// A CSV file as a table of numbers and an answer a row, before any encoding.
#pragma once
#include "data/csv_layout.h"

namespace tapedeck {

struct CsvTable {
  CsvLayout layout;
  std::vector<double> values;      // [rows, features]
  std::vector<double> targets;     // [rows] the answers when they are numbers to predict,
  std::vector<int32_t> answers;    // [rows] else which of the words it is
  std::vector<std::string> words;  // each different one once, by first appearance, without spaces around it
  std::vector<int64_t> lines;      // [rows] where each stands in the file, from 1

  int64_t features() const { return static_cast<int64_t>(layout.count) - 1; }
  int64_t line_of_word(int32_t word) const;  // of the first row with this answer
};

// label: the answer's column, as read_layout takes it. Throws Error naming file, line and column of what is wrong.
CsvTable read_csv_table(const std::string& path, const std::string& label, bool regression);

}  // namespace tapedeck
