// The dictionary at the beginning of an .npy file: a Python literal of which only one form means an array.
#include <algorithm>
#include <charconv>

#include "data/npy.h"
#include "data/utf8.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

// Reads words of a Python literal off the front of a text.
class Literal {
 public:
  Literal(std::string_view text, std::string_view file) : rest_(text), file_(file) {}

  bool take(char symbol) {  // skips spaces before it
    skip_spaces();
    if (!rest_.starts_with(symbol)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void want(char symbol) {
    CHECK(take(symbol), "{}: its header is damaged: {} is missing before {}; save the array again", file_,
          std::string(1, symbol), shown());
  }
  std::string string() {
    skip_spaces();
    const char quote = rest_.empty() ? 0 : rest_[0];
    const size_t end = quote == '\'' || quote == '"' ? rest_.find(quote, 1) : rest_.npos;
    CHECK(end != rest_.npos,
          "{}: its header wants a text in quotes at {}; is it an array of records? Save plain numbers", file_, shown());
    const std::string_view found = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return std::string(found);
  }
  bool boolean() {
    skip_spaces();
    for (const std::string_view word : {"True", "False"})
      if (rest_.starts_with(word)) {
        rest_.remove_prefix(word.size());
        return word == "True";
      }
    CHECK(false, "{}: its header wants True or False at {}; save the array again", file_, shown());
    return false;
  }
  int64_t extent() {
    skip_spaces();
    int64_t value = -1;
    const auto [end, failed] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    CHECK(failed == std::errc() && value >= 0, "{}: its header wants an extent, a whole number from 0, at {}", file_,
          shown());
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  bool at_end() {
    skip_spaces();
    return rest_.empty();
  }
  std::string shown() const {
    const std::string_view text = rest_.substr(0, rest_.find_last_not_of(" \n") + 1);
    return text.empty() ? "its end" : "\"" + printable(text) + "\"";
  }

 private:
  void skip_spaces() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\n"), rest_.size())); }

  std::string_view rest_, file_;
};

// () is one number, (3,) a vector, (2, 3) a matrix.
std::vector<int64_t> parse_shape(Literal& literal) {
  std::vector<int64_t> shape;
  literal.want('(');
  while (!literal.take(')')) {
    shape.push_back(literal.extent());
    if (literal.take(',')) continue;
    literal.want(')');
    break;
  }
  return shape;
}

}  // namespace

NpyHeader parse_npy_header(std::string_view text, std::string_view file) {
  Literal literal(text, file);
  NpyHeader header;
  bool descr = false, order = false, shape = false;
  const auto once = [&](bool& seen, const std::string& key) {
    CHECK(!seen, "{}: its header has {} twice; save the array again", file, key);
    seen = true;
  };
  literal.want('{');
  while (!literal.take('}')) {
    const std::string key = literal.string();
    literal.want(':');
    if (key == "descr")
      once(descr, key), header.descr = literal.string();
    else if (key == "fortran_order")
      once(order, key), header.fortran_order = literal.boolean();
    else if (key == "shape")
      once(shape, key), header.shape = parse_shape(literal);
    else
      CHECK(false, "{}: its header has an unknown key {}; save the array again", file, printable(key));
    if (literal.take(',')) continue;
    literal.want('}');
    break;
  }
  CHECK(literal.at_end(), "{}: its header goes on after the dictionary with {}", file, literal.shown());
  CHECK(descr && order && shape, "{}: its header lacks {}; save the array again", file,
        !descr   ? "descr"
        : !order ? "fortran_order"
                 : "shape");
  return header;
}

std::string npy_header(std::string_view descr, std::span<const int64_t> shape) {
  std::string dictionary = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) dictionary += ", ";
    dictionary += std::to_string(shape[i]);
  }
  dictionary += shape.size() == 1 ? ",), }" : "), }";
  const size_t before = 6 + 2 + 2;  // magic, version, length
  dictionary.append(63 - (before + dictionary.size()) % 64, ' ');
  dictionary += '\n';
  const size_t length = dictionary.size();
  CHECK(length <= 0xFFFF, "npy: a shape of {} extents does not fit a header of version 1", shape.size());
  std::string header = "\x93NUMPY";
  header += {'\1', '\0', static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
  return header + dictionary;
}

}  // namespace tapedeck
