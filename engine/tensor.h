// Tensor: a value that is cheap to copy: shared storage, a shape, a number type and, when somebody asked for dL/dx,
// the slot where that gradient gathers. Always contiguous and row-major; nothing is ever a view with strides.
#pragma once
#include <memory>
#include <vector>

#include "engine/dtype.h"
#include "engine/shape.h"
#include "engine/storage.h"

namespace tapedeck {

struct GradSlot;
struct Offer;
struct Recipe;

struct Tensor {
  Storage data;
  Shape shape;
  DType dtype = DType::f32;
  std::shared_ptr<GradSlot> grad;  // null: nobody asked

  static Tensor empty(const Shape& shape, DType dtype, Device device);  // contents undefined
  static Tensor full(const Shape& shape, DType dtype, Device device, double value);
  static Tensor like(const Tensor& x) { return empty(x.shape, x.dtype, x.device()); }
  static Tensor like(const Tensor& x, const Shape& shape) { return empty(shape, x.dtype, x.device()); }
  // Copies host values; their number must be the shape's, their C++ type the dtype's.
  template <class T>
  static Tensor from(const std::vector<T>& values, const Shape& shape, Device device = Device::cpu);

  Device device() const { return data.device(); }
  int rank() const { return shape.rank(); }
  int64_t count() const { return shape.count(); }
  int64_t rows() const { return shape.rows(); }
  int64_t cols() const { return shape.cols(); }
  size_t bytes() const { return static_cast<size_t>(count()) * size_of(dtype); }
  explicit operator bool() const { return static_cast<bool>(data); }

  template <class T>
  T* ptr() const {
    CHECK(data, "tensor: this one has no memory: it was never given a value");
    CHECK(dtype_of<T> == dtype, "tensor: asked for {} but this tensor holds {}", name(dtype_of<T>), name(dtype));
    return static_cast<T*>(data.begin());
  }

  bool wants_gradient() const { return grad != nullptr; }
  Tensor& require_gradient();  // makes this tensor a leaf whose gradient gathers in `grad`
  // The gradient gathered so far; throws Error when there is none yet. Read it only: where an op passes its gradient on
  // unchanged (add, reshape), several leaves share one memory.
  Tensor gradient() const;

  Tensor to(Device device) const;  // a copy on that device; this tensor itself when it is there already
  template <class T>
  std::vector<T> values() const;        // a copy on the host, of the same C++ type
  std::vector<double> doubles() const;  // the same, converted
  double item() const;                  // the one number of a one-element tensor
};

bool all_finite(const Tensor& x);  // looked at on the host

// Where dL/dx gathers. The first writer writes, later ones add, so nothing is ever filled with zeros first.
struct GradSlot {
  Tensor sum;                  // empty until the first write, or memory given beforehand
  bool fresh = true;           // nobody has written yet
  bool given = false;          // sum is memory given beforehand (a parameter's segment): write there and nowhere else
  int uses = 0;                // as an input on some tape
  std::weak_ptr<Offer> offer;  // while its tape runs backward: what dL/dx may be instead, see offer.h
  std::shared_ptr<const Recipe> recipe;  // until then: how x is made again where it is not to be kept, see recompute.h
};

// to = from, element by element on the same shape and dtype; either may be on any device. Refuses to change a tensor
// that a tape keeps for its backward pass.
void copy(const Tensor& to, const Tensor& from);
void fill(const Tensor& to, double value);

}  // namespace tapedeck
