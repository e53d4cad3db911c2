#include "engine/trace.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <utility>

#include "engine/gpu.h"
#include "engine/scope.h"
#include "engine/tensor.h"

namespace tapedeck {

const char* name(Way way) {
  constexpr const char* names[] = {"forward", "backward", "again", ""};
  return names[static_cast<int>(way)];
}

thread_local constinit Tracer* Tracer::current_ = nullptr;

namespace {
double steady() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
}  // namespace

Tracer::Tracer(Device device, Clock clock, size_t limit)
    : tool_(outside_tool()),
      device_(device),
      backend_(backend(device)),
      clock_(clock ? std::move(clock) : steady),
      limit_(limit) {}
Tracer::Tracer(const OutsideTool& tool)
    : tool_(&tool), keeps_(false), device_(Device::cpu), backend_(backend(device_)), clock_(steady), limit_(0) {}

namespace {
std::mutex watched_mutex;   // guards both
Tracer* watched = nullptr;  // whose step other threads work beside
std::vector<TracedBeside*> at_work;

uint64_t number_of_this_thread() {  // the system's own numbers go to new threads again
  static std::atomic<uint64_t> latest{0};
  static thread_local const uint64_t mine = ++latest;
  return mine;
}
}  // namespace

// What goes on from one step into the next is cut where the tracing pauses: it has a part in each.
void Tracer::watch(Tracer* tracer) {
  if (tracer && !tracer->keeps_) tracer = nullptr;
  const std::lock_guard lock(watched_mutex);
  for (TracedBeside* const work : at_work) {
    if (watched) watched->add(*work);
    if (tracer) work->begin_ = tracer->clock_();
  }
  watched = tracer;
}

void Tracer::add(const TracedBeside& work) {
  if (beside_.size() >= limit_) return;
  const auto me = std::find(threads_.begin(), threads_.end(), work.thread_);  // numbers that no later thread has again
  const auto place = me - threads_.begin();
  if (me == threads_.end()) threads_.push_back(work.thread_);
  beside_.push_back({work.name_, static_cast<int>(place) + 1, work.begin_, clock_()});
}

Tracer::On::On(Tracer& tracer) : outer_(std::exchange(current_, &tracer)) { watch(&tracer); }
Tracer::On::~On() { watch(current_ = outer_); }

TracedBeside::TracedBeside(const char* name) : name_(name), thread_(number_of_this_thread()) {
  const std::lock_guard lock(watched_mutex);
  at_work.push_back(this);
  if (watched) begin_ = watched->clock_();
}
TracedBeside::~TracedBeside() {
  const std::lock_guard lock(watched_mutex);
  at_work.erase(std::find(at_work.begin(), at_work.end(), this));
  if (watched) watched->add(*this);
}

int32_t Tracer::moment() {
  if (full_ && frames_.size() > 1) return static_cast<int32_t>(moments_.size()) - 1;  // but the step ends
  const double host = clock_();
  const Arena::Use use = backend_.arena().watch();
  TraceMoment now{host, 0, use.bytes, use.peak_bytes, saved_};
  if (recorder_) {
    now.mark = recorder_->mark();
  } else if (device_ != Device::cpu) {
    now.event = backend_.event();
    backend_.record(*now.event, Queue::compute);
  }
  moments_.push_back(std::move(now));
  return static_cast<int32_t>(moments_.size()) - 1;
}

int32_t Tracer::intern(std::string_view text) {
  const auto [found, is_new] = ids_.try_emplace(std::string(text), static_cast<int32_t>(texts_.size()));
  if (is_new) texts_.emplace_back(text);
  return found->second;
}

int32_t Tracer::add(const Span& span) {
  full_ = full_ || spans_.size() >= limit_;
  if (full_) return -1;
  spans_.push_back(span);
  return static_cast<int32_t>(spans_.size()) - 1;
}

void Tracer::settle(int32_t parent, Way way) {
  const size_t first = frames_.back().first_pending;
  for (size_t i = first; i < pending_.size(); ++i) {
    Span& product = spans_[static_cast<size_t>(pending_[i])];
    product.parent = parent;
    product.way = way;
  }
  pending_.resize(first);
}

void Tracer::open(Span::Kind kind, std::string_view name, Way way, std::string_view where) {
  if (tool_) {
    const char* const suffix = tapedeck::name(way);
    tool_->push((std::string(name) + (*suffix ? " " : "") + suffix).c_str());
  }
  if (!keeps_) return ++told_, void();
  const bool is_range = kind <= Span::Kind::scope;
  if (frames_.empty() && !is_range) return frames_.push_back({-1, -1, 0, kind, way, false});
  const int32_t now = frames_.size() > 0 && frames_.back().mark < 0 ? -1 : moment();
  if (now < 0) return frames_.push_back({-1, -1, pending_.size(), kind, way, false});
  int32_t parent = -1;
  bool inside = false;
  if (!frames_.empty()) {
    Frame& outer = frames_.back();
    inside = outer.inside || (outer.kind == Span::Kind::op && outer.way == Way::backward);
    if (kind != Span::Kind::product) settle(outer.span, outer.way);
    outer.has_products |= kind == Span::Kind::product;
    parent = outer.span;
  }
  const int32_t span = add({.kind = kind,
                            .way = way,
                            .name = intern(name),
                            .where = intern(where.empty() ? std::string_view(Scope::path()) : where),
                            .parent = parent,
                            .begin = now,
                            .end = now});
  if (is_range) way = inside ? Way::again : Way::forward;
  frames_.push_back({span >= 0 ? span : parent, now, pending_.size(), kind, way, inside});
}

double Tracer::bytes_of(const Frame& f, bool products) const {
  if (products || f.moves) return f.moved;
  return f.written > 0 ? f.written + f.read : 0;
}

void Tracer::close() {
  if (tool_) tool_->pop();
  if (!keeps_) return --told_, void();
  const Frame frame = frames_.back();
  if (frame.mark < 0) return frames_.pop_back();
  settle(frame.span, frame.way);
  int32_t now = static_cast<int32_t>(moments_.size()) - 1;
  try {
    now = moment();
  } catch (...) {  // destructors call this; a device that fails says so to whoever asks it next
    full_ = true;
  }
  frames_.pop_back();
  if (recorder_ && frames_.empty()) recorder_->unmark();
  const int32_t outer_span = frames_.empty() ? -1 : frames_.back().span;
  if (frame.span >= 0 && frame.span != outer_span) {
    Span& span = spans_[static_cast<size_t>(frame.span)];
    span.end = now;
    span.flops += frame.flops;
    span.elements += frame.elements;
    if (span.kind == Span::Kind::op) span.bytes += bytes_of(frame, frame.has_products);
    if (span.kind == Span::Kind::product) pending_.push_back(frame.span);
  }
  if (!frames_.empty() && frame.kind != Span::Kind::product) {
    Frame& outer = frames_.back();
    outer.mark = now;
    if (outer.kind <= Span::Kind::scope) outer.has_products = false;
  }
}

void Tracer::close_all() {
  while (within()) close();
  pending_.clear();
  saved_ = 0;
}

void Tracer::op(const char* name, const std::vector<const Tensor*>& inputs, const Tensor& output) {
  if (tool_) tool_->mark(name);
  const bool shares = std::exchange(shares_, false);
  if (frames_.empty() || frames_.back().mark < 0) return;
  Frame& frame = frames_.back();
  // An op inside the backward pass of another one is what recompute() runs again.
  const Way way =
      frame.inside || (frame.kind == Span::Kind::op && frame.way == Way::backward) ? Way::again : Way::forward;
  const int32_t now = shares ? frame.mark : moment();
  double read = 0;
  int64_t elements = output.data ? output.count() : 0;
  for (const Tensor* x : inputs)
    if (x->data) read += static_cast<double>(x->bytes()), elements = std::max(elements, x->count());
  const bool has_products = pending_.size() > frame.first_pending;
  const bool told = frame.moves || has_products;
  Span span{.kind = Span::Kind::op,
            .way = way,
            .name = intern(name),
            .where = intern(Scope::path()),
            .parent = frame.span,
            .begin = frame.mark,
            .end = now,
            .elements = elements};
  if (!shares) {
    span.flops = frame.flops;
    span.bytes = told ? frame.moved : read > 0 && output.data ? read + static_cast<double>(output.bytes()) : 0;
  }
  if (shares) span.elements = 0;
  const int32_t index = last_op_ = add(span);
  if (shares) return;
  settle(index >= 0 ? index : frame.span, way);
  frame.mark = now;
  frame.flops = frame.moved = 0;
  frame.moves = false;
}

void Tracer::product(const Gemm& g) {
  if (frames_.empty() || frames_.back().mark < 0 || frames_.back().kind != Span::Kind::product || full_) return;
  Span& span = spans_[static_cast<size_t>(frames_.back().span)];
  const double m = static_cast<double>(g.m), n = static_cast<double>(g.n), k = static_cast<double>(g.k);
  const double in = static_cast<double>(size_of(g.dtype)), out = static_cast<double>(size_of(g.type_of_c()));
  span.m = g.m, span.n = g.n, span.k = g.k;
  span.flops = static_cast<double>(g.batch) * 2 * m * n * k;
  span.bytes = static_cast<double>(g.batch) * (in * (m * k + k * n) + out * m * n * (g.beta != 0 ? 2 : 1)) +
               (g.bias ? out * n : 0) + (g.aux && !g.aux_is_mask() ? out * m * n : 0);
}

double& Tracer::pending_flops() { return frames_.empty() ? nowhere_ : frames_.back().flops; }
void Tracer::moves(double bytes) {
  if (frames_.empty()) return;
  frames_.back().moved += bytes;
  frames_.back().moves = true;
}
void Tracer::writes(double bytes) {
  if (!frames_.empty()) frames_.back().written += bytes;
}
void Tracer::reads(double bytes) {
  if (!frames_.empty()) frames_.back().read += bytes;
}
void Tracer::elements(int64_t count) {
  if (!frames_.empty()) frames_.back().elements += count;
}

void Tracer::saved(int64_t bytes) {
  saved_ += bytes;
  if (bytes <= 0 || last_op_ < 0) return;
  Span& op = spans_[static_cast<size_t>(last_op_)];
  op.saved += bytes;
  if (op.end == std::ssize(moments_) - 1) moments_.back().saved = saved_;
}

void Tracer::finish() {
  if (moments_.empty()) return;
  if (recorder_) return finish_by_kernels();
  if (device_ == Device::cpu) {
    for (TraceMoment& m : moments_) m.device = m.host - moments_.front().host;
    return;
  }
  backend_.wait(*moments_.back().event);
  const TraceMoment* before = &moments_.front();
  for (TraceMoment& m : moments_) {
    // From neighbour to neighbour: CUDA tells milliseconds as a float, which after 16 s is a microsecond off.
    m.device = before->device + backend_.seconds(*before->event, *m.event);
    before = &m;
    if (device_ == Device::emulated)
      m.host = moments_.front().host + m.device;  // how long it takes to emulate tells nothing
  }
}

void Tracer::clear(size_t spans, size_t moments) {
  spans_.resize(spans);
  moments_.resize(moments);
  pending_.clear();
  replays_.clear();
  const auto is_step = [](const Span& span) { return span.parent < 0; };
  const auto steps = static_cast<size_t>(std::count_if(spans_.begin(), spans_.end(), is_step));
  if (kernels_until_.size() > steps) kernels_until_.resize(steps);
  kernels_.resize(kernels_until_.empty() ? 0 : kernels_until_.back());
  const double last = moments_.empty() ? 0 : moments_.back().host;
  std::erase_if(beside_, [&](const SpanBeside& work) { return moments_.empty() || work.begin >= last; });
  saved_ = 0;
  last_op_ = -1;
  full_ = false;
}

double Tracer::seconds(const Span& span) const {
  return moments_[static_cast<size_t>(span.end)].device - moments_[static_cast<size_t>(span.begin)].device;
}

std::vector<double> Tracer::own_seconds() const {
  std::vector<double> own(spans_.size());
  for (size_t i = 0; i < spans_.size(); ++i) {
    own[i] += seconds(spans_[i]);
    if (spans_[i].parent >= 0) own[static_cast<size_t>(spans_[i].parent)] -= seconds(spans_[i]);
  }
  return own;
}

}  // namespace tapedeck
