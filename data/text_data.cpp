#include "data/text_data.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "data/byte_count.h"
#include "data/checksum.h"
#include "data/encoding.h"
#include "data/packed_file.h"
#include "data/text.h"
#include "data/tokenizer.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

class Windows : public Sequences {
 public:
  Windows(std::vector<int32_t> tokens, int64_t length) : tokens_(std::move(tokens)), length_(length) {}

  int64_t count() const override { return std::ssize(tokens_) - length_; }  // the last one's last answer is the end
  int64_t answers_each() const override { return length_; }
  uint64_t content_hash() const override { return fnv1a(tokens_.data(), tokens_.size() * sizeof(int32_t)); }

  void read(std::span<const int32_t> rows, int32_t* tokens, int32_t* answers) const override {
    for (const int32_t row : rows) {
      CHECK(row >= 0 && row < count(), "text: row {} of {} windows", row, count());
      tokens = std::copy_n(tokens_.begin() + row, length_, tokens);
      answers = std::copy_n(tokens_.begin() + row + 1, length_, answers);
    }
  }

 private:
  std::vector<int32_t> tokens_;
  int64_t length_;
};

// Windows side by side in the tokens from begin to end.
std::vector<int32_t> side_by_side(int64_t begin, int64_t end, int64_t length) {
  std::vector<int32_t> rows;
  for (int64_t row = begin; row + length < end; row += length) rows.push_back(static_cast<int32_t>(row));
  return rows;
}

void split_by_place(Dataset& data, int64_t tokens, const DataOptions& options) {
  const int64_t length = data.features;
  const int64_t validation = part_of(options.validation.value_or(0.1), tokens, "--validation");
  const int64_t test = options.test ? part_of(*options.test, tokens, "--test") : 0;
  const int64_t train = tokens - validation - test;
  const bool fits = train > length && validation > length && (!options.test || test > length);
  if (!fits && options.encoding) {
    data.test = side_by_side(0, tokens, length);
    return;
  }
  if (!fits)
    throw UsageError(
        text("{}: {} tokens make {} for training, {} for validation and {} for testing, but each part needs {} for a "
             "window of {} and the token after it; take a longer text or a smaller --context",
             data.name, grouped(static_cast<uint64_t>(tokens)), std::max<int64_t>(train, 0), validation, test,
             length + 1, length));
  data.train.resize(static_cast<size_t>(train - length));
  std::iota(data.train.begin(), data.train.end(), 0);
  data.validation = side_by_side(train, train + validation, length);
  data.tests_on_validation = !options.test;
  data.test = options.test ? side_by_side(train + validation, tokens, length) : data.validation;
}

Text read_characters(const std::string& path, const Encoding* of_model) {
  if (!of_model) return read_text(path);
  std::string all;
  for (const std::string& name : of_model->class_names) all += name;
  const Vocabulary vocabulary = Vocabulary::of(all);
  CHECK(vocabulary.names() == of_model->class_names,
        "{}: is a text, but what the model was trained on has the answers {}", path, listed(of_model->class_names));
  return read_text(path, &vocabulary);
}

}  // namespace

Dataset load_text(const std::string& path, const DataOptions& options) {
  if (options.context < 1) throw UsageError(text("--context {}: must be at least 1", options.context));
  Dataset data{.name = data_name(path), .features = options.context, .stride = options.context};
  data.shape = text("{} tokens", options.context);
  std::vector<int32_t> tokens;
  if (options.encoding ? options.encoding->class_names == byte_names() : options.bytes) {
    PackedFile file(path);
    const std::vector<uint8_t> bytes = read_rest(file);
    tokens.assign(bytes.begin(), bytes.end());
    data.encoding.class_names = byte_names();
  } else {
    Text text = read_characters(path, options.encoding);
    tokens = std::move(text.tokens);
    data.encoding.class_names = text.vocabulary.names();
  }
  data.classes = static_cast<int>(data.encoding.class_names.size());
  const int64_t count = std::ssize(tokens);
  CHECK(count <= std::numeric_limits<int32_t>::max(), "{}: {} tokens, but row numbers end at 2^31 - 1", path, count);
  if (count <= options.context)
    throw UsageError(
        text("{}: has {} tokens, but a window of {} and the token after it need {}; take a longer text or "
             "a smaller --context",
             path, count, options.context, options.context + 1));
  split_by_place(data, count, options);
  data.sequences = std::make_shared<Windows>(std::move(tokens), options.context);
  return data;
}

}  // namespace tapedeck
