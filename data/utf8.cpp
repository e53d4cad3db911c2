#include "data/utf8.h"

namespace tapedeck {

std::optional<char32_t> take_character(std::string_view& text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  const size_t length = lead < 0x80 ? 1 : lead < 0xC0 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF8 ? 4 : 0;
  if (length == 0 || length > text.size()) return std::nullopt;
  char32_t value = length == 1 ? lead : lead & (0x7F >> length);
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) >> 6 != 0b10) return std::nullopt;
    value = value << 6 | (byte(i) & 0x3F);
  }
  constexpr char32_t least[] = {0, 0, 0x80, 0x800, 0x10000};  // what needs so many bytes: else the form is overlong
  if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return std::nullopt;
  text.remove_prefix(length);
  return value;
}

void append_character(std::string& text, char32_t character) {
  const auto continuation = [&](int shift) { text += static_cast<char>(0x80 | (character >> shift & 0x3F)); };
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xC0 | character >> 6);
    continuation(0);
  } else if (character < 0x10000) {
    text += static_cast<char>(0xE0 | character >> 12);
    continuation(6), continuation(0);
  } else {
    text += static_cast<char>(0xF0 | character >> 18);
    continuation(12), continuation(6), continuation(0);
  }
}

bool is_utf8(std::string_view text) {
  while (!text.empty())
    if (!take_character(text)) return false;
  return true;
}

std::string printable(std::string_view text, size_t most) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string shown;
  for (size_t count = 0; !text.empty(); ++count) {
    if (count == most) return shown + "…";
    const std::string_view before = text;
    const std::optional<char32_t> character = take_character(text);
    if (!character) text.remove_prefix(1);
    const std::string_view bytes = before.substr(0, before.size() - text.size());
    const bool control = !character || *character < 0x20 || (*character >= 0x7F && *character < 0xA0);
    if (!control)
      shown += bytes;
    else if (bytes == "\n" || bytes == "\t" || bytes == "\r")
      shown += bytes == "\n" ? "\\n" : bytes == "\t" ? "\\t" : "\\r";
    else
      for (const unsigned char byte : bytes) shown += {'\\', 'x', digits[byte / 16], digits[byte % 16]};
  }
  return shown;
}

}  // namespace tapedeck
