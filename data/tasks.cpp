#include "data/tasks.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/checksum.h"
#include "data/loader.h"
#include "data/task_format.h"
#include "data/tokenizer.h"
#include "data/utf8.h"
#include "engine/check.h"
#include "engine/random.h"

namespace tapedeck {
namespace {

constexpr double least_different = 1000;  // questions: fewer might leave a part without any

enum class Part { train, validation, test };

// Rows of parts one after another, each with questions that belong to its part.
class TaskSequences : public Sequences {
 public:
  TaskSequences(TaskFormat format, uint32_t site) : format_(std::move(format)), site_(site) {}

  int64_t count() const override {
    return format_.by_row ? static_cast<int64_t>(format_.different) : task_train_rows + 2 * task_test_rows;
  }
  int64_t answers_each() const override { return format_.answer; }

  void read(std::span<const int32_t> rows, int32_t* tokens, int32_t* answers) const override {
    for (const int32_t row : rows) {
      CHECK(row >= 0 && row < count(), "task: row {} of {}", row, count());
      const std::vector<int32_t> both = example(row);
      const auto answer = both.begin() + format_.question;
      tokens = std::copy(both.begin(), both.end() - 1, tokens);
      answers = std::fill_n(answers, format_.question - 1, no_answer);
      answers = std::copy(answer, both.end(), answers);
    }
  }

  // Of a thousand examples spread over all rows.
  uint64_t content_hash() const override {
    uint64_t hash = fnv1a_of_nothing;
    for (int64_t row = 0; row < count(); row += std::max<int64_t>(1, count() / 1000)) {
      const std::vector<int32_t> both = example(row);
      hash = fnv1a(both.data(), both.size() * sizeof(int32_t), hash);
    }
    return hash;
  }

 private:
  std::vector<int32_t> example(int64_t row) const {
    std::vector<int32_t> both(static_cast<size_t>(format_.size()));
    TaskDraw draw{site_, row, 0};
    do {
      format_.make(draw, both.data());
      ++draw.attempt;
    } while (!format_.by_row && part_of(both) != part_of(row));
    return both;
  }

  static Part part_of(int64_t row) {
    if (row < task_train_rows) return Part::train;
    return row < task_train_rows + task_test_rows ? Part::validation : Part::test;
  }

  // By the hash's high bits: the lowest one is the parity of the tokens, which would make the parts unlike.
  Part part_of(const std::vector<int32_t>& both) const {
    const uint64_t hash = fnv1a(both.data(), static_cast<size_t>(format_.question) * sizeof(int32_t));
    const uint64_t tenth = bounded(hash, uint64_t(10));
    return tenth == 0 ? Part::validation : tenth == 1 ? Part::test : Part::train;
  }

  TaskFormat format_;
  uint32_t site_;
};

uint32_t site(const TaskSpec& spec) { return site_of("task." + spec.kind->name); }

// Whether + and = stand where the example has them, and nowhere else.
bool has_form_of(std::span<const int32_t> example, std::span<const int32_t> tokens, const TaskFormat& format) {
  const auto is_sign = [&](int32_t token) {
    const std::string& name = format.names.at(static_cast<size_t>(token));
    return name == "=" || name == "+";
  };
  return std::equal(tokens.begin(), tokens.end(), example.begin(),
                    [&](int32_t got, int32_t wanted) { return is_sign(wanted) ? got == wanted : !is_sign(got); });
}

}  // namespace

Dataset make_task(const std::string& spec_text) {
  const TaskSpec spec = parse_task(spec_text);
  TaskFormat format = task_format(spec);
  if (format.different < least_different && !format.by_row)
    throw UsageError(
        text("task:{}: has only {} different questions, and needs {} for its three parts; raise length or "
             "symbols",
             spec_text, format.different, least_different));
  Dataset data{.name = spec_text, .features = format.size() - 1, .classes = static_cast<int>(format.names.size())};
  data.shape = text("{} tokens", data.features);
  data.encoding.class_names = format.names;
  data.whole_examples = true;

  const bool by_row = format.by_row;
  data.sequences = std::make_shared<TaskSequences>(std::move(format), site(spec));
  std::vector<int32_t> rows(static_cast<size_t>(data.rows()));
  std::iota(rows.begin(), rows.end(), 0);
  int64_t train = task_train_rows, validation = task_test_rows;
  if (by_row) {
    rows = epoch_order(rows, 1, 0);
    train = std::llround(spec["train"] * static_cast<double>(rows.size()));
    validation = (std::ssize(rows) - train) / 2;
  }
  data.train.assign(rows.begin(), rows.begin() + train);
  data.validation.assign(rows.begin() + train, rows.begin() + train + validation);
  data.test.assign(rows.begin() + train + validation, rows.end());
  return data;
}

void check_question(const std::string& spec_text, std::span<const int32_t> tokens) {
  const TaskSpec spec = parse_task(spec_text);
  const TaskFormat format = task_format(spec);
  std::vector<int32_t> example(static_cast<size_t>(format.size()));
  format.make({site(spec), format.by_row ? std::llround(format.different / 7) : 0, 0}, example.data());
  const auto length = static_cast<size_t>(format.question);
  const bool fits = tokens.size() >= length && tokens.size() < example.size() && has_form_of(example, tokens, format) &&
                    (!format.begins_again || tokens[length - 1] == tokens[0]);
  if (fits) return;
  const Tokenizer tokenizer(format.names);
  throw UsageError(text("--prompt \"{}\" is no question of task:{}, which is {}, such as \"{}\"",
                        printable(tokenizer.decode(tokens)), spec_text, format.form,
                        tokenizer.decode(std::span(example).first(length))));
}

}  // namespace tapedeck
