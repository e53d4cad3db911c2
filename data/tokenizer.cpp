#include "data/tokenizer.h"

#include <algorithm>

#include "data/utf8.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

int64_t characters(std::string_view text) {
  int64_t count = 0;
  for (; !text.empty(); ++count)
    if (!take_character(text)) text.remove_prefix(1);
  return count;
}

}  // namespace

std::vector<std::string> byte_names() {
  constexpr std::string_view digits = "0123456789abcdef";
  std::vector<std::string> names;
  for (size_t byte = 0; byte < 256; ++byte) names.push_back({'0', 'x', digits[byte / 16], digits[byte % 16]});
  return names;
}

Tokenizer::Tokenizer(std::vector<std::string> names) : names_(std::move(names)), is_bytes_(names_ == byte_names()) {
  for (const std::string& name : names_) {
    tokens_.emplace(name, static_cast<int32_t>(tokens_.size()));
    longest_ = std::max(longest_, name.size());
    if (!is_bytes_ && characters(name) > 1) spaced_ = true;
  }
  CHECK(tokens_.size() == names_.size() && !tokens_.contains(""),
        "vocabulary: {} names for {} tokens, which need a name of their own each", tokens_.size(), names_.size());
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, std::string_view source) const {
  std::vector<int32_t> tokens;
  if (is_bytes_) {
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  const auto refuse = [&](size_t at, size_t length) {
    throw UsageError(tapedeck::text("{}: \"{}\", character {}, is not in the vocabulary of {} tokens: {}", source,
                                    printable(text.substr(at, length)), characters(text.substr(0, at)) + 1, size(),
                                    all()));
  };
  for (size_t at = 0; at < text.size();) {
    auto found = tokens_.end();
    size_t length = std::min(longest_, text.size() - at) + 1;
    while (found == tokens_.end() && --length > 0) found = tokens_.find(std::string(text.substr(at, length)));
    const auto digit = [&](size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
    if (spaced_ && found != tokens_.end() && digit(at) && digit(at + length)) {  // 100 is not 10 and 0
      size_t end = at;
      while (digit(end)) ++end;
      refuse(at, end - at);
    }
    if (found != tokens_.end()) {
      tokens.push_back(found->second);
    } else {
      std::string_view rest = text.substr(at);
      const bool is_character = take_character(rest).has_value();
      length = is_character ? text.size() - at - rest.size() : 1;
      if (!spaced_ || text[at] != ' ') refuse(at, length);
    }
    at += length;
  }
  return tokens;
}

std::string Tokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    CHECK(token >= 0 && token < size(), "token {} is outside the vocabulary of {} tokens", token, size());
    if (spaced_ && !text.empty()) text += ' ';
    if (is_bytes_)
      text += static_cast<char>(token);
    else
      text += names_[static_cast<size_t>(token)];
  }
  return text;
}

std::string Tokenizer::all() const {
  std::string list;
  for (const std::string& name : names_) list += (spaced_ && !list.empty() ? " " : "") + name;
  return "\"" + printable(list) + "\"";
}

}  // namespace tapedeck
