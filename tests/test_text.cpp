// Text and its vocabulary: what a character's number is, and what has none.
#include "data/text.h"

#include "data/utf8.h"
#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

#include "tests/idx_bytes.h"
#include "tests/test_data_folder.h"

using namespace tapedeck;
using doctest::Contains;

namespace {

Text read(std::string_view content, const Vocabulary* vocabulary = nullptr) {
  const TemporaryFolder folder;
  return read_text(folder.write("t.txt", text_bytes(content)), vocabulary);
}

}  // namespace

TEST_CASE("text: characters are numbered in the order of their code points, and come back") {
  const std::string content = "bé𝄞a\r\nb€";
  const Text text = read(content);
  CHECK(text.vocabulary.size() == 7);
  CHECK(text.vocabulary.str() == "\n\rabé€𝄞");
  CHECK(text.tokens == std::vector<int32_t>{3, 4, 6, 2, 1, 0, 3, 5});
  CHECK(text.vocabulary.decode(text.tokens) == content);
  CHECK(Vocabulary::of(text.vocabulary.str()) == text.vocabulary);
  CHECK(read("\xEF\xBB\xBF" + content).tokens == text.tokens);
  CHECK_THROWS_WITH_AS(text.vocabulary.decode(std::vector{0, 7}), Contains("token 7 is outside the vocabulary of 7"),
                       Error);
  CHECK_THROWS_AS(text.vocabulary.decode(std::vector{-1}), Error);
}

// Fault: a prompt or a text with a character that the model never saw ended in an error of some table.
TEST_CASE("text: a character that is not in the vocabulary is named with its position") {
  const Vocabulary vocabulary = read("Why not.\n").vocabulary;
  CHECK(vocabulary.encode("Why\n").size() == 4);
  CHECK_THROWS_WITH_AS(vocabulary.encode("Why?", "prompt"),
                       Contains("prompt: \"?\" (code point 63), character 4 in line 1, is not in the vocabulary of 9"),
                       Error);
  CHECK_THROWS_WITH_AS(read("no\n\nWhé", &vocabulary),
                       Contains("t.txt: \"é\" (code point 233), character 7 in line 3, is not in the vocabulary"),
                       Error);
  CHECK(read("no not", &vocabulary).tokens == vocabulary.encode("no not"));
  CHECK_THROWS_WITH_AS(Vocabulary().encode("a"), Contains("not in the vocabulary of 0 characters"), Error);
}

TEST_CASE("text: bytes that are not UTF-8 are refused with their place") {
  const auto refuses = [](std::string_view content, const char* message) {
    INFO(std::string(content));
    CHECK_THROWS_WITH_AS(read(content), Contains(message), Error);
  };
  refuses(
      "ab\ncd\xFF",
      R"(t.txt: the byte at offset 5 (line 2) is not UTF-8: "\xff"; save the text as UTF-8, or take bytes as tokens by --bytes)");
  refuses(
      "\xEF\xBB\xBF"
      "a\x80",
      R"(offset 4 (line 1) is not UTF-8: "\x80")");
  refuses("é\xC3", "offset 2 (");             // cut
  refuses("\xC3(", "offset 0 (");             // no continuation
  refuses("\xC0\x80", "offset 0 (");          // overlong
  refuses("\xE0\x9F\xBF", "offset 0 (");      // overlong
  refuses("\xF0\x8F\xBF\xBF", "offset 0 (");  // overlong
  refuses("\xED\xA0\x80", "offset 0 (");      // surrogate
  refuses("\xF4\x90\x80\x80", "offset 0 (");  // beyond U+10FFFF
  refuses("\xF8\x88\x80\x80\x80", "offset 0 (");
  refuses("", "t.txt: holds no character");
  refuses("\xEF\xBB\xBF", "t.txt: holds no character");
  for (const char* edge : {"\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                           "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    CHECK(read(edge).vocabulary.str() == edge);
}

TEST_CASE("text: every character comes back from UTF-8, and a message shows what can be shown") {
  for (char32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 61) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string bytes;
    append_character(bytes, c);
    std::string_view rest = bytes;
    REQUIRE(take_character(rest) == c);
    REQUIRE(rest.empty());
  }
  CHECK(printable("a\tb\xFFé\x1B[0m") == R"(a\tb\xffé\x1b[0m)");
  CHECK(printable("\n\r\x01\x7F\u0085\xC3") == R"(\n\r\x01\x7f\xc2\x85\xc3)");
  CHECK(printable(std::string(100, 'x')) == std::string(40, 'x') + "…");
  CHECK(printable(std::string(100, '\n'), std::string::npos).size() == 200);
  CHECK(printable(std::string(40, 'x')) == std::string(40, 'x'));
}

TEST_CASE("text: the real plays have 65 characters") {
  const auto path = test_data("shakespeare/input.txt");
  if (!path) return;
  const Text text = read_text(*path);
  CHECK(text.tokens.size() == 1115394);
  CHECK(text.vocabulary.size() == 65);
  CHECK(text.vocabulary.decode(std::span(text.tokens).first(14)) == "First Citizen:");
}
