// Text as numbers: each character of valid UTF-8 becomes its place in a vocabulary.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck {

// The characters that have a number, in the order of their code points. A model keeps the one that it was trained with:
// made anew from other text, the same numbers would mean other characters.
class Vocabulary {
 public:
  Vocabulary() = default;
  // From the different characters of a text. Throws Error naming source and byte where it is not UTF-8.
  static Vocabulary of(std::string_view text, std::string_view source = "text");

  int64_t size() const { return static_cast<int64_t>(characters_.size()); }
  std::string str() const;  // all characters in their order; Vocabulary::of(v.str()) == v

  std::vector<std::string> names() const;  // each character by itself, in their order

  // One number a character. Throws Error naming source, character and place for one that has no number.
  std::vector<int32_t> encode(std::string_view text, std::string_view source = "text") const;
  // Throws Error for a number outside 0 … size() − 1.
  std::string decode(std::span<const int32_t> tokens) const;

  bool operator==(const Vocabulary&) const = default;

 private:
  std::vector<char32_t> characters_;  // sorted
};

struct Text {
  std::vector<int32_t> tokens;  // one a character of the file
  Vocabulary vocabulary;
};

// Reads a file of UTF-8, plain or gzip, with the vocabulary given, or else one made from it. A byte-order mark at its
// beginning is no text. Throws Error for an empty file.
Text read_text(const std::string& path, const Vocabulary* vocabulary = nullptr);

}  // namespace tapedeck
