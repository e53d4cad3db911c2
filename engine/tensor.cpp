#include "engine/tensor.h"

#include <algorithm>
#include <cmath>

#include "engine/backend.h"
#include "engine/launch.h"

namespace tapedeck {
namespace {

template <class T>
struct Fill {
  T* p;
  T value;
  HD void operator()(int64_t i) const { p[i] = value; }
};

void check_not_kept(const Tensor& to, const char* what) {
  CHECK(!to.data.held(), "{}: this tensor {} is kept by a tape for its backward pass: write to another one", what,
        to.shape);
}

template <class F>  // with_dtype, and i32 too
void with_any_dtype(DType d, F&& f) {
  if (d == DType::i32)
    f.template operator()<int32_t>();
  else
    with_dtype(d, f);
}

}  // namespace

Storage::Owner::Owner(Device d, size_t bytes) : device(d), address(backend(d).arena().allocate(bytes)) {}
Storage::Owner::~Owner() { backend(device).arena().release(address); }

Storage::Storage(Device device, size_t bytes)
    : owner_(std::make_shared<Owner>(device, bytes)), bytes_(bytes), device_(device) {
  begin_ = owner_->address;
}

Storage Storage::slice(size_t offset, size_t bytes) const {
  CHECK(offset <= bytes_ && bytes <= bytes_ - offset, "storage: a slice of {} bytes at {} leaves a storage of {} bytes",
        bytes, offset, bytes_);
  Storage part = *this;
  part.begin_ = static_cast<char*>(begin_) + offset;
  part.bytes_ = bytes;
  return part;
}

Tensor Tensor::empty(const Shape& shape, DType dtype, Device device) {
  Tensor t;
  t.shape = shape;
  t.dtype = dtype;
  t.data = Storage(device, t.bytes());
  return t;
}

Tensor Tensor::full(const Shape& shape, DType dtype, Device device, double value) {
  Tensor t = empty(shape, dtype, device);
  fill(t, value);
  return t;
}

template <class T>
Tensor Tensor::from(const std::vector<T>& values, const Shape& shape, Device device) {
  CHECK(static_cast<int64_t>(values.size()) == shape.count(), "tensor: {} values do not fill shape {}", values.size(),
        shape);
  Tensor t = empty(shape, dtype_of<T>, device);
  backend(device).copy(t.data.begin(), values.data(), t.bytes());
  return t;
}

template <class T>
std::vector<T> Tensor::values() const {
  std::vector<T> out(static_cast<size_t>(count()));
  const T* from = ptr<T>();
  backend(device()).copy(out.data(), from, bytes());
  return out;
}

template Tensor Tensor::from(const std::vector<double>&, const Shape&, Device);
template Tensor Tensor::from(const std::vector<float>&, const Shape&, Device);
template Tensor Tensor::from(const std::vector<Half>&, const Shape&, Device);
template Tensor Tensor::from(const std::vector<Bfloat16>&, const Shape&, Device);
template Tensor Tensor::from(const std::vector<int32_t>&, const Shape&, Device);
template std::vector<double> Tensor::values() const;
template std::vector<float> Tensor::values() const;
template std::vector<Half> Tensor::values() const;
template std::vector<Bfloat16> Tensor::values() const;
template std::vector<int32_t> Tensor::values() const;

std::vector<double> Tensor::doubles() const {
  std::vector<double> out;
  out.reserve(static_cast<size_t>(count()));
  with_any_dtype(dtype, [&]<class T>() {
    for (T v : values<T>()) out.push_back(static_cast<double>(v));
  });
  return out;
}

bool all_finite(const Tensor& x) {
  const std::vector<double> values = x.doubles();
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

double Tensor::item() const {
  CHECK(count() == 1, "item: needs a tensor of one element, got {}", shape);
  return doubles()[0];
}

Tensor& Tensor::require_gradient() {
  CHECK(is_floating(dtype), "require_gradient: only floating tensors have gradients, got {}", name(dtype));
  grad = std::make_shared<GradSlot>();
  return *this;
}

Tensor Tensor::gradient() const {
  CHECK(grad != nullptr, "gradient: nobody asked for this tensor's gradient: call require_gradient() first");
  CHECK(!grad->fresh, "gradient: no backward pass has left one here: only leaves keep theirs after it has run");
  return grad->sum;
}

Tensor Tensor::to(Device target) const {
  if (target == device()) return *this;
  Tensor out = empty(shape, dtype, target);
  copy(out, *this);
  return out;
}

void copy(const Tensor& to, const Tensor& from) {
  CHECK(to.shape == from.shape && to.dtype == from.dtype, "copy: {} {} does not fit into {} {}", name(from.dtype),
        from.shape, name(to.dtype), to.shape);
  CHECK(to && from, "copy: this tensor has no memory: it was never given a value");
  check_not_kept(to, "copy");
  const bool on_cpu = to.device() == Device::cpu || from.device() == Device::cpu;
  if (!on_cpu && to.device() != from.device()) return copy(to, from.to(Device::cpu));  // neither reaches the other's
  const Device device = to.device() != Device::cpu ? to.device() : from.device();
  backend(device).copy(to.data.begin(), from.data.begin(), to.bytes());
}

void fill(const Tensor& to, double value) {
  check_not_kept(to, "fill");
  with_any_dtype(to.dtype, [&]<class T>() {
    each(to.device(), to.count(), Fill<T>{to.ptr<T>(), static_cast<T>(value)});
  });
}

}  // namespace tapedeck
