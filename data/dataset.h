// A data set in host memory: rows of features with a class id or a number to predict, split into three parts.
//
// A split is a list of row numbers and never depends on a run's seed, so that runs with different seeds stay
// comparable:
//   digits   1,078 / 359 / 360        of a fixed permutation
//   mnist    55,000 / 5,000 / 10,000  the end of the training file validates, the test file tests
//   text     0.9 / 0.1                by position; the part that validates tests too, unless options ask for another
//   tasks    200,000 / 1,000 / 1,000  by a hash of what an example asks, see data/tasks.h
//   others   0.8 / 0.1 / 0.1          of a permutation seeded by a hash of the data itself
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/sequences.h"

namespace tapedeck {

// Features that stay in their file and are read as they are asked for, by several threads at once.
class Records {
 public:
  virtual ~Records() = default;
  virtual int64_t count() const = 0;
  // These records as numbers, row-major, to out. Throws Error naming file and record when one is damaged.
  virtual void read(std::span<const int32_t> rows, float* out) const = 0;
  virtual uint64_t content_hash() const = 0;  // of all of them, known without reading them
};

// What a trained model has to know of its data to take other data of the same kind the same way.
struct Encoding {
  std::vector<std::string> columns = {};  // names of the features; empty: they have none
  std::vector<double> mean = {},
                      deviation = {};         // of each, over the training split; a feature is (x - mean) / deviation
  std::vector<std::string> class_names = {};  // by class id; empty: the ids are the names. Of sequences: by token,
                                              // the vocabulary (data/tokenizer.h)
  bool operator==(const Encoding&) const = default;
};

struct Dataset {
  std::string name = {};   // "mnist"
  std::string shape = {};  // of one example, for people: "28x28x1", "64 tokens"
  int64_t features = 0;    // numbers per example; of sequences: tokens
  int classes = 0;         // 0: regression; of sequences: tokens of the vocabulary

  // Features, row-major [rows, features]. One of the four is there: images stay bytes, a quarter of the memory.
  std::vector<uint8_t> pixels = {};  // value = pixel * pixel_scale
  float pixel_scale = 1;
  std::vector<float> values = {};
  std::shared_ptr<const Records> records = {};
  std::shared_ptr<const Sequences> sequences = {};  // and their answers

  std::vector<int32_t> labels = {};  // [rows] class ids, when classes > 0; none with sequences
  std::vector<float> targets = {};   // [rows] numbers to predict, when classes == 0

  bool whole_examples = false;  // accuracy is the share of sequences with every answer right, else of right answers

  Encoding encoding = {};

  std::vector<int32_t> train = {}, validation = {}, test = {};  // row numbers
  bool tests_on_validation = false;                             // has no part for testing: test is validation again
  int64_t stride = 1;  // every stride-th row covers all there is: windows of text overlap

  int64_t rows() const {
    if (sequences) return sequences->count();
    return static_cast<int64_t>(classes > 0 ? labels.size() : targets.size());
  }
};

struct DataOptions {
  std::string data_dir = {};                         // where files lie
  std::optional<double> validation = {}, test = {};  // fractions of the rows, where the split is not fixed
  std::string label = {};   // csv: the column of the answer, by name or number from 1; npy, idx: the file of answers
  int64_t context = 64;     // text: tokens of an example
  bool bytes = false;       // text: a token is a byte, not a character
  bool regression = false;  // the answer is a number to predict, not a class (--loss mse)
  const Encoding* encoding = nullptr;  // of the model that the data is for; null: made from the data itself
};

// Copies the named rows: features to [rows.size(), data.features], class ids to [rows.size()].
void gather(const Dataset& data, std::span<const int32_t> rows, float* features, int32_t* labels);

// The same with a number to predict; in a data set with classes that is the class id.
void gather(const Dataset& data, std::span<const int32_t> rows, float* features, float* targets);

// Tokens and answers of sequences, each to [rows.size(), data.features].
void gather(const Dataset& data, std::span<const int32_t> rows, int32_t* tokens, int32_t* answers);

// The rows to score a part by, "train", "validation", "test" or "all": of rows that overlap, as many as cover it once.
std::vector<int32_t> rows_to_score(const Dataset& data, std::string_view part);

// Throws Error when a label is not in 0 … classes − 1, naming source (a file), row and value.
void check_labels(std::span<const int32_t> labels, int classes, std::string_view source);

// Throws Error unless sizes, labels and splits of the data set fit together. Every loader ends with it. To train, each
// part needs a row; to be scored by a model that is there, data needs no parts.
void check(const Dataset& data, bool to_train = true);

// A fraction of so many rows, at least one. Throws UsageError naming the option for a fraction outside (0, 1).
int64_t part_of(double fraction, int64_t rows, const char* option);

// Deals the rows to the splits in the order of a permutation with this seed: training gets what the others leave.
void split(Dataset& data, int64_t validation_rows, int64_t test_rows, uint64_t seed);

// The same by options' fractions of the rows (0.1 when not given), with content_hash(data) as seed. Throws UsageError
// for a fraction outside (0, 1), and when a split would be empty; but with an encoding, one or two rows are all for
// testing.
void split_by_content(Dataset& data, const DataOptions& options);

// 64-bit FNV-1a over features, labels and targets, or the sequences' own.
uint64_t content_hash(const Dataset& data);

}  // namespace tapedeck
