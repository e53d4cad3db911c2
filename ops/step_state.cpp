#include "ops/step_state.h"

#include "engine/launch.h"

namespace tapedeck {
namespace {

template <class T>
struct EndBatch {  // one lane
  StepState* state;
  const T* loss;
  double share;
  int64_t count;
  HD void operator()(int64_t) const {
    state->loss += share * double(*loss);
    state->batches += 1;
    state->cursor += count;
  }
};

template <class T>
struct Seed {  // one lane
  const StepState* state;
  T* seed;
  double share;
  HD void operator()(int64_t) const { *seed = T(share * double(state->scaler.scale)); }
};

}  // namespace

Tensor seed_of(const StepState* state, const Tensor& loss, double share) {
  const Tensor seed = Tensor::like(loss);
  with_dtype(loss.dtype, [&]<class T>() { each(loss.device(), 1, Seed<T>{state, seed.ptr<T>(), share}); });
  return seed;
}

void end_batch(StepState* state, const Tensor& of_batch, double share, int64_t count) {
  CHECK(of_batch.count() == 1, "end_batch: the loss must be one number, got {}", of_batch.shape);
  with_dtype(of_batch.dtype, [&]<class T>() {
    each(of_batch.device(), 1, EndBatch<T>{state, of_batch.ptr<T>(), share, count});
  });
}

}  // namespace tapedeck
