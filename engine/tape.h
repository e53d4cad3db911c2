// The tape: a vector of nodes in the order the forward pass ran, which is a topological order, so that backward only
// has to pop them from the end. A popped node dies and what it kept returns to the arena; there is no graph search and
// no recursion.
//
// An op ends in   return record("softmax", y, {&x}, [y = keep(y), dx = want(x)](const Tensor& dy) { … });
//   keep(x)  holds a value for backward, counts its bytes unless it is a parameter, and refuses changes to it
//   meanwhile;
//            where x's recipe says how it is made again (recompute.h), it holds that instead
//   want(x)  is where the op's gradient with respect to x goes; false when nobody asked for it
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/into.h"
#include "engine/tensor.h"

namespace tapedeck {

class Kept {  // a tensor held for a backward pass
 public:
  explicit Kept(const Tensor& x);
  Kept(const Kept& other) : x_(other.x_), recipe_(other.recipe_) { hold(); }
  Kept(Kept&& other) noexcept : x_(std::move(other.x_)), recipe_(std::move(other.recipe_)) { other.x_ = {}; }
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    if (x_.data) x_.data.let_go();
  }
  const Tensor& operator*() const {
    if (recipe_) make_again();
    return x_;
  }
  const Tensor* operator->() const { return &**this; }

 private:
  void hold() const {
    if (x_.data) x_.data.hold();
  }
  void make_again() const;
  mutable Tensor x_;  // empty as long as there is a recipe
  mutable std::shared_ptr<const Recipe> recipe_;
};
inline Kept keep(const Tensor& x) { return Kept(x); }

class Want {  // where the gradient with respect to one input goes
 public:
  explicit Want(const Tensor& x)
      : slot_(x.grad),
        shape_(x.shape),
        dtype_(slot_ && slot_->given ? slot_->sum.dtype : x.dtype),
        device_(x.device()) {}
  explicit operator bool() const { return slot_ != nullptr; }

  // The memory to write dL/dx to, and whether to add to what is there or to write over it. An op takes it once in its
  // backward, by one of target(), into() and give(): taken again it would say `add`, to memory that is not yet written.
  struct Target {
    Tensor sum;
    bool add;
  };
  Target target() const;
  template <class T>
  Into<T> into() const {
    const Target t = target();
    return {t.sum.ptr<T>(), t.add};
  }
  // f(into): an Into<T> or, where x is the 16-bit copy of a parameter, whose gradient gathers in f32, an Into<float>.
  // For ops that sum the gradients of their parameters.
  template <class T, class F>
  void into_sums(F&& f) const {
    if constexpr (sizeof(T) == 2)
      if (dtype_ == DType::f32) return f(into<float>());
    f(into<T>());
  }
  DType dtype() const { return dtype_; }  // of dL/dx
  int64_t count() const { return shape_.count(); }
  bool fresh() const { return slot_->fresh; }
  // What may be written instead of dL/dx, or null. Not where others use x too: they would add their part to dL/dx.
  std::shared_ptr<Offer> offer() const { return slot_->uses == 1 ? slot_->offer.lock() : nullptr; }
  void give(const Tensor& dx) const;  // the whole gradient is dx: shared by the first writer, added by later ones

 private:
  std::shared_ptr<GradSlot> slot_;
  Shape shape_;
  DType dtype_;
  Device device_;
};
inline Want want(const Tensor& x) { return Want(x); }

struct Node {
  const char* op;
  std::string where;                              // the layer that ran it: Scope::path()
  std::shared_ptr<GradSlot> out;                  // where dL/dy gathers
  std::vector<std::shared_ptr<GradSlot>> inputs;  // of those that want a gradient
  Shape shape;                                    // of y
  DType dtype;
  size_t saved_bytes;  // what keep() held first for this node
  size_t kept_bytes;   // all that it was given
  std::function<void(const Tensor& dy)> backward;
  std::shared_ptr<Offer> offer;  // may be null
};

// Records what its thread runs, from its construction until it dies; of several the innermost records. Tapes and
// NoTapes die in the reverse order of their construction and on their own thread, as local variables do: each puts back
// the one around it.
class Tape {
 public:
  Tape();
  virtual ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Fills the gradient slots of everything that leads to `loss` (one element), starting from dL/dloss = seed. Nodes are
  // freed as it goes. Throws Error on a second call, and for a loss of several elements or from elsewhere.
  void backward(const Tensor& loss, double seed = 1);
  void backward(const Tensor& loss, const Tensor& seed);  // of the loss's shape and type: a number on the device
  // The same from several ys at once, whose gradients so far are dys; an empty one: none.
  void backward(std::vector<Tensor> ys, std::vector<Tensor> dys);

  const std::vector<Node>& nodes() const { return nodes_; }
  size_t saved_bytes() const;

  struct Keeps {       // what keep() was given for one node
    size_t bytes = 0;  // that nobody else keeps
    size_t all_bytes = 0;
    std::vector<const GradSlot*> slots;  // of the tensors that have one
    bool others = false;                 // and some that have none: made inside the op, or constant
  };

 protected:
  virtual void add(Node node, const Keeps& keeps);  // at the end
  virtual bool needs_next() const { return true; }  // whether anybody reads what the next node puts out
  void stop();                                      // records no more; as if it had died

 private:
  friend Tensor record(const char*, Tensor, const std::vector<const Tensor*>&, std::function<void(const Tensor&)>,
                       std::shared_ptr<Offer>, std::shared_ptr<const Recipe>);
  friend bool recording();
  friend bool result_needed(const std::vector<const Tensor*>&);
  friend class NoTape;
  static Tape*& current();
  std::vector<Node> nodes_;
  Tape* outer_;
  bool stopped_ = false, used_ = false;
};

class NoTape {  // its thread records nothing while it lives
 public:
  NoTape();
  ~NoTape();
  NoTape(const NoTape&) = delete;
  NoTape& operator=(const NoTape&) = delete;

 private:
  Tape* outer_;
};

bool recording();  // whether a tape of this thread records

// y as an output of `op`: on the tape when one records and some input wants a gradient, else just y. A recipe says how
// backward makes y again from what it keeps anyway.
Tensor record(const char* op, Tensor y, const std::vector<const Tensor*>& inputs,
              std::function<void(const Tensor& dy)> backward, std::shared_ptr<Offer> offer = nullptr,
              std::shared_ptr<const Recipe> recipe = nullptr);

// Asked by an op of such inputs before it computes what it will record next: false where recompute() runs it again and
// nobody reads the result, so that the op need not compute it.
bool result_needed(const std::vector<const Tensor*>& inputs);

}  // namespace tapedeck
