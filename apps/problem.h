// Problem: a data set with the loss that is trained on it, and how well a model does.
#pragma once
#include <functional>
#include <optional>
#include <span>

#include "apps/config.h"
#include "data/dataset.h"
#include "engine/pinned.h"
#include "ops/ops.h"

namespace tapedeck {

struct Inputs {
  Tensor x;       // [N, features]; of sequences: i32 tokens [N, T]
  Tensor answer;  // i32 [N] class ids; [N, 1] numbers for mse; of sequences: i32 [N, T], the token that comes next
};

struct Score {
  double loss = 0;                 // mean over the examples; of sequences: over the tokens that were asked for
  std::optional<double> accuracy;  // share of right classes, tokens, or whole answers; none for mse
  int64_t examples = 0;
};

using Model = std::function<Tensor(const Tensor& x)>;  // [N, features] -> [N, outputs], [N, T] -> [N, T, outputs]

// The place of the largest, or -1 where one is NaN: such an output names no class, and counts as wrong.
int64_t argmax(std::span<const double> logits);

DataOptions data_options(const Config& config);

class Problem {
 public:
  // Loads the data. Throws UsageError where the kind of model does not fit it.
  Problem(const Config& config, Device device, DType dtype);
  // Throws UsageError where classes are asked for and the data has numbers.
  Problem(Dataset data, bool regression, Device device, DType dtype);

  const Dataset& data() const { return data_; }
  bool regression() const { return regression_; }
  bool sequences() const { return data_.sequences != nullptr; }
  int64_t answers() const { return sequences() ? data_.features : 1; }  // of one example
  int64_t outputs() const { return regression_ ? 1 : data_.classes; }

  Device device() const { return device_; }

  Inputs load(std::span<const int32_t> rows) const;  // these rows, on the device
  // A batch of made-up examples, for warming up and measuring; of sequences perhaps shorter ones, of so many tokens.
  Inputs throw_away(int64_t count) const { return throw_away(count, data_.features); }
  Inputs throw_away(int64_t count, int64_t features) const;
  // Memory of a batch: on the device in the type that is computed in, or as data is stored, f32 with i32 class ids.
  Inputs empty(int64_t count) const;
  Inputs empty_stored(int64_t count, Device device) const;
  Inputs converted(const Inputs& stored) const;  // from what empty_stored() makes to what is computed with
  // Copies rows of the data set to the host's memory, of the types of empty_stored(). Throws Error naming file and
  // record that cannot be read.
  void gather_rows(std::span<const int32_t> rows, void* x, void* answer) const;
  Tensor loss(const Tensor& output, const Inputs& inputs) const;

  int64_t examples_a_pass() const;  // while scoring

  // Runs the model over the rows without recording. `each` sees every batch's rows and outputs on the host.
  using Observer = std::function<void(std::span<const int32_t> rows, const std::vector<double>& outputs)>;
  Score score(const Model& model, std::span<const int32_t> rows, const Observer& each = nullptr) const;

 private:
  Inputs memory(Shape examples, DType dtype, Device device) const;  // [N, features] of this type, where it is not i32
  int64_t right(std::span<const double> outputs, std::span<const int32_t> answers) const;  // of one example

  Dataset data_;
  bool regression_;
  Device device_;
  DType dtype_;
};

// [N, …] -> [n, …]: the same memory, as much of it as the first n rows take.
Inputs first_rows(const Inputs& batch, int64_t n);

// The host's memory of one batch after another, of up to `capacity` examples each: a tensor's on the cpu, else pinned,
// so that the device's transfer queue can read it. The thread that computes makes it; any thread may load.
class BatchBuffer {
 public:
  BatchBuffer(const Problem& problem, int64_t capacity);  // keeps the reference

  void load(std::span<const int32_t> rows);  // throws what Problem::gather_rows does
  int64_t count() const { return count_; }   // examples of the last load
  const void* x() const { return x_; }
  const void* answer() const { return answer_; }
  Inputs inputs()
      const;  // of the last load, on the cpu: in f32 this buffer's own memory, that the next load overwrites

 private:
  const Problem& problem_;
  Inputs host_;
  std::optional<PinnedBuffer> pinned_;
  void* x_;
  void* answer_;
  int64_t capacity_, count_ = 0;
};

}  // namespace tapedeck
