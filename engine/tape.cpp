#include "engine/tape.h"

#include <algorithm>
#include <utility>

#include "engine/launch.h"
#include "engine/recompute.h"
#include "engine/scope.h"
#include "engine/tape_watch.h"
#include "engine/trace.h"

namespace tapedeck {
namespace {

// sum = dx or sum += dx
void gather(const Want::Target& target, const Tensor& dx) {
  if (!target.add) return copy(target.sum, dx);
  with_dtype(dx.dtype, [&]<class T>() {
    map(dx.device(), dx.count(), Into<T>{target.sum.ptr<T>(), true}, SameValue(), dx.ptr<T>());
  });
}

Tape::Keeps& pending() {  // of the op that is about to be recorded
  thread_local Tape::Keeps keeps;
  return keeps;
}

struct Released {  // what a node saved, when it dies
  explicit Released(const Node& node) : bytes(static_cast<int64_t>(node.saved_bytes)) {}
  ~Released() {
    if (Tracer* const tracer = Tracer::current()) tracer->saved(-bytes);
  }
  int64_t bytes;
};

bool wants_gradient(const std::vector<const Tensor*>& inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const Tensor* x) { return x->wants_gradient(); });
}

}  // namespace

Kept::Kept(const Tensor& x) : x_(x) {
  if (!x.data) return;
  Tape::Keeps& keeps = pending();
  if (x.grad)
    keeps.slots.push_back(x.grad.get());
  else
    keeps.others = true;
  keeps.all_bytes += x.bytes();
  const bool lives_anyway = x.data.held() || (x.grad && x.grad->given);  // given: a parameter
  if (x.grad && x.grad->recipe && !lives_anyway) {
    x_ = {};
    recipe_ = x.grad->recipe;
    return;
  }
  x_.grad = nullptr;
  if (!lives_anyway) keeps.bytes += x_.bytes();
  hold();
}

void Kept::make_again() const {
  const RecomputeClock::Timed timed(recipe_->device);
  const TracedOp traced("made again", Way::again);
  x_ = std::exchange(recipe_, nullptr)->make();
  if (traced) traced->moves(2.0 * static_cast<double>(x_.bytes())), traced->elements(x_.count());
  hold();
}

Want::Target Want::target() const {
  GradSlot& slot = *slot_;
  const bool add = !std::exchange(slot.fresh, false);
  if (Tracer* const tracer = Tracer::current())
    tracer->writes((add ? 2.0 : 1.0) * static_cast<double>(count()) * static_cast<double>(size_of(dtype_)));
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
  gather(target(), dx);
}

Tape*& Tape::current() {
  thread_local Tape* tape = nullptr;
  return tape;
}
Tape::Tape() : outer_(std::exchange(current(), this)) {}
Tape::~Tape() {
  stop();
  if (Tracer* const tracer = Tracer::current()) tracer->saved(-static_cast<int64_t>(saved_bytes()));
}
void Tape::stop() {
  if (!std::exchange(stopped_, true)) current() = outer_;
}
void Tape::add(Node node, const Keeps&) {
  if (Tracer* const tracer = Tracer::current()) tracer->saved(static_cast<int64_t>(node.saved_bytes));
  nodes_.push_back(std::move(node));
}

NoTape::NoTape() : outer_(std::exchange(Tape::current(), nullptr)) {}
NoTape::~NoTape() { Tape::current() = outer_; }

bool recording() { return Tape::current() != nullptr; }

bool result_needed(const std::vector<const Tensor*>& inputs) {
  const Tape* const tape = Tape::current();
  return !tape || !wants_gradient(inputs) || tape->needs_next();
}

Tensor record(const char* op, Tensor y, const std::vector<const Tensor*>& inputs,
              std::function<void(const Tensor& dy)> backward, std::shared_ptr<Offer> offer,
              std::shared_ptr<const Recipe> recipe) {
  const Tape::Keeps keeps = std::exchange(pending(), {});
  if (Tracer* const tracer = Tracer::current()) tracer->op(op, inputs, y);
  Tape* tape = Tape::current();
  y.grad = nullptr;
  if (!tape || !wants_gradient(inputs)) return y;
  CHECK(!tape->used_, "{}: this tape was already used by backward: record on a new one", op);
  y.grad = std::make_shared<GradSlot>();
  y.grad->recipe = std::move(recipe);
  Node node{op,
            Scope::path(),
            y.grad,
            {},
            y.shape,
            y.dtype,
            keeps.bytes,
            keeps.all_bytes,
            std::move(backward),
            std::move(offer)};
  for (const Tensor* x : inputs) {
    if (!x->wants_gradient()) continue;
    node.inputs.push_back(x->grad);
    ++x->grad->uses;
  }
  if (TapeWatch* const watch = TapeWatch::current(); watch && !of_recompute(op)) watch->output(op, node.where, y);
  tape->add(std::move(node), keeps);
  return y;
}

void Tape::backward(const Tensor& loss, double seed) {
  backward(loss, Tensor::full(loss.shape, loss.dtype, loss.device(), seed));
}

void Tape::backward(const Tensor& loss, const Tensor& seed) {
  CHECK(!used_,
        "backward: this tape was already used; values are freed as backward runs. Record again, or keep two tapes");
  CHECK(loss.count() == 1, "backward: the loss must be one number, got {}: take mean() or sum() first", loss.shape);
  CHECK(loss.wants_gradient(), "backward: nothing that leads to this loss wants a gradient");
  const auto last = std::find_if(nodes_.rbegin(), nodes_.rend(), [&](const Node& n) { return n.out == loss.grad; });
  CHECK(last != nodes_.rend(), "backward: this loss was not recorded on this tape");
  backward(std::vector{loss}, {seed});
}

void Tape::backward(std::vector<Tensor> ys, std::vector<Tensor> dys) {
  used_ = true;
  NoTape off;
  for (const Node& node : nodes_) {
    // Not before: on another tape, y is a leaf, whose gradient is dL/dy.
    node.out->offer = node.offer;
    node.out->recipe = nullptr;  // who keeps it has it
  }
  for (size_t i = 0; i < ys.size(); ++i)
    if (dys[i] && ys[i].grad) want(ys[i]).give(dys[i]);
  ys.clear(), dys.clear();
  while (!nodes_.empty()) {
    Node node = std::move(nodes_.back());
    nodes_.pop_back();
    const Released released(node);
    if (node.out->fresh) continue;  // nothing that reached the loss used it
    if (TapeWatch* const watch = TapeWatch::current(); watch && !of_recompute(node.op))
      watch->gradient(node.op, node.where, node.out->sum);
    const ScopeOf scope(std::move(node.where));
    const TracedOp traced(node.op, Way::backward);
    if (traced) {
      traced->elements(node.shape.count());
      traced->reads(static_cast<double>(node.out->sum.bytes() + node.kept_bytes));
    }
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
