// What a person types, as tokens and back, by the names of the tokens that a model keeps (Encoding::class_names).
//
//   text               a token is a character, and its name is that character
//   bytes              256 tokens with the names "0x00" to "0xff"; any text has tokens
//   tasks              a token is a character, or a number such as "42"; then tokens are written with spaces between
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tapedeck {

std::vector<std::string> byte_names();  // "0x00" … "0xff"

class Tokenizer {
 public:
  explicit Tokenizer(std::vector<std::string> names);

  int64_t size() const { return static_cast<int64_t>(names_.size()); }
  bool is_bytes() const { return is_bytes_; }
  bool knows(const std::string& name) const { return is_bytes_ || tokens_.contains(name); }

  // At each place the token with the longest name that fits; of several digits in a row all are one number. Throws
  // UsageError naming source, character and place for one that begins no token.
  std::vector<int32_t> encode(std::string_view text, std::string_view source = "prompt") const;
  // Throws Error for a token outside 0 … size() − 1. Of bytes the text need not be UTF-8.
  std::string decode(std::span<const int32_t> tokens) const;
  std::string separator() const { return spaced_ ? " " : ""; }  // between two tokens that are decoded apart

 private:
  std::string all() const;  // for messages

  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t> tokens_;  // by name
  size_t longest_ = 0;                               // name, in bytes
  bool is_bytes_, spaced_ = false;                   // spaced: some names are longer than a character
};

}  // namespace tapedeck
