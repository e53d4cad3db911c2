#include "ops/gradient_squares.h"

#include <utility>

#include "engine/launch.h"
#include "engine/trace.h"

namespace tapedeck {
namespace {

constexpr int64_t chunk = 4096;  // elements that one Block sums in Acc, as for the gradient norm; their sums are f64

template <class T>
struct RowSquares {  // one example per Block
  const T* dz;
  const T* x;
  double* sums;
  int64_t outs, ins;
  double bias;  // 1 where there is one
  bool add;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const T *const slope = dz + row * outs, *const in = x + row * ins;
    const double squares = double(b.sum(outs, [&](int64_t j) { return Acc<T>(slope[j]) * Acc<T>(slope[j]); }));
    const double inputs = double(b.sum(ins, [&](int64_t j) { return Acc<T>(in[j]) * Acc<T>(in[j]); }));
    if (b.lane != 0) return;
    const double here = squares * (inputs + bias);
    sums[row] = add ? sums[row] + here : here;
  }
};

template <class T>
struct ChangeSquares {  // one chunk per Block; leaves g in before
  const T* g;
  T* before;
  double* sums;
  int64_t count;
  bool first;  // nothing was there before
  int64_t cols = chunk;
  HD void operator()(Block b, int64_t row) const {
    const T* const now = g + row * chunk;
    T* const last = before + row * chunk;
    const int64_t n = count - row * chunk < chunk ? count - row * chunk : chunk;
    if (first) b.each(n, [&](int64_t i) { last[i] = T(0); });
    const double sum = double(b.sum(n, [&](int64_t i) {
      const Acc<T> change = Acc<T>(now[i]) - Acc<T>(last[i]);
      return change * change;
    }));
    b.each(n, [&](int64_t i) { last[i] = now[i]; });
    if (b.lane == 0) sums[row] = sum;
  }
};

struct AddSquares {  // one Block
  const double* sums;
  StepState* state;
  int64_t cols;
  HD void operator()(Block b, int64_t) const {
    const double total = b.sum(cols, [&](int64_t i) { return sums[i]; });
    if (b.lane == 0) state->squares += total;
  }
};

void add(StepState* state, const Tensor& sums) {
  rows(sums.device(), 1, AddSquares{sums.ptr<double>(), state, sums.count()});
}

ExampleSquares*& current_of_thread() {
  thread_local ExampleSquares* current = nullptr;
  return current;
}

}  // namespace

ExampleSquares::ExampleSquares(Device device, int64_t examples)
    : outer_(std::exchange(current_of_thread(), this)), sums_(Tensor::empty({examples}, DType::f64, device)) {}
ExampleSquares::~ExampleSquares() { current_of_thread() = outer_; }
ExampleSquares* ExampleSquares::current() { return current_of_thread(); }

void ExampleSquares::add_layer(const Tensor& dz, const Tensor& x, bool bias) {
  CHECK(dz.rows() == sums_.count() && x.rows() == sums_.count(),
        "gradients of single examples: a linear layer has {} rows, and the batch {} examples: rows of this model are "
        "no examples",
        dz.rows(), sums_.count());
  const bool more = parameters_ > 0;
  parameters_ += dz.cols() * (x.cols() + (bias ? 1 : 0));
  with_dtype(dz.dtype, [&]<class T>() {
    rows(dz.device(), dz.rows(),
         RowSquares<T>{dz.ptr<T>(), x.ptr<T>(), sums_.ptr<double>(), dz.cols(), x.cols(), bias ? 1.0 : 0.0, more,
                       dz.cols() + x.cols()});
  });
}

void ExampleSquares::add_to(StepState* state, int64_t parameters) const {
  CHECK(parameters_ == parameters,
        "gradients of single examples: linear layers have {} of the model's {} parameters: others are not known by row",
        parameters_, parameters);
  add(state, sums_);
}

BatchSquares::BatchSquares(const ParameterSet& parameters) : before_(Tensor::like(parameters.gradients())) {}

void BatchSquares::add_to(StepState* state, ParameterSet& parameters, bool first) const {
  parameters.complete_gradients();  // else what this batch left alone would still hold another step's
  const TracedOp traced("gradient squares");
  const Tensor& g = parameters.gradients();
  if (traced) traced->elements(g.count()), traced->moves(3.0 * static_cast<double>(g.bytes()));
  const Tensor sums = Tensor::empty({(g.count() + chunk - 1) / chunk}, DType::f64, g.device());
  with_dtype(g.dtype, [&]<class T>() {
    rows(g.device(), sums.count(),
         ChangeSquares<T>{g.ptr<T>(), before_.ptr<T>(), sums.ptr<double>(), g.count(), first});
  });
  add(state, sums);
}

void BatchSquares::restore(const ParameterSet& parameters) const { copy(before_, parameters.gradients()); }

}  // namespace tapedeck
