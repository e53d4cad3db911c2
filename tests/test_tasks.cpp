// Toy tasks: every answer against a slow computation on what a person would read, the parts, and what a spec may say.
#include "data/tasks.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

#include "data/catalog.h"
#include "data/task_spec.h"
#include "data/tokenizer.h"
#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using doctest::Contains;

namespace {

struct Shown {
  std::string question, answer;  // as a person reads them
  bool operator<(const Shown& other) const { return question < other.question; }
};

// Examples as text. What is asked for are the last tokens, and the answers before them are none.
std::vector<Shown> examples(const Dataset& data, std::span<const int32_t> rows) {
  const auto length = static_cast<size_t>(data.features), asked = static_cast<size_t>(data.sequences->answers_each());
  std::vector<int32_t> tokens(rows.size() * length), answers(rows.size() * length);
  gather(data, rows, tokens.data(), answers.data());
  const Tokenizer tokenizer(data.encoding.class_names);
  std::vector<Shown> shown;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::span x = std::span(tokens).subspan(i * length, length),
                    y = std::span(answers).subspan(i * length, length);
    const size_t first = length - asked;
    REQUIRE(std::all_of(y.begin(), y.begin() + static_cast<ptrdiff_t>(first), [](int32_t a) { return a == -1; }));
    REQUIRE(std::equal(y.begin() + static_cast<ptrdiff_t>(first), y.end() - 1,
                       x.begin() + static_cast<ptrdiff_t>(first) + 1));
    shown.push_back({tokenizer.decode(x.first(first + 1)), tokenizer.decode(y.subspan(first))});
  }
  return shown;
}

std::vector<Shown> some(const Dataset& data) {
  std::vector<int32_t> rows(data.train.begin(), data.train.begin() + 500);
  rows.insert(rows.end(), data.validation.begin(), data.validation.begin() + 200);
  rows.insert(rows.end(), data.test.end() - 200, data.test.end());
  return examples(data, rows);
}

std::string reversed(std::string s) {
  std::reverse(s.begin(), s.end());
  return s;
}

// Symbols counted, and written down by their counts.
std::string counted(const std::string& s, const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names)
    out += std::string(static_cast<size_t>(std::count(s.begin(), s.end(), name[0])), name[0]);
  return out;
}

}  // namespace

TEST_CASE("task: copy, reverse and sort answer what the string says") {
  for (const char* parameters : {"", ":length=12,symbols=20", ":symbols=62,length=2", ":length=40,symbols=2"})
    for (const std::string name : {"copy", "reverse", "sort"}) {
      CAPTURE(name + parameters);
      const Dataset data = load_dataset("task:" + name + parameters);
      const auto symbols = static_cast<size_t>(data.classes - 1);
      CHECK(data.encoding.class_names.back() == "=");
      CHECK(data.whole_examples);
      CHECK(data.features == 2 * data.sequences->answers_each());
      std::map<char, int64_t> seen;
      for (const auto& [question, answer] : some(data)) {
        REQUIRE(static_cast<int64_t>(question.size()) == data.sequences->answers_each() + 1);
        REQUIRE(question.back() == '=');
        const std::string string = question.substr(0, question.size() - 1);
        const std::vector<std::string> names(data.encoding.class_names.begin(), data.encoding.class_names.end() - 1);
        REQUIRE(answer == (name == "copy" ? string : name == "reverse" ? reversed(string) : counted(string, names)));
        for (const char c : string) ++seen[c];
      }
      CHECK(seen.size() == symbols);
      const auto n = static_cast<double>(900 * data.sequences->answers_each()), p = 1.0 / static_cast<double>(symbols);
      for (const auto& [symbol, count] : seen)  // within 5 standard errors of equally often
        CHECK(std::abs(static_cast<double>(count) - n * p) < 5 * std::sqrt(n * p * (1 - p)));
    }
  CHECK(load_dataset("task:sort").features == 16);
  CHECK(load_dataset("task:sort").classes == 11);
  CHECK(load_dataset("task:sort:length=12,symbols=20").encoding.class_names[19] == "j");
}

TEST_CASE("task: addition writes the sum from its last digit") {
  for (const int digits : {2, 3, 9}) {
    const Dataset data = load_dataset(text("task:addition:digits={}", digits));
    CHECK(data.features == 3 * digits + 2);
    CHECK(data.sequences->answers_each() == digits + 1);
    int carries = 0;
    for (const auto& [question, answer] : some(data)) {
      const size_t plus = question.find('+');
      REQUIRE(static_cast<int>(plus) == digits);
      REQUIRE(question.back() == '=');
      const long long sum = std::stoll(question.substr(0, plus)) + std::stoll(question.substr(plus + 1));
      REQUIRE(std::stoll(reversed(answer)) == sum);
      carries += answer.back() == '1';
    }
    CHECK(carries > 300);  // of 900, half
    CHECK(carries < 600);
  }
}

TEST_CASE("task: modadd has every pair once, and a share of them trains") {
  const Dataset data = load_dataset("task:modadd");
  CHECK(data.rows() == 97 * 97);
  CHECK(data.features == 3);
  CHECK(data.classes == 98);
  CHECK(data.train.size() == 3764);  // 0.4 of 9,409
  CHECK(data.validation.size() == 2822);
  CHECK(data.test.size() == 2823);
  std::vector<int32_t> rows = data.train;
  for (const auto* part : {&data.validation, &data.test}) rows.insert(rows.end(), part->begin(), part->end());
  std::set<std::string> questions;
  for (const auto& [question, answer] : examples(data, rows)) {
    int a = -1, b = -1;
    char equals = 0;
    REQUIRE(std::sscanf(question.c_str(), "%d %d %c", &a, &b, &equals) == 3);
    REQUIRE(equals == '=');
    REQUIRE(std::stoi(answer) == (a + b) % 97);
    questions.insert(question);
  }
  CHECK(questions.size() == 97 * 97);
  CHECK(*std::max_element(data.train.begin(), data.train.end()) > 9000);  // not the first pairs

  const Dataset small = load_dataset("task:modadd:p=11,train=0.95");
  CHECK(small.train.size() == 115);
  CHECK(small.validation.size() == 3);
  CHECK(small.test.size() == 3);
}

TEST_CASE("task: induction repeats its string, and asks from the second token on") {
  const Dataset data = load_dataset("task:induction:length=5,symbols=30");
  CHECK(data.features == 9);
  CHECK(data.classes == 30);
  for (const auto& [question, answer] : some(data)) {
    REQUIRE(question.size() == 6);
    REQUIRE(question[5] == question[0]);
    REQUIRE(answer == question.substr(1, 4));
  }
  CHECK(load_dataset("task:induction").features == 31);
  CHECK(load_dataset("task:induction").classes == 16);
}

// Fault: tasks made at random asked in validation what training had answered, so learning by heart looked like skill.
TEST_CASE("task: no question is in two parts") {
  for (const char* spec : {"task:sort:length=3", "task:reverse:length=10,symbols=2", "task:addition:digits=2",
                           "task:induction:length=3,symbols=10"}) {
    CAPTURE(spec);
    const Dataset data = load_dataset(spec);
    CHECK(data.train.size() == 200000);
    CHECK(data.validation.size() == 1000);
    CHECK(data.test.size() == 1000);
    const auto questions = [&](std::span<const int32_t> rows) {
      std::set<std::string> all;
      for (const Shown& shown : examples(data, rows)) all.insert(shown.question);
      return all;
    };
    const auto train = questions(std::span(data.train).first(20000)), validation = questions(data.validation),
               test = questions(data.test);
    CHECK(train.size() > 700);  // nearly all of the 1,000 or 10,000 there are, but for the held back
    CHECK(validation.size() > 50);
    CHECK(test.size() > 50);
    for (const std::string& question : validation) CHECK((!train.contains(question) && !test.contains(question)));
    for (const std::string& question : test) CHECK(!train.contains(question));
  }
}

TEST_CASE("task: the parts are alike") {
  const Dataset data = load_dataset("task:copy:symbols=2,length=20");
  for (const auto* part : {&data.validation, &data.test}) {
    int even = 0;
    for (const Shown& shown : examples(data, *part))
      even += std::count(shown.answer.begin(), shown.answer.end(), '1') % 2 == 0;
    CHECK(std::abs(even - 500) < 5 * 16);  // 5 standard errors of 1,000 fair coins
  }
}

TEST_CASE("task: an example depends on task, parameters and row alone") {
  const Dataset data = load_dataset("task:sort");
  CHECK(content_hash(data) == content_hash(load_dataset("task:sort:symbols=10,length=8")));
  CHECK(content_hash(data) != content_hash(load_dataset("task:copy")));
  CHECK(content_hash(data) != content_hash(load_dataset("task:sort:length=9")));
  // The same on every machine and with every compiler.
  CHECK(content_hash(data) == 0xe10b6bf95253d3c5);
  CHECK(content_hash(load_dataset("task:addition")) == 0xb28e1f398cd1db0d);

  const std::vector<int32_t> rows(data.train.begin(), data.train.begin() + 2000);
  const std::vector<Shown> alone = examples(data, rows);
  std::vector<std::vector<int32_t>> tokens(4, std::vector<int32_t>(rows.size() * 16)), answers = tokens;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < tokens.size(); ++i)
    threads.emplace_back([&, i] { gather(data, rows, tokens[i].data(), answers[i].data()); });
  for (std::thread& thread : threads) thread.join();
  const Tokenizer tokenizer(data.encoding.class_names);
  for (size_t i = 0; i < tokens.size(); ++i) {
    CHECK(tokens[i] == tokens[0]);
    CHECK(answers[i] == answers[0]);
  }
  CHECK(tokenizer.decode(std::span(tokens[0]).first(9)) == alone[0].question);
  int32_t out[16];
  for (const int32_t bad : {-1, 202000})
    CHECK_THROWS_WITH_AS(gather(data, {&bad, 1}, out, out), Contains("of 202000"), Error);
}

TEST_CASE("task: a spec that says something unknown or impossible is refused with what there is") {
  const auto refuses = [](const std::string& spec, const char* message) {
    CAPTURE(spec);
    CHECK_THROWS_WITH_AS(load_dataset(spec), Contains(message), UsageError);
  };
  refuses("task", "needs a task: write task:NAME, with one of copy, reverse, sort, addition, modadd, induction");
  refuses("task:", "needs a task");
  refuses("task:srot", "task:srot: no such task; did you mean sort? There are copy, reverse, sort,");
  refuses("task:sort:size=3",
          "\"size\" is no parameter of sort, which has length (a whole number from 1 to 256), "
          "symbols (a whole number from 2 to 62)");
  refuses("task:addition:length=3", "which has digits (a whole number from 2 to 9)");
  refuses("task:sort:length", "length= is not length (a whole number from 1 to 256)");
  refuses("task:modadd:train=1", "train=1 is not train (a number from 0.05 to 0.95)");
  for (const char* bad : {"0", "257", "2.5", "-3", "x", "8x", "", "1e999", "nan", " 8"})
    refuses("task:sort:length=" + std::string(bad), "is not length (a whole");
  refuses("task:sort:length=4,length=4", "length is given twice");
  for (const char* end : {":", ":length=4,"})
    refuses("task:copy" + std::string(end), "leave it away, or go on with a parameter: length (a whole");
  refuses("task:sort:,length=4", "\"\" is no parameter");
  refuses("task:copy:length=9,symbols=2", "has only 512 different questions, and needs 1000");

  CHECK(load_dataset("task:copy:length=1e1,symbols=2").features == 20);
  CHECK_THROWS_WITH_AS(load_dataset("task:sort", {.validation = 0.2}), Contains("splits are fixed"), UsageError);
  CHECK_THROWS_WITH_AS(load_dataset("task:sort", {.label = "x"}), Contains("leave --label away"), UsageError);
  CHECK_THROWS_WITH_AS(load_dataset("task:sort", {.regression = true}), Contains("leave --loss mse"), UsageError);
  const Encoding of_model = load_dataset("task:sort").encoding;
  CHECK(load_dataset("task:reverse:length=3", {.encoding = &of_model}).encoding == of_model);
  CHECK_THROWS_WITH_AS(
      load_dataset("task:addition", {.encoding = &of_model}),
      Contains("4 more, but those of the model 0, 1, 2, 3, 4, 5, 6, 7 and 3 more (the first to differ: + and =)"),
      Error);
  CHECK(parse_data("task:sort:length=4").label() == "sort");
  CHECK_FALSE(is_bare_file("task:sort:length=4"));
}

TEST_CASE("task: what is a question is known by its form") {
  for (const TaskKind& kind : task_kinds()) {
    CAPTURE(kind.name);
    const Dataset data = load_dataset("task:" + kind.name);
    const Tokenizer tokenizer(data.encoding.class_names);
    for (const auto& [question, answer] : some(data)) {
      const std::vector<int32_t> tokens = tokenizer.encode(question);
      CHECK_NOTHROW(check_question(kind.name, tokens));
      std::vector<int32_t> wrong = tokens;
      wrong.pop_back();
      CHECK_THROWS_AS(check_question(kind.name, wrong), UsageError);
      wrong.push_back(tokens[0] == 0 ? 1 : 0);  // neither a sign nor the first token
      CHECK_THROWS_AS(check_question(kind.name, wrong), UsageError);
      wrong = tokens;
      wrong[0] = tokens.back(), wrong.back() = tokens.back() + 1 - 2 * (tokens.back() > 0);
      CHECK_THROWS_AS(check_question(kind.name, wrong), UsageError);
      const std::vector<int32_t> both = tokenizer.encode(question + tokenizer.separator() + answer);
      CHECK_THROWS_AS(check_question(kind.name, both), UsageError);
      if (both.size() > tokens.size() + 1)
        CHECK_NOTHROW(check_question(kind.name, std::span(both).first(both.size() - 1)));
    }
  }
  CHECK_THROWS_WITH_AS(check_question("modadd:p=11", std::vector{1, 2}),
                       "--prompt \"1 2\" is no question of task:modadd:p=11, which is two numbers from 0 to 10 and =, "
                       "such as \"1 6 =\"",
                       UsageError);
  CHECK_THROWS_WITH_AS(check_question("induction:length=4", std::vector{1, 2, 3, 4, 5}),
                       Contains("which is 4 symbols and the first of them again, such as \""), UsageError);
}

TEST_CASE("task: each that is listed loads, with what it is said to be") {
  for (const TaskKind& kind : task_kinds()) {
    CAPTURE(kind.name);
    const Dataset data = load_dataset("task:" + kind.name);
    CHECK(data.name == kind.name);
    CHECK(data.shape == text("{} tokens", data.features));
    CHECK(kind.what != "");
    for (const TaskParameter& p : kind.parameters)
      CHECK(content_hash(load_dataset(text("task:{}:{}={}", kind.name, p.name, p.fallback))) == content_hash(data));
  }
}
