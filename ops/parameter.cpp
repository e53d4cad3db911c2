#include "ops/parameter.h"

#include "engine/launch.h"
#include "engine/random.h"
#include "engine/trace.h"
#include "ops/module.h"

namespace tapedeck {
namespace {

constexpr int64_t segment = 64;  // elements; a segment of f32 starts on a 256-byte boundary

int64_t padded(int64_t count) { return (count + segment - 1) / segment * segment; }

template <class T>
std::vector<T> initial_values(const Parameter& p, uint64_t seed) {
  const uint32_t site = site_of(p.path);
  std::vector<T> values(static_cast<size_t>(p.shape.count()));
  for (size_t i = 0; i < values.size(); ++i) {
    const Random4 bits = random_bits(seed, 0, site, i / 4);
    const uint32_t word = bits.word[i % 4];
    double value = p.init.size;
    if (p.init.kind == Init::Kind::uniform) value *= 2 * static_cast<double>(uniform01(word)) - 1;
    if (p.init.kind == Init::Kind::normal) {
      const NormalPair pair = normal_pair(bits.word[i % 4 & 2], bits.word[(i % 4 & 2) + 1]);
      value *= static_cast<double>(i % 2 ? pair.second : pair.first);
    }
    values[i] = static_cast<T>(value);
  }
  return values;
}

Tensor part(const Tensor& flat, int64_t begin, const Shape& shape) {
  Tensor t;
  t.shape = shape;
  t.dtype = flat.dtype;
  t.data = flat.data.slice(static_cast<size_t>(begin) * size_of(flat.dtype), t.bytes());
  return t;
}

}  // namespace

Parameter::Parameter(Module& owner, const std::string& name, const Shape& shape, const Init& init)
    : path(owner.path() + "." + name), shape(shape), init(init) {
  CHECK(shape.count() > 0, "{}: a parameter needs at least one value, got shape {}", path, shape);
  owner.own_.push_back(this);
}

ParameterSet::ParameterSet(Module& model, Device device, DType dtype, uint64_t seed) {
  const Scope scope("parameters");
  int64_t total = 0;
  for (const bool matrices : {true, false}) {
    for (Parameter* p : model.parameters())
      if ((p->shape.rank() >= 2) == matrices) {
        all_.push_back(p);
        total += padded(p->shape.count());
        count_ += p->shape.count();
      }
    if (matrices) decayed_ = total;
  }
  CHECK(count_ > 0, "{}: the model has no parameters to train", model.path());
  const DType wide = sums_of(dtype);
  values_ = Tensor::full({total}, wide, device, 0);
  gradients_ = Tensor::full({total}, wide, device, 0);  // the padding stays zero for ever
  if (dtype != wide) copies_ = Tensor::empty({total}, dtype, device);

  int64_t begin = 0;
  for (Parameter* p : all_) {
    p->master = part(values_, begin, p->shape);
    with_dtype(wide, [&]<class T>() { copy(p->master, Tensor::from(initial_values<T>(*p, seed), p->shape)); });
    p->value = copies_ ? part(copies_, begin, p->shape) : p->master;
    p->value.require_gradient();
    p->value.grad->sum = part(gradients_, begin, p->shape);
    p->value.grad->given = true;
    begin += padded(p->shape.count());
  }
  round_copies();
}

void ParameterSet::round_copies() {
  if (!copies_) return;
  const TracedOp traced("round copies");
  if (traced) traced->moves(static_cast<double>(values_.bytes() + copies_.bytes())), traced->elements(values_.count());
  with_dtype(copies_.dtype, [&]<class T>() {
    map(copies_.device(), copies_.count(), Into<T>{copies_.ptr<T>()}, SameValue(), values_.ptr<float>());
  });
}

void ParameterSet::forget_gradients() {
  for (Parameter* p : all_) p->value.grad->fresh = true;
}

void ParameterSet::complete_gradients() {
  for (Parameter* p : all_) {
    GradSlot& slot = *p->value.grad;
    if (slot.fresh) fill(slot.sum, 0);
    slot.fresh = false;
  }
}

std::string ParameterSet::broken_value() const {
  for (const Parameter* p : all_)
    if (!all_finite(p->master)) return p->path;
  return "";
}

const std::string& ParameterSet::path_at(int64_t place) const {
  int64_t end = 0;
  for (const Parameter* p : all_)
    if (place < (end += padded(p->shape.count()))) return p->path;
  CHECK(false, "parameters: no place {} in {} numbers", place, values_.count());
}

}  // namespace tapedeck
