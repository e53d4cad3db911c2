// Moving numbers: reshape, permute, concat, slice, cast. No arithmetic forward; each gradient moves back the same way.
#include <array>

#include "engine/launch.h"
#include "engine/trace.h"
#include "ops/ops.h"

namespace tapedeck {

// ---- reshape: y = x under another shape, in the same memory        dx = dy under x's shape -------------------------

Tensor reshape(const Tensor& x, const Shape& shape) {
  CHECK(x.count() == shape.count(), "reshape: {} has {} elements but {} has {}: the numbers must agree", x.shape,
        x.count(), shape, shape.count());
  Tensor y = x;
  y.shape = shape;
  trace_moves(0);
  return record("reshape", y, {&x}, [dx = want(x), shape = x.shape](const Tensor& dy) {
    Tensor reshaped = dy;
    reshaped.shape = shape;
    dx.give(reshaped);
  });
}

// ---- permute: y[i_0, i_1, …] = x with i_k on its axis axes[k]        dx = permute(dy, the inverse of axes) ----------

namespace {

template <class T>
struct Permute {  // one row of the output per Block
  const T* from;
  Into<T> to;
  int64_t cols;
  int rank;
  int64_t extent[Shape::max_rank], stride[Shape::max_rank];  // the output's extents, and the input's step along each
  HD void operator()(Block b, int64_t row) const {
    int64_t start = 0, rest = row;
    for (int axis = rank - 2; axis >= 0; --axis) {
      start += rest % extent[axis] * stride[axis];
      rest /= extent[axis];
    }
    const T* const in = from + start;
    const int64_t step = rank > 0 ? stride[rank - 1] : 1;
    if (to.add)
      b.each(cols, [&](int64_t j) { to(row * cols + j, Acc<T>(in[j * step])); });
    else
      b.each(cols, [&](int64_t j) { to.p[row * cols + j] = in[j * step]; });
  }
};

using Axes = std::array<int, Shape::max_rank>;

Shape permuted(const Shape& shape, const Axes& axes) {
  Shape result;
  for (int k = 0; k < shape.rank(); ++k) result.push(shape[axes[k]]);
  return result;
}

template <class T>
void permute_into(Into<T> to, const Tensor& x, const Axes& axes) {
  int64_t step[Shape::max_rank], product = 1;
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    step[axis] = product;
    product *= x.shape[axis];
  }
  const Shape out = permuted(x.shape, axes);
  Permute<T> kernel{x.ptr<T>(), to, out.cols(), x.rank(), {}, {}};
  for (int k = 0; k < x.rank(); ++k) {
    kernel.extent[k] = out[k];
    kernel.stride[k] = step[axes[k]];
  }
  rows(x.device(), x.count() > 0 ? out.rows() : 0, kernel);
}

}  // namespace

Tensor permute(const Tensor& x, const std::vector<int>& axes) {
  Axes order{}, inverse;
  inverse.fill(-1);
  bool valid = static_cast<int>(axes.size()) == x.rank();
  for (int k = 0; valid && k < x.rank(); ++k) {
    order[k] = axes[k];
    valid = axes[k] >= 0 && axes[k] < x.rank() && inverse[axes[k]] == -1;
    if (valid) inverse[axes[k]] = k;
  }
  std::string list;
  for (const int axis : axes) list += (list.empty() ? "" : ", ") + std::to_string(axis);
  CHECK(valid, "permute: axes [{}] do not order the {} axes of {}: name each of them once, from 0", list, x.rank(),
        x.shape);
  const Tensor y = Tensor::like(x, permuted(x.shape, order));
  with_dtype(x.dtype, [&]<class T>() { permute_into(Into<T>{y.ptr<T>()}, x, order); });
  return record("permute", y, {&x}, [inverse, dx = want(x)](const Tensor& dy) {
    with_dtype(dy.dtype, [&]<class T>() { permute_into(dx.into<T>(), dy, inverse); });
  });
}

// ---- concat and slice: along one axis, a tensor is [outer, extent, inner]; a part of it is `outer` runs -------------

namespace {

template <class T>
struct CopyRuns {  // one run per Block: `cols` elements that lie together on both sides
  const T* from;
  int64_t from_step;  // from one run to the next
  Into<T> to;
  int64_t to_step, cols;
  HD void operator()(Block b, int64_t run) const {
    if (to.add)
      b.each(cols, [&](int64_t j) { to(run * to_step + j, Acc<T>(from[run * from_step + j])); });
    else
      b.each(cols, [&](int64_t j) { to.p[run * to_step + j] = from[run * from_step + j]; });
  }
};

template <class T>
struct PadRuns {  // one run of `to` per Block: zeros but for the `length` elements from `begin` on
  const T* from;
  T* to;
  int64_t begin, length, cols;
  HD void operator()(Block b, int64_t run) const {
    b.each(cols, [&](int64_t j) {
      const bool inside = j >= begin && j < begin + length;
      to[run * cols + j] = inside ? from[run * length + j - begin] : T(0.0f);
    });
  }
};

struct Runs {
  int64_t outer = 1, inner = 1;
  Runs(const Shape& shape, int axis) {
    for (int k = 0; k < axis; ++k) outer *= shape[k];
    for (int k = axis + 1; k < shape.rank(); ++k) inner *= shape[k];
  }
};

Shape with_extent(const Shape& shape, int axis, int64_t extent) {
  Shape result;
  for (int k = 0; k < shape.rank(); ++k) result.push(k == axis ? extent : shape[k]);
  return result;
}

}  // namespace

// y = the parts one after another along the axis        d part = its piece of dy
Tensor concat(const std::vector<Tensor>& parts, int axis) {
  CHECK(!parts.empty(), "concat: got no tensors: give at least one");
  const Tensor& first = parts[0];
  CHECK(axis >= 0 && axis < first.rank(), "concat: axis {} is not one of the {} axes of {}", axis, first.rank(),
        first.shape);
  int64_t total = 0;
  std::vector<const Tensor*> inputs;
  std::vector<Want> wants;
  std::vector<int64_t> extents;
  for (const Tensor& part : parts) {
    CHECK(part.rank() == first.rank() && with_extent(part.shape, axis, 0) == with_extent(first.shape, axis, 0),
          "concat: {} does not continue {} along axis {}: their other extents must agree", part.shape, first.shape,
          axis);
    CHECK(part.dtype == first.dtype && part.device() == first.device(),
          "concat: {} on {} does not continue {} on {}: cast() it, or move it with to()", name(part.dtype),
          name(part.device()), name(first.dtype), name(first.device()));
    total += part.shape[axis];
    inputs.push_back(&part);
    wants.push_back(want(part));
    extents.push_back(part.shape[axis]);
  }
  const auto [outer, inner] = Runs(first.shape, axis);
  const int64_t step = total * inner;
  const Tensor y = Tensor::like(first, with_extent(first.shape, axis, total));
  with_dtype(y.dtype, [&, outer = outer, inner = inner]<class T>() {
    T* to = y.ptr<T>();
    for (const Tensor& part : parts) {
      const int64_t length = part.shape[axis] * inner;
      rows(y.device(), outer, CopyRuns<T>{part.ptr<T>(), length, {to}, step, length});
      to += length;
    }
  });
  return record("concat", y, inputs, [=, outer = outer, inner = inner](const Tensor& dy) {
    with_dtype(dy.dtype, [&]<class T>() {
      const T* from = dy.ptr<T>();
      for (size_t k = 0; k < wants.size(); ++k) {
        const int64_t length = extents[k] * inner;
        if (wants[k]) rows(dy.device(), outer, CopyRuns<T>{from, step, wants[k].into<T>(), length, length});
        from += length;
      }
    });
  });
}

// y = x at begin ≤ index < end of the axis        dx = dy there, 0 elsewhere
Tensor slice(const Tensor& x, int axis, int64_t begin, int64_t end) {
  CHECK(axis >= 0 && axis < x.rank(), "slice: axis {} is not one of the {} axes of {}", axis, x.rank(), x.shape);
  CHECK(begin >= 0 && begin <= end && end <= x.shape[axis],
        "slice: {}…{} does not lie in 0…{}, the extent of axis {} of {}", begin, end, x.shape[axis], axis, x.shape);
  const auto [outer, inner] = Runs(x.shape, axis);
  const int64_t cols = x.shape[axis] * inner, offset = begin * inner, length = (end - begin) * inner;
  const Tensor y = Tensor::like(x, with_extent(x.shape, axis, end - begin));
  with_dtype(x.dtype, [&, outer = outer]<class T>() {
    rows(x.device(), outer, CopyRuns<T>{x.ptr<T>() + offset, cols, {y.ptr<T>()}, length, length});
  });
  trace_moves(2.0 * static_cast<double>(y.bytes()));
  return record("slice", y, {&x}, [=, outer = outer, dx = want(x)](const Tensor& dy) {
    with_dtype(dy.dtype, [&]<class T>() {
      const auto [to, add] = dx.into<T>();
      if (add)  // what lies outside stays as it is
        rows(dy.device(), outer, CopyRuns<T>{dy.ptr<T>(), length, {to + offset, true}, cols, length});
      else
        rows(dy.device(), outer, PadRuns<T>{dy.ptr<T>(), to, offset, length, cols});
    });
  });
}

// ---- cast: y = x rounded to another type        dx = dy rounded to x's type ----------------------------------------

namespace {

template <class From, class To>
struct Cast {  // double goes straight to 16 bits: by way of float it would be rounded twice
  const From* from;
  To* to;
  HD void operator()(int64_t i) const {
    if constexpr (std::is_same_v<From, int32_t>)
      to[i] = To(double(from[i]));
    else
      to[i] = To(Acc<From>(from[i]));
  }
};

}  // namespace

Tensor cast(const Tensor& x, DType dtype) {
  CHECK(is_floating(dtype), "cast: {} to {} would lose fractions: cast to f64, f32, f16 or bf16", name(x.dtype),
        name(dtype));
  if (x.dtype == dtype) return x;
  const Tensor y = Tensor::empty(x.shape, dtype, x.device());
  with_dtype(dtype, [&]<class To>() {
    const auto from = [&]<class From>() { each(x.device(), x.count(), Cast<From, To>{x.ptr<From>(), y.ptr<To>()}); };
    if (x.dtype == DType::i32)
      from.template operator()<int32_t>();
    else
      with_dtype(x.dtype, from);
  });
  return record("cast", y, {&x}, [dx = want(x), dtype = x.dtype](const Tensor& dy) { dx.give(cast(dy, dtype)); });
}

}  // namespace tapedeck
