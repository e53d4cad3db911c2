// UTF-8, one to four bytes a character [RFC 3629].
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tapedeck {

inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";  // some programs begin a text file with it

// Takes the first character off a text that is not empty. Nothing, and the text stays as it is, where its bytes are
// none: a stray or missing continuation, an overlong form, a surrogate, or beyond U+10FFFF.
std::optional<char32_t> take_character(std::string_view& text);

void append_character(std::string& text, char32_t character);

bool is_utf8(std::string_view text);

// A text as a message or a terminal can show it, at most so many characters of it: a control character or a byte that
// is no UTF-8 becomes \n, \t, \r or \x1b.
std::string printable(std::string_view text, size_t most = 40);

}  // namespace tapedeck
