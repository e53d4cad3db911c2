// CSV as text [RFC 4180]: records of fields between commas. A field in quotes may hold commas, line ends, and quotes
// written twice. Lines end in LF, CRLF or CR; the last one needs no end. Blank lines and byte-order marks are no data.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/packed_file.h"

namespace tapedeck {

// The fields of one record. They point into the text that it was split from.
struct CsvRecord {
  std::vector<std::string_view> fields;
  size_t bytes = 0;   // with its line end
  int64_t lines = 0;  // that it takes up; more than one where a quoted field holds line ends

  bool blank() const;  // an empty line, or one of spaces
};

// Splits the record at the beginning of text, which is not empty. Doubled quotes become single ones in place, so text
// changes. Returns false, and changes nothing, when the record may go on beyond text; with last, text is all there is.
// Throws Error naming file and line for a quote that is never closed, and for text after a closing quote.
bool split_record(std::span<char> text, bool last, std::string_view file, int64_t line, CsvRecord& record);

std::string_view trimmed(std::string_view field);  // without the spaces around it

// A number that takes up the whole field but for spaces around it: "-1.5e3", "+2". Finite or not: "nan",
// "inf" and "1e999" are numbers.
std::optional<double> csv_number(std::string_view field);

// The records of a file, plain or gzip, one after the other.
class CsvReader {
 public:
  explicit CsvReader(const std::string& path) : file_(path) {}

  bool next();  // to the next record that is not blank; false when there is none
  std::span<const std::string_view> fields() const { return record_.fields; }  // valid until next()

  const std::string& file() const { return file_.name(); }
  bool is_gzip() const { return file_.is_gzip(); }
  int64_t line() const { return line_; }            // where the record begins, from 1
  uint64_t offset() const { return offset_; }       // of its first byte in the content
  uint64_t bytes() const { return record_.bytes; }  // with its line end

 private:
  void refill();

  PackedFile file_;
  std::vector<char> text_;  // what is read of the file and not yet split: from begin_ to end_
  size_t begin_ = 0, end_ = 0;
  bool last_ = false;  // the file has no more than text_
  CsvRecord record_;
  int64_t line_ = 0, next_line_ = 1;
  uint64_t offset_ = 0, next_offset_ = 0;
};

}  // namespace tapedeck
