#include "data/text.h"

#include <algorithm>

#include "data/packed_file.h"
#include "data/utf8.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

// Calls visit(character, its place from 1) for each.
void for_each_character(std::string_view text, std::string_view source, auto visit) {
  std::string_view rest = text;
  for (int64_t place = 1; !rest.empty(); ++place) {
    const std::optional<char32_t> character = take_character(rest);
    CHECK(character, "{}: byte {} is not UTF-8", source, text.size() - rest.size());
    visit(*character, place);
  }
}

// Throws Error with the first byte that is no UTF-8, counted from 0.
void check_utf8(std::string_view text, std::string_view file) {
  std::string_view rest = text;
  while (!rest.empty() && take_character(rest)) {}
  const size_t at = text.size() - rest.size();
  CHECK(rest.empty(),
        "{}: the byte at offset {} (line {}) is not UTF-8: \"{}\"; save the text as UTF-8, or take bytes as tokens by "
        "--bytes",
        file, at, 1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(at), '\n'),
        printable(rest.substr(0, 1)));
}

}  // namespace

Vocabulary Vocabulary::of(std::string_view text, std::string_view source) {
  std::vector<bool> seen(0x110000);
  Vocabulary vocabulary;
  for_each_character(text, source, [&](char32_t character, int64_t) {
    if (!seen[character]) vocabulary.characters_.push_back(character);
    seen[character] = true;
  });
  std::sort(vocabulary.characters_.begin(), vocabulary.characters_.end());
  return vocabulary;
}

std::string Vocabulary::str() const {
  std::string text;
  for (const char32_t character : characters_) append_character(text, character);
  return text;
}

std::vector<std::string> Vocabulary::names() const {
  std::vector<std::string> names(characters_.size());
  for (size_t i = 0; i < names.size(); ++i) append_character(names[i], characters_[i]);
  return names;
}

std::vector<int32_t> Vocabulary::encode(std::string_view text, std::string_view source) const {
  std::vector<int32_t> tokens;
  int64_t line = 1;
  for_each_character(text, source, [&](char32_t character, int64_t place) {
    const auto found = std::lower_bound(characters_.begin(), characters_.end(), character);
    if (found == characters_.end() || *found != character) {
      std::string shown;
      append_character(shown, character);
      CHECK(false,
            "{}: \"{}\" (code point {}), character {} in line {}, is not in the vocabulary of {} characters: \"{}\"; "
            "leave it out, or train on text that has it",
            source, printable(shown), static_cast<uint32_t>(character), place, line, size(), printable(str()));
    }
    tokens.push_back(static_cast<int32_t>(found - characters_.begin()));
    line += character == U'\n';
  });
  return tokens;
}

std::string Vocabulary::decode(std::span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t token : tokens) {
    CHECK(token >= 0 && token < size(), "text: token {} is outside the vocabulary of {} characters", token, size());
    append_character(text, characters_[static_cast<size_t>(token)]);
  }
  return text;
}

Text read_text(const std::string& path, const Vocabulary* vocabulary) {
  PackedFile file(path);
  const std::vector<uint8_t> bytes = read_rest(file);
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  check_utf8(text, file.name());
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  CHECK(!text.empty(), "{}: holds no character", file.name());
  Text result{.tokens = {}, .vocabulary = vocabulary ? *vocabulary : Vocabulary::of(text, file.name())};
  result.tokens = result.vocabulary.encode(text, file.name());
  return result;
}

}  // namespace tapedeck
