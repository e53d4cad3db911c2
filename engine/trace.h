// Tracer: what a thread does while it is traced, as a tree of spans whose own times add up to the whole by
// construction.
//
// Ops say once, where they end (record() of tape.h), what they were. A span of an op therefore goes from the boundary
// before it (the end of the op before, the begin or end of a range) to its end; what no op follows is its range's own
// time. Products, the nodes of a backward pass and other work that knows its begin are spans by themselves, inside of
// what asked for them. Off, every place costs one branch.
//
// On the CPU a moment is the host's clock. Other devices run later: there each moment also asks for an event, and the
// spans' times are what lies between these in the device's own time, read once it has got there. On the
// emulated device that may be a logical clock (LogicalTime in emulation/streams.h). Where the device tells of each
// kernel (kernel_times.h), a moment is a mark of what is asked for from then on instead, and no event is needed.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/backend.h"
#include "engine/graph_times.h"

namespace tapedeck {

class TracedBeside;
struct Tensor;

enum class Way : uint8_t { forward, backward, again, none };  // again: recomputed in backward
const char* name(Way way);                                    // "forward", …, ""

struct Span {
  enum class Kind : uint8_t { range, scope, op, product };  // scope: a range whose name ends its path
  Kind kind = Kind::range;
  Way way = Way::none;
  int32_t name = 0, where = 0;  // Tracer::text: "softmax" and the layer, "mlp.hidden0"
  int32_t parent = -1;          // -1: a step
  int32_t begin = 0, end = 0;   // Tracer::moments
  int64_t elements = 0;         // of an op's largest input or output, or whose gradient it takes
  double flops = 0, bytes = 0;  // counted, without those of spans inside; each number read once and written once
  int64_t saved = 0;            // bytes kept for backward
  int64_t m = 0, n = 0, k = 0;  // of a product
  bool replayed = false;        // as a part of a graph: only the device knows when
};

struct TraceMoment {
  double host = 0;    // seconds of the tracer's clock
  double device = 0;  // of the device's since the first moment; the host's on the CPU; of its work, by kernels
  size_t bytes = 0;   // of the device's arena in use
  size_t peak = 0;    // the most that was since the moment before: with what an op gave back within itself
  int64_t saved = 0;  // of these what tapes keep for backward
  std::shared_ptr<Event> event = nullptr;
  uint64_t mark = 0;  // of what is asked for from now on, by kernels
  double idle = 0;    // seconds until now in which nothing ran, by kernels
};

// Told of ranges as they begin and end: a tool that watches from outside, such as NVIDIA's nsys. Of an op that only
// record() names it hears at its end.
struct OutsideTool {
  void (*push)(const char* name);
  void (*pop)();
  void (*mark)(const char* name);
};

struct SpanBeside {  // of another thread, by the host's clock; of what goes on behind a step, the part in it
  const char* name;
  int thread = 0;  // from 1, in the order in which they appear
  double begin = 0, end = 0;
};

class Tracer {
 public:
  using Clock = std::function<double()>;  // seconds
  // A span more than `limit` is not kept: its time is then its surroundings' own.
  explicit Tracer(Device device, Clock clock = nullptr, size_t limit = 1 << 20);
  explicit Tracer(const OutsideTool& tool);  // keeps nothing

  class On {  // this thread is traced while it lives
   public:
    explicit On(Tracer& tracer);
    ~On();
    On(const On&) = delete;
    On& operator=(const On&) = delete;

   private:
    Tracer* outer_;
  };
  static Tracer* current() { return current_; }  // null: this thread is not traced

  // A span that begins now and contains what comes until it is closed. `where` empty: Scope::path().
  void open(Span::Kind kind, std::string_view name, Way way = Way::none, std::string_view where = {});
  void close();
  void close_all();  // after an exception
  bool within() const { return !frames_.empty() || told_ > 0; }

  // From the device's own word of each kernel instead of events; null: from events. Outside of every span.
  void record_kernels(KernelRecorder* recorder);
  void take_kernels();  // of the step that has ended; the device must have got there
  // `launch` replays what was captured under another tracer of the same recorder, in one span of its own: here it is
  // done again, by the kernels of this replay.
  void replay(const Tracer& captured, const std::function<void()>& launch);

  // For record(): an op ends here. inputs and output may be empty of memory.
  void op(const char* name, const std::vector<const Tensor*>& inputs, const Tensor& output);
  void product(const Gemm& g);  // what the span just opened is

  // Of the op that is about to end, or is open:
  void count(double flops) { pending_flops() += flops; }  // where a number of elements does not tell
  void moves(double bytes);   // takes the place of what follows from inputs and output; its products' are not in it
  void writes(double bytes);  // of a gradient
  void reads(double bytes);   // of what its backward was given and what it kept
  void elements(int64_t count);
  void shares_with_next() { shares_ = true; }  // the op about to end is part of the next one's kernel

  // A tape keeps so many bytes more for backward, of the op that ended last, or fewer where it is negative.
  void saved(int64_t bytes);

  void finish();  // waits for the device; then the moments' times are known
  // Forgets spans and moments but for the first so many, outside of every span. The texts stay.
  void clear(size_t spans = 0, size_t moments = 0);

  const std::vector<Span>& spans() const { return spans_; }  // a parent may stand behind its children
  const std::vector<TraceMoment>& moments() const { return moments_; }
  const std::vector<SpanBeside>& beside() const { return beside_; }  // in no sum; read once the other threads rest
  const std::string& text(int32_t id) const { return texts_[static_cast<size_t>(id)]; }
  double seconds(const Span& span) const;   // of the device
  std::vector<double> own_seconds() const;  // of each span: without the spans inside it
  Device device() const { return device_; }
  bool full() const { return full_; }

  bool by_kernels() const { return recorder_ != nullptr; }
  const std::vector<KernelRecord>& kernels() const { return kernels_; }
  int32_t moment_of(const KernelRecord& kernel) const;     // behind which it was asked for; -1: by no span
  double idle_seconds(const Span& span) const;             // in which nothing ran while the host was in it
  double seconds_of_nobody() const { return of_nobody_; }  // in which nothing ran but what no span asked for

 private:
  struct Frame {
    int32_t span;          // -1: not kept
    int32_t mark;          // the last boundary within
    size_t first_pending;  // products since then, in pending_
    Span::Kind kind;
    Way way;      // of what ends in it
    bool inside;  // a node of a backward pass
    double flops = 0, moved = 0, written = 0, read = 0;
    int64_t elements = 0;
    bool moves = false, has_products = false;
  };
  int32_t moment();
  int32_t intern(std::string_view text);
  int32_t add(const Span& span);
  void settle(int32_t parent, Way way);  // whose the pending products are
  double& pending_flops();
  double bytes_of(const Frame& frame, bool products) const;
  static void watch(Tracer* tracer);
  void add(const TracedBeside& work);  // until now
  void finish_by_kernels();
  void add_replayed(const Tracer& captured);

  friend class TracedBeside;
  static thread_local constinit Tracer* current_;
  const OutsideTool* const tool_;  // null: none
  const bool keeps_ = true;
  int64_t told_ = 0;  // ranges that the tool is in, where nothing is kept
  const Device device_;
  Backend& backend_;
  const Clock clock_;
  const size_t limit_;
  std::vector<Span> spans_;
  std::vector<TraceMoment> moments_;
  std::vector<SpanBeside> beside_;
  std::vector<uint64_t> threads_;
  std::vector<Frame> frames_;
  std::vector<int32_t> pending_;
  std::vector<std::string> texts_;
  std::unordered_map<std::string, int32_t> ids_;
  int64_t saved_ = 0;
  int32_t last_op_ = -1;
  KernelRecorder* recorder_ = nullptr;
  std::vector<KernelRecord> kernels_;
  std::vector<size_t> kernels_until_;  // how many there are up to the end of each step
  std::vector<Replay> replays_;        // whose kernels are not taken yet
  double of_nobody_ = 0;
  double nowhere_ = 0;
  bool shares_ = false, full_ = false;
};

// A range by a name of its own that is no part of a path: "forward". Scopes are ranges by themselves.
class Range {
 public:
  explicit Range(std::string_view name) : tracer_(Tracer::current()) {
    if (tracer_) tracer_->open(Span::Kind::range, name);
  }
  ~Range() {
    if (tracer_) tracer_->close();
  }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

 private:
  Tracer* tracer_;
};

// Work that no record() ends: an update, a value that is made again.
class TracedOp {
 public:
  explicit TracedOp(const char* name, Way way = Way::none, std::string_view where = {}) : tracer_(Tracer::current()) {
    if (tracer_ && !tracer_->within()) tracer_ = nullptr;
    if (tracer_) tracer_->open(Span::Kind::op, name, way, where);
  }
  ~TracedOp() {
    if (tracer_) tracer_->close();
  }
  TracedOp(const TracedOp&) = delete;
  TracedOp& operator=(const TracedOp&) = delete;
  Tracer* operator->() const { return tracer_; }
  explicit operator bool() const { return tracer_ != nullptr; }

 private:
  Tracer* tracer_;
};

class TracedProduct {
 public:
  explicit TracedProduct(const Gemm& g) : tracer_(Tracer::current()) {
    if (tracer_ && !tracer_->within()) tracer_ = nullptr;
    if (!tracer_) return;
    tracer_->open(Span::Kind::product, "gemm");
    tracer_->product(g);
  }
  ~TracedProduct() {
    if (tracer_) tracer_->close();
  }
  TracedProduct(const TracedProduct&) = delete;
  TracedProduct& operator=(const TracedProduct&) = delete;

 private:
  Tracer* tracer_;
};

// Work of another thread, such as loading ahead, while some thread is traced: a line of its own in the trace.
class TracedBeside {
 public:
  explicit TracedBeside(const char* name);
  ~TracedBeside();
  TracedBeside(const TracedBeside&) = delete;
  TracedBeside& operator=(const TracedBeside&) = delete;

 private:
  friend class Tracer;
  const char* const name_;
  const uint64_t thread_;
  double begin_ = 0;  // where somebody traces
};

// While it lives this thread's ranges are told to the tool that watches, if any does. Nothing is kept.
class ToldOutside {
 public:
  explicit ToldOutside(const OutsideTool* tool) {
    if (tool) on_.emplace(tracer_.emplace(*tool));
  }

 private:
  std::optional<Tracer> tracer_;
  std::optional<Tracer::On> on_;
};

// What an op knows better than its inputs' and output's sizes say.
inline void trace_moves(double bytes) {
  if (Tracer* const tracer = Tracer::current()) tracer->moves(bytes);
}
inline void trace_shares_with_next() {
  if (Tracer* const tracer = Tracer::current()) tracer->shares_with_next();
}
inline void trace_flops(double flops) {
  if (Tracer* const tracer = Tracer::current()) tracer->count(flops);
}

}  // namespace tapedeck
