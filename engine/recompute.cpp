// What happens to a part, in order:
//   forward    recompute() runs it on a Sketch, a tape that notes which op reads what and keeps nothing;
//              a Segment holds its inputs and the notes; on the tape around it stand a node "recompute" and, behind it,
//              one "output" for each of its outputs
//   backward   each "output" leaves in the Segment the gradient that has come, dy;
//              "recompute" is next: the Segment runs the part again on a Rerun, a tape like any other, but for what
//              nobody reads (Sketch::needed), and this tape runs backward from the dys
// Where the next layer's product takes the gradient through the activation that ends the part (offer.h), the part runs
// again a little earlier, when that product asks for the offer.
#include "engine/recompute.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>
#include <utility>

#include "engine/backend.h"
#include "engine/offer.h"
#include "engine/scope.h"
#include "engine/tape_watch.h"

namespace tapedeck {
namespace {

constexpr const char *op_name = "recompute", *output_name = "output";

// Notes what a part does while it runs for the first time, and keeps nothing of it.
class Sketch : public Tape {
 public:
  bool made(const std::shared_ptr<GradSlot>& slot) const { return node_of(slot) < nodes().size(); }
  bool offers(const std::shared_ptr<GradSlot>& slot) const { return made(slot) && notes_[node_of(slot)].offers; }

  // What it reads that was there before, as often as it does.
  std::vector<std::shared_ptr<GradSlot>> outside() const {
    std::set<const GradSlot*> inside;
    for (const Node& node : nodes()) inside.insert(node.out.get());
    std::vector<std::shared_ptr<GradSlot>> slots;
    for (const Node& node : nodes())
      for (const auto& input : node.inputs)
        if (!inside.contains(input.get())) slots.push_back(input);
    return slots;
  }

  // Of each node, whether backward reads its output, or something that is made of it.
  std::vector<bool> needed() const {
    std::vector<bool> result(nodes().size());
    std::set<const GradSlot*> read;
    for (size_t i = nodes().size(); i-- > 0;) {
      const Node& node = nodes()[i];
      read.insert(notes_[i].kept.begin(), notes_[i].kept.end());
      result[i] = notes_[i].keeps_others || read.contains(node.out.get());
      if (!result[i] && notes_[i].asks) continue;  // an op that does not ask computes, and reads its inputs
      for (const auto& input : node.inputs) read.insert(input.get());
    }
    return result;
  }

 private:
  struct Note {
    std::vector<const GradSlot*> kept;
    bool keeps_others, offers, asks;  // asks: whether its result is needed
  };
  bool needs_next() const override { return asked_ = true; }
  void add(Node node, const Keeps& keeps) override {
    const bool runs_again = node.op == op_name;  // a part inside: it reads whatever it holds
    notes_.push_back({keeps.slots, keeps.others || runs_again, node.offer != nullptr, std::exchange(asked_, false)});
    node.saved_bytes = 0;
    node.backward = nullptr;
    node.offer = nullptr;
    node.out->recipe = nullptr;
    Tape::add(std::move(node), keeps);
  }
  size_t node_of(const std::shared_ptr<GradSlot>& slot) const {
    const auto is_it = [&](const Node& node) { return node.out == slot; };
    return static_cast<size_t>(std::find_if(nodes().begin(), nodes().end(), is_it) - nodes().begin());
  }
  std::vector<Note> notes_;
  mutable bool asked_ = false;
};

// Records a part that runs again.
class Rerun : public Tape {
 public:
  explicit Rerun(const std::vector<bool>& needed) : needed_(needed) {}
  using Tape::stop;

 private:
  bool needs_next() const override { return nodes().size() >= needed_.size() || needed_[nodes().size()]; }
  const std::vector<bool>& needed_;
};

// While it lives, nobody watches the tapes of its thread: what a part makes when it runs again has been seen, and some
// of it is not made at all.
struct Unwatched {
  Unwatched() = default;
  ~Unwatched() { TapeWatch::current() = watch; }
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
  TapeWatch* const watch = std::exchange(TapeWatch::current(), nullptr);
};

// A part between its first run and its backward pass.
class Segment {
 public:
  struct Output {
    size_t place;                    // among the part's outputs
    std::shared_ptr<GradSlot> slot;  // of what the rest of the model got
    Tensor dy;
  };

  Segment(const Part& part, const std::vector<Tensor>& inputs, const Sketch& sketch)
      : outside(sketch.outside()),
        part_(part),
        needed_(sketch.needed()),
        where_(Scope::path()),
        device_(inputs.empty() ? Device::cpu : inputs[0].device()) {
    for (const Tensor& x : inputs) {
      inputs_.push_back(keep(x));
      slots_.push_back(x.grad);
    }
  }

  // What made the output offers to make of its gradient. Runs the part again now.
  std::shared_ptr<Offer> offer_of(size_t output) {
    run_again();
    const auto& slot = again_[outputs[output].place].grad;
    return std::find_if(tape_->nodes().begin(), tape_->nodes().end(), [&](const Node& n) { return n.out == slot; })
        ->offer;
  }

  void backward() {
    run_again();
    std::vector<Tensor> ys, dys;
    for (Output& output : outputs) {
      ys.push_back(again_[output.place]);
      dys.push_back(std::exchange(output.dy, {}));
    }
    again_.clear();
    tape_->backward(std::move(ys), std::move(dys));
  }

  std::vector<Output> outputs;
  const std::vector<std::shared_ptr<GradSlot>> outside;

 private:
  void run_again() {
    if (tape_) return;
    const ScopeOf scope(where_);
    const RecomputeClock::Timed timed(device_);
    for (const auto& slot : outside) --slot->uses;  // else they would count twice
    std::vector<Tensor> xs;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      xs.push_back(*inputs_[i]);
      xs.back().grad = slots_[i];  // gradients gather there at once
    }
    auto tape = std::make_unique<Rerun>(needed_);
    {
      const Unwatched unwatched;
      again_ = part_(xs);
    }
    tape->stop();
    CHECK(tape->nodes().size() == needed_.size(),
          "recompute: the part recorded {} ops when it ran first and {} now: it must do the same each time",
          needed_.size(), tape->nodes().size());
    for (const Output& output : outputs) again_[output.place].grad->uses += output.slot->uses;
    inputs_.clear();
    tape_ = std::move(tape);
  }

  const Part part_;
  const std::vector<bool> needed_;
  const std::string where_;
  const Device device_;
  std::vector<Kept> inputs_;
  std::vector<std::shared_ptr<GradSlot>> slots_;
  std::vector<Tensor> again_;  // its outputs
  std::unique_ptr<Rerun> tape_;
};

Tensor with_slot(const std::shared_ptr<GradSlot>& slot) {
  Tensor x;
  x.grad = slot;
  return x;
}

// What a part has put out when it ran first.
struct Outputs {
  struct Made {
    size_t place;  // among the outputs
    bool offered;  // a consumer may take the offer of what made it
  };
  std::vector<Tensor> ys;
  std::vector<Made> made;       // by the part, each once; not an input that it gives back
  std::vector<size_t> same_as;  // of each output, the place where it stands first

  Outputs(std::vector<Tensor> all, const Sketch& sketch) : ys(std::move(all)) {
    for (size_t i = 0; i < ys.size(); ++i) {
      const auto first = std::find_if(ys.begin(), ys.end(), [&](const Tensor& y) { return y.grad == ys[i].grad; });
      same_as.push_back(ys[i].grad ? static_cast<size_t>(first - ys.begin()) : i);
      if (ys[i].grad && sketch.made(ys[i].grad) && same_as[i] == i)
        made.push_back({i, ys[i].grad->uses == 0 && sketch.offers(ys[i].grad)});
    }
  }
};

// Records the node of a part, which reads what the part read. Returns the tensor without numbers that its outputs read.
Tensor record_part(const std::shared_ptr<Segment>& segment, const Tensor& nothing) {
  std::vector<Tensor> used;
  for (const auto& slot : segment->outside) {
    --slot->uses;  // counted when the part ran; record counts again
    used.push_back(with_slot(slot));
  }
  std::vector<const Tensor*> reads;
  for (const Tensor& x : used) reads.push_back(&x);
  return record(op_name, nothing, reads, [segment](const Tensor&) { segment->backward(); });
}

// y as output i of the part: hands the gradient that has come to the segment.
Tensor record_output(const std::shared_ptr<Segment>& segment, const Tensor& y, const Outputs::Made& made,
                     const Tensor& link, const Tensor& nothing) {
  const size_t i = segment->outputs.size();
  const auto pass_on = [segment, i, nothing, link = want(link)](const Tensor& dy) {
    segment->outputs[i].dy = dy;
    if (link.fresh()) link.give(nothing);
  };
  std::shared_ptr<Offer> offer;
  if (made.offered)
    offer = std::make_shared<Offer>(Offer{
        .epilogue = Epilogue::none, .aux = keep({}), .output = keep({}), .dbias = want({}), .behind = [segment, i] {
          return segment->offer_of(i);
        }});
  const Tensor out = record(output_name, y, {&link}, pass_on, offer);
  segment->outputs.push_back({made.place, out.grad, {}});
  return out;
}

}  // namespace

bool of_recompute(const char* op) { return op == op_name || op == output_name; }

std::vector<Tensor> recompute(const Part& part, const std::vector<Tensor>& inputs) {
  if (!recording()) return part(inputs);
  std::shared_ptr<Segment> segment;
  std::optional<Outputs> outputs;
  {
    const Sketch sketch;
    outputs.emplace(part(inputs), sketch);
    if (outputs->made.empty()) return outputs->ys;
    segment = std::make_shared<Segment>(part, inputs, sketch);
  }
  std::vector<Tensor>& ys = outputs->ys;
  Tensor nothing;
  nothing.shape = ys[outputs->made[0].place].shape, nothing.dtype = ys[outputs->made[0].place].dtype;
  const Tensor link = record_part(segment, nothing);
  for (const Outputs::Made& made : outputs->made)
    ys[made.place] = record_output(segment, ys[made.place], made, link, nothing);
  for (size_t i = 0; i < ys.size(); ++i) ys[i] = ys[outputs->same_as[i]];
  return ys;
}

Tensor recompute(const std::function<Tensor(const Tensor&)>& part, const Tensor& x) {
  return recompute([part](const std::vector<Tensor>& xs) { return std::vector{part(xs[0])}; }, std::vector{x})[0];
}

namespace {
bool& remaking_of_thread() {
  thread_local bool on = false;
  return on;
}
}  // namespace

Remaking::Remaking(bool on) : outer_(std::exchange(remaking_of_thread(), on)) {}
Remaking::~Remaking() { remaking_of_thread() = outer_; }
bool remaking() { return remaking_of_thread() && recording(); }

RecomputeClock*& RecomputeClock::current() {
  thread_local RecomputeClock* clock = nullptr;
  return clock;
}
RecomputeClock::RecomputeClock() : outer_(std::exchange(current(), this)) {}
RecomputeClock::~RecomputeClock() { current() = outer_; }

RecomputeClock::Timed::Timed(Device device) : clock_(current()), device_(device) {
  if (clock_) start_ = now();
}
RecomputeClock::Timed::~Timed() {
  if (clock_) clock_->seconds_ += now() - start_;
}
double RecomputeClock::Timed::now() const {
  backend(device_).sync_quietly();
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tapedeck
