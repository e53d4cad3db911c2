#include "data/csv_reader.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "data/utf8.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr size_t longest_record = 64 << 20;  // far beyond any row: a quote that nobody closed

// The quote that closes a field whose content begins at p; end when there is none. It is the first that is not doubled.
char* closing_quote(char* p, char* end, bool& doubled) {
  for (;; p += 2) {
    p = std::find(p, end, '"');
    if (p == end || p + 1 == end || p[1] != '"') return p;
    doubled = true;
  }
}

// Line ends among these bytes: LF, CRLF or CR.
int64_t count_line_ends(std::string_view text) {
  int64_t count = 0;
  for (size_t i = 0; i < text.size(); ++i)
    count += text[i] == '\n' || (text[i] == '\r' && (i + 1 == text.size() || text[i + 1] != '\n'));
  return count;
}

// "" -> " within the field, which only gets shorter.
std::string_view undouble(std::string_view field) {
  char* const begin = const_cast<char*>(field.data());  // of a text that split_record may change
  char* to = begin;
  for (size_t i = 0; i < field.size(); ++i) {
    *to++ = field[i];
    i += field[i] == '"';
  }
  return {begin, to};
}

}  // namespace

bool CsvRecord::blank() const { return fields.size() == 1 && trimmed(fields[0]).empty(); }

bool split_record(std::span<char> text, bool last, std::string_view file, int64_t line, CsvRecord& record) {
  char *p = text.data(), *const end = p + text.size();
  std::vector<size_t> doubled_fields;
  bool quoted = false;
  record.fields.clear();
  for (bool more = true; more;) {
    char *from = p, *to;
    if (p < end && *p == '"') {
      bool doubled = false;
      quoted = true;
      to = closing_quote(++from, end, doubled);
      if (!last && end - to <= 1) return false;  // the byte after it tells whether it is one
      if (to >= end)
        throw Error(tapedeck::text("{}: line {}, column {}: a quote is opened and never closed; close it, or remove it",
                                   file, line, record.fields.size() + 1));
      if (doubled) doubled_fields.push_back(record.fields.size());
      p = to + 1;
      if (p != end && *p != ',' && *p != '\n' && *p != '\r')
        throw Error(tapedeck::text(
            "{}: line {}, column {}: \"{}\" stands after a closing quote; write a quote within quotes twice", file,
            line, record.fields.size() + 1, printable({p, std::find(p, end, '\n')})));
    } else {
      while (p < end && *p != ',' && *p != '\n' && *p != '\r') ++p;
      to = p;
    }
    record.fields.emplace_back(from, to);
    if (p == end) {
      if (!last) return false;
      break;
    }
    more = *p++ == ',';
  }
  if (p[-1] == '\r') {
    if (p == end && !last) return false;
    if (p < end && *p == '\n') ++p;
  }
  record.bytes = static_cast<size_t>(p - text.data());
  record.lines = quoted ? std::max<int64_t>(1, count_line_ends({text.data(), record.bytes})) : 1;
  for (const size_t i : doubled_fields) record.fields[i] = undouble(record.fields[i]);
  return true;
}

std::string_view trimmed(std::string_view field) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  while (!field.empty() && is_space(field.front())) field.remove_prefix(1);
  while (!field.empty() && is_space(field.back())) field.remove_suffix(1);
  return field;
}

std::optional<double> csv_number(std::string_view field) {
  field = trimmed(field);
  if (field.starts_with('+') && !field.starts_with("+-")) field.remove_prefix(1);  // from_chars takes no plus
  double value = 0;
  const char* const end = field.data() + field.size();
  const auto [stopped, failed] = std::from_chars(field.data(), end, value);
  if (stopped != end || failed == std::errc::invalid_argument) return std::nullopt;
  if (failed == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
  return value;
}

bool CsvReader::next() {
  for (;;) {
    line_ = next_line_, offset_ = next_offset_;
    const std::span<char> rest(text_.data() + begin_, end_ - begin_);
    if (!last_ && rest.size() < byte_order_mark.size()) {
      refill();
      continue;
    }
    if (rest.empty()) return false;
    if (std::string_view(rest.data(), rest.size()).starts_with(byte_order_mark)) {  // also of a file that was appended
      begin_ += byte_order_mark.size(), next_offset_ += byte_order_mark.size();
      continue;
    }
    if (!split_record(rest, last_, file(), line_, record_)) {
      refill();
      continue;
    }
    begin_ += record_.bytes, next_offset_ += record_.bytes, next_line_ += record_.lines;
    if (!record_.blank()) return true;
  }
}

// Moves what is left to the front and reads as much again behind it: a record longer than all that was read is split
// anew after each doubling, so its bytes are seen twice on average.
void CsvReader::refill() {
  std::copy(text_.begin() + static_cast<ptrdiff_t>(begin_), text_.begin() + static_cast<ptrdiff_t>(end_),
            text_.begin());
  end_ -= begin_, begin_ = 0;
  if (end_ >= longest_record)
    throw Error(text("{}: line {}: one record of more than {} bytes: is a quote opened and never closed?", file(),
                     line_, longest_record));
  const size_t room = std::max<size_t>(1 << 16, end_);
  text_.resize(end_ + room);
  const size_t got = file_.read(reinterpret_cast<uint8_t*>(text_.data()) + end_, room);
  end_ += got;
  last_ = got < room;
}

}  // namespace tapedeck
