// Text as windows of tokens, what a person types as tokens, and what holds for every data set of sequences.
#include "data/sequences.h"

#include <filesystem>
#include <numeric>

#include "data/catalog.h"
#include "data/shard_writer.h"
#include "data/text.h"
#include "data/tokenizer.h"
#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

#include "tests/idx_bytes.h"
#include "tests/test_data_folder.h"

using namespace tapedeck;
using doctest::Contains;

namespace {

// 26 letters over and over, each followed by its place's last digit, so that no two windows nearby are alike.
std::string letters(int count) {
  std::string content;
  for (int i = 0; i < count; ++i) content += static_cast<char>(i % 2 ? '0' + i / 2 % 10 : 'a' + i / 2 % 26);
  return content;
}

Dataset load(std::string_view content, const DataOptions& options) {
  const TemporaryFolder folder;
  return load_dataset("text:" + folder.write("play.txt", text_bytes(content)), options);
}

struct Example {
  std::vector<int32_t> tokens, answers;
};
Example read(const Dataset& data, int32_t row) {
  Example e{std::vector<int32_t>(static_cast<size_t>(data.features)),
            std::vector<int32_t>(static_cast<size_t>(data.features))};
  gather(data, {&row, 1}, e.tokens.data(), e.answers.data());
  return e;
}

std::string between(const std::string& text, int64_t begin, int64_t length) {
  return text.substr(static_cast<size_t>(begin), static_cast<size_t>(length));
}

}  // namespace

TEST_CASE("text: training begins a window at every place, validation covers its part side by side") {
  const std::string content = letters(200);
  const Dataset data = load(content, {.context = 6});
  CHECK(data.name == "play");
  CHECK(data.shape == "6 tokens");
  CHECK(data.features == 6);
  CHECK(data.classes == 36);
  CHECK_FALSE(data.whole_examples);
  CHECK(data.sequences->answers_each() == 6);

  std::vector<int32_t> starts(180 - 6);  // the last answer of the last window is the last token of the part
  std::iota(starts.begin(), starts.end(), 0);
  CHECK(data.train == starts);
  CHECK(data.validation == std::vector<int32_t>{180, 186, 192});  // 192 + 6 + 1 = 199 of 200 tokens
  CHECK(data.tests_on_validation);
  CHECK(data.test == data.validation);

  const Tokenizer tokenizer(data.encoding.class_names);
  for (const int32_t row : {0, 1, 57, 173, 180, 192, 193}) {
    const Example e = read(data, row);
    CHECK(tokenizer.decode(e.tokens) == between(content, row, 6));
    CHECK(tokenizer.decode(e.answers) == between(content, row + 1, 6));
  }
  CHECK_THROWS_WITH_AS(read(data, 194), Contains("row 194 of 194 windows"), Error);
  CHECK_THROWS_AS(read(data, -1), Error);
  CHECK(load(letters(199), {.context = 6}).validation.size() == 3);
  CHECK(load(content, {.validation = 0.09, .context = 6}).validation.size() == 2);  // 18 tokens: no answer for a third
}

TEST_CASE("text: --test takes a part off the end, and --validation changes the other") {
  const Dataset data = load(letters(1000), {.validation = 0.2, .test = 0.05, .context = 10});
  CHECK(data.train.size() == 740);
  CHECK(data.validation.front() == 750);
  CHECK(data.validation.size() == 19);
  CHECK_FALSE(data.tests_on_validation);
  CHECK(data.test == std::vector<int32_t>{950, 960, 970, 980});
  for (const double bad : {0.0, 1.0, -3.0})
    CHECK_THROWS_WITH_AS(load(letters(1000), {.validation = bad}), Contains("--validation"), UsageError);
}

// Fault: a text shorter than a window ended in a crash, or in epochs without a step.
TEST_CASE("text: one that is too short is refused with both numbers") {
  CHECK_THROWS_WITH_AS(load(letters(64), {}),
                       Contains("has 64 tokens, but a window of 64 and the token after it need 65"), UsageError);
  CHECK_THROWS_WITH_AS(load(letters(640), {}),
                       Contains("play: 640 tokens make 576 for training, 64 for validation and 0 for testing, but each "
                                "part needs 65"),
                       UsageError);
  CHECK(load(letters(650), {}).validation == std::vector<int32_t>{585});
  CHECK_THROWS_WITH_AS(load(letters(1000), {.test = 0.01}), Contains("10 for testing"), UsageError);
  CHECK_THROWS_WITH_AS(load(letters(1000), {.context = 0}), Contains("--context 0"), UsageError);
  CHECK_THROWS_WITH_AS(load(letters(1000), {.label = "x"}), Contains("leave --label away"), UsageError);
  CHECK_THROWS_WITH_AS(load(letters(1000), {.regression = true}), Contains("leave --loss mse away"), UsageError);
}

// Fault: a model's numbers meant other characters once the vocabulary was made from another text.
TEST_CASE("text: other text is taken by the model's vocabulary, and a character it lacks is named") {
  const Dataset trained_on = load(letters(1000), {.context = 5});
  const DataOptions scored = {.context = 5, .encoding = &trained_on.encoding};
  const Dataset other = load("zebra9zebra", scored);  // too short for parts, and with few of the characters
  CHECK(other.classes == 36);
  CHECK(other.encoding == trained_on.encoding);
  CHECK(other.train.empty());
  CHECK(other.test == std::vector<int32_t>{0, 5});
  CHECK(read(other, 0).answers == Tokenizer(trained_on.encoding.class_names).encode("ebra9"));
  CHECK_THROWS_WITH_AS(load("zebras\nWhy?", scored),
                       Contains("play.txt: \"\\n\" (code point 10), character 7 in line 1, is not in the vocabulary"),
                       Error);
  CHECK_THROWS_WITH_AS(load("zebra", scored), Contains("has 5 tokens"), UsageError);
  const Encoding classes = {.class_names = {"setosa", "virginica"}};
  CHECK_THROWS_WITH_AS(load("zebras", {.context = 5, .encoding = &classes}), Contains("setosa, virginica"), Error);
}

TEST_CASE("text: bytes are tokens of any file, and a model of bytes takes them again") {
  const std::string content = "\xEF\xBB\xBF\xFF\x00 é" + letters(300);
  const Dataset data = load(content, {.context = 8, .bytes = true});
  CHECK(data.classes == 256);
  CHECK(data.encoding.class_names[0x41] == "0x41");
  CHECK(read(data, 0).tokens[3] == 0xFF);
  CHECK(Tokenizer(data.encoding.class_names).decode(read(data, 1).tokens) == content.substr(1, 8));
  CHECK(load(content, {.context = 8, .encoding = &data.encoding}).classes == 256);
}

TEST_CASE("sequences: what is scored covers the text once, and the content is told apart") {
  const std::string content = letters(200);
  const Dataset data = load(content, {.context = 6});
  CHECK(rows_to_score(data, "validation") == data.validation);
  CHECK(rows_to_score(data, "test") == data.validation);
  const std::vector<int32_t> train = rows_to_score(data, "train"), all = rows_to_score(data, "all");
  CHECK(train.size() == 29);
  CHECK(train[28] == 168);
  CHECK(all.back() == 192);
  CHECK(all.size() == 33);

  CHECK(content_hash(data) == content_hash(load(content, {.validation = 0.2, .context = 6})));
  std::string changed = content;
  changed.back() = 'a';
  CHECK(content_hash(load(changed, {.context = 6})) != content_hash(data));

  float number;
  int32_t label;
  const int32_t row = 0;
  CHECK_THROWS_WITH_AS(gather(data, {&row, 1}, &number, &label), Contains("play has tokens, not numbers"), Error);
  CHECK_THROWS_WITH_AS(gather(load_dataset("blobs"), {&row, 1}, &label, &label), Contains("not tokens"), Error);
}

TEST_CASE("sequences: check refuses what does not fit together") {
  const Dataset good = load(letters(200), {.context = 6});
  const auto refuses = [&](auto change, const char* message) {
    Dataset data = good;
    change(data);
    CHECK_THROWS_WITH_AS(check(data), Contains(message), Error);
  };
  check(good);
  refuses([](Dataset& d) { d.labels = {1}; }, "and 1 labels");
  refuses([](Dataset& d) { d.values = {1}; }, "two places");
  refuses([](Dataset& d) { d.encoding.class_names.pop_back(); }, "35 names");
  refuses([](Dataset& d) { d.features = 5; }, "asks for 6 answers in 5 tokens");
  refuses([](Dataset& d) { d.test.pop_back(); }, "its 2 test rows are not the 3");
  refuses([](Dataset& d) { d.tests_on_validation = false; }, "row 180 is in two splits");
  refuses([](Dataset& d) { d.train.push_back(180); }, "row 180 is in two splits");
  refuses([](Dataset& d) { d.train.clear(); }, "a split has no rows");
}

TEST_CASE("sequences: no shard is made of them") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(write_shard(folder / "x.shard", load(letters(200), {.context = 6})),
                       Contains("play: its sequences are made as they are read"), UsageError);
  CHECK_FALSE(std::filesystem::exists(folder / "x.shard"));
}

// Fault: a prompt with a character that the model never saw ended in an error of some table.
TEST_CASE("tokenizer: what a person types becomes tokens and comes back") {
  const Tokenizer letters({"a", "é", " ", "𝄞"});
  CHECK(letters.encode("é a𝄞") == std::vector<int32_t>{1, 2, 0, 3});
  CHECK(letters.decode(letters.encode("é a𝄞")) == "é a𝄞");
  CHECK_THROWS_WITH_AS(letters.encode("aé?"),
                       Contains("prompt: \"?\", character 3, is not in the vocabulary of 4 tokens: \"aé 𝄞\""), Error);
  CHECK_THROWS_WITH_AS(letters.encode("é\xFF"), Contains("character 2"), Error);
  CHECK_THROWS_WITH_AS(letters.decode(std::vector{4}), Contains("token 4 is outside the vocabulary of 4"), Error);
  CHECK_THROWS_AS(letters.decode(std::vector{-1}), Error);

  const Tokenizer numbers({"0", "1", "10", "="});
  CHECK(numbers.encode("10 1 0=") == std::vector<int32_t>{2, 1, 0, 3});
  CHECK(numbers.encode("10=1") == std::vector<int32_t>{2, 3, 1});
  CHECK_THROWS_WITH_AS(numbers.encode("1 101"), Contains("\"101\", character 3,"), Error);  // not 10 and 1
  CHECK(numbers.decode(std::vector{2, 1, 3}) == "10 1 =");
  CHECK_THROWS_WITH_AS(numbers.encode("1 2"), Contains("\"2\", character 3,"), Error);

  const Tokenizer bytes(byte_names());
  CHECK(bytes.is_bytes());
  CHECK(bytes.encode("A\xFF") == std::vector<int32_t>{65, 255});
  CHECK(bytes.decode(std::vector{65, 255}) == "A\xFF");
  CHECK_THROWS_AS(Tokenizer({"a", "a"}), Error);
}

TEST_CASE("text: the real plays make a million windows") {
  const auto path = test_data("shakespeare/input.txt");
  if (!path) return;
  const Dataset data = load_dataset("text:" + *path);
  CHECK(data.classes == 65);
  CHECK(data.train.size() == 1115394 - 111539 - 64);
  CHECK(data.validation.size() == (111539 - 1) / 64);
  CHECK(Tokenizer(data.encoding.class_names).decode(read(data, 0).tokens).starts_with("First Citizen:"));
}
