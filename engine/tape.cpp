#include "engine/tape.h"

#include <algorithm>
#include <utility>

#include "engine/launch.h"
#include "engine/scope.h"

namespace tapedeck {
namespace {

struct Same {
  template <class A>
  HD A operator()(A a) const {
    return a;
  }
};

// sum += dx
void add_to(Tensor& sum, const Tensor& dx) {
  with_dtype(sum.dtype, [&]<class T>() {
    map(sum.device(), sum.count(), Into<T>{sum.ptr<T>(), true}, Same{}, dx.ptr<T>());
  });
}

size_t& pending_saved_bytes() {  // of the op that is about to be recorded
  thread_local size_t bytes = 0;
  return bytes;
}

}  // namespace

Kept::Kept(const Tensor& x) : x_(x) {
  const bool lives_anyway = x.grad && x.grad->given;  // a parameter
  x_.grad = nullptr;
  if (x_.data && !x_.data.held() && !lives_anyway) pending_saved_bytes() += x_.bytes();
  hold();
}

Want::Target Want::target() const {
  GradSlot& slot = *slot_;
  const bool add = !std::exchange(slot.fresh, false);
  if (!slot.sum || (slot.sum.data.shared() && !slot.given)) {  // somebody else reads the same memory: leave it alone
    const Tensor own = Tensor::empty(shape_, dtype_, device_);
    if (add) copy(own, slot.sum);
    slot.sum = own;
  }
  return {slot.sum, add};
}

void Want::give(const Tensor& dx) const {
  CHECK(dx.shape == shape_ && dx.dtype == dtype_, "gradient: {} {} does not fit {} {}", name(dx.dtype), dx.shape,
        name(dtype_), shape_);
  if (slot_->fresh && !slot_->given) {
    slot_->sum = dx;
    slot_->sum.grad = nullptr;
    slot_->fresh = false;
    return;
  }
  Target t = target();
  if (t.add)
    add_to(t.sum, dx);
  else
    copy(t.sum, dx);
}

Tape*& Tape::current() {
  thread_local Tape* tape = nullptr;
  return tape;
}
Tape::Tape() : outer_(std::exchange(current(), this)) {}
Tape::~Tape() { current() = outer_; }

NoTape::NoTape() : outer_(std::exchange(Tape::current(), nullptr)) {}
NoTape::~NoTape() { Tape::current() = outer_; }

bool recording() { return Tape::current() != nullptr; }

Tensor record(const char* op, Tensor y, const std::vector<const Tensor*>& inputs,
              std::function<void(const Tensor& dy)> backward, std::shared_ptr<Offer> offer) {
  const size_t saved = std::exchange(pending_saved_bytes(), 0);
  Tape* tape = Tape::current();
  const bool wanted = std::any_of(inputs.begin(), inputs.end(), [](const Tensor* x) { return x->wants_gradient(); });
  y.grad = nullptr;
  if (!tape || !wanted) return y;
  CHECK(!tape->used_, "{}: this tape was already used by backward: record on a new one", op);
  y.grad = std::make_shared<GradSlot>();
  Node node{op, Scope::path(), y.grad, {}, y.shape, y.dtype, saved, std::move(backward), std::move(offer)};
  for (const Tensor* x : inputs) {
    if (!x->wants_gradient()) continue;
    node.inputs.push_back(x->grad.get());
    ++x->grad->uses;
  }
  tape->nodes_.push_back(std::move(node));
  return y;
}

void Tape::backward(const Tensor& loss, double seed) {
  CHECK(!used_,
        "backward: this tape was already used; values are freed as backward runs. Record again, or keep two tapes");
  CHECK(loss.count() == 1, "backward: the loss must be one number, got {}: take mean() or sum() first", loss.shape);
  CHECK(loss.wants_gradient(), "backward: nothing that leads to this loss wants a gradient");
  const auto last = std::find_if(nodes_.rbegin(), nodes_.rend(), [&](const Node& n) { return n.out == loss.grad; });
  CHECK(last != nodes_.rend(), "backward: this loss was not recorded on this tape");
  used_ = true;
  NoTape off;
  // Not before: on another tape, y is a leaf, whose gradient is dL/dy.
  for (const Node& node : nodes_) node.out->offer = node.offer;
  want(loss).give(Tensor::full(loss.shape, loss.dtype, loss.device(), seed));
  while (!nodes_.empty()) {
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    if (node.out->fresh) continue;  // nothing that reached the loss used it
    ScopeOf scope(std::move(node.where));
    node.out->fresh = true;  // nothing is left in it
    node.backward(std::exchange(node.out->sum, {}));
  }
}

size_t Tape::saved_bytes() const {
  size_t total = 0;
  for (const Node& node : nodes_) total += node.saved_bytes;
  return total;
}

}  // namespace tapedeck
