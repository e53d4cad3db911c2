#include "engine/emulation/streams.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <set>
#include <utility>

#include "engine/check.h"
#include "engine/emulation/block_engine.h"
#include "engine/emulation/race_detector.h"

namespace tapedeck::emulation {
namespace {

void join(Clock& to, const Clock& from) {
  for (size_t q = 0; q < to.size(); ++q) to[q] = std::max(to[q], from[q]);
}

uint64_t checksum(const char* p, size_t bytes) {  // FNV-1a
  uint64_t hash = 14695981039346656037u;
  for (size_t i = 0; i < bytes; ++i) hash = (hash ^ static_cast<unsigned char>(p[i])) * 1099511628211u;
  return hash;
}

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

void Streams::set_mode(Mode mode) noexcept {
  std::lock_guard lock(mutex_);
  drain_quietly();
  mode_ = mode;
}

Mode Streams::mode() const {
  std::lock_guard lock(mutex_);
  return mode_;
}

void Streams::use_logical_time(bool on) noexcept {
  std::lock_guard lock(mutex_);
  drain_quietly();
  logical_time_ = on;
}

bool Streams::capturing() const {
  std::lock_guard lock(mutex_);
  return capture_ != nullptr;
}

// ---- Asking ---------------------------------------------------------------------------------------------------------

void Streams::ask(Queue queue, Work work) {
  std::lock_guard lock(mutex_);
  Line& l = line(queue);
  if (l.capturing) {
    capture_->push_back({std::move(work), l.last});
    l.last = {static_cast<int>(capture_->size()) - 1};
    return;
  }
  enqueue(queue, std::move(work));
}

void Streams::enqueue(Queue queue, Work work, StreamEvent::Place wait_for) {
  Line& l = line(queue);
  join(l.clock, host_);
  l.clock[static_cast<size_t>(queue)] = ++l.asked;
  const uint64_t sum = checksum(work.source, work.source_bytes);
  l.waiting.push_back({std::move(work), next_sequence_++, wait_for, l.clock, sum});
  if (mode_ == Mode::eager) advance(queue, l.asked);
}

void Streams::record(StreamEvent& event, Queue queue) {
  std::lock_guard lock(mutex_);
  Line& l = line(queue);
  event.captured = l.capturing;
  if (l.capturing) {
    event.nodes = l.last;
    return;
  }
  event.seconds = std::make_shared<std::optional<double>>();  // an earlier record of it counts no more
  const auto note = [this, seconds = event.seconds] {
    *seconds = logical_time_ ? 1e-6 * static_cast<double>(ticks_) : now();
  };
  enqueue(queue, {"record", note, {}, nullptr, 0, false});
  event.place = {queue, l.asked};
  event.clock = l.clock;
}

void Streams::wait(Queue queue, const StreamEvent& event) {
  std::lock_guard lock(mutex_);
  Line& l = line(queue);
  if (event.captured) {
    CHECK(capture_, "wait: this event was recorded in a capture that has ended: record it again");
    if (!l.capturing) l.capturing = true, l.last.clear();  // the queue joins the capture
    for (const int node : event.nodes)
      if (std::find(l.last.begin(), l.last.end(), node) == l.last.end()) l.last.push_back(node);
    return;
  }
  CHECK(!l.capturing, "wait: a captured queue cannot wait for an event from outside of the capture");
  if (event.place.position == 0) return;  // never recorded
  join(l.clock, event.clock);
  enqueue(queue, {"wait", {}, {}}, event.place);
}

// ---- Running --------------------------------------------------------------------------------------------------------

void Streams::run_front(Queue queue) {
  Line& l = line(queue);
  const Operation op = std::move(l.waiting.front());
  l.waiting.pop_front();
  ++l.done;
  begin_operation(op.work.what, static_cast<uint32_t>(queue), l.done, op.clock);
  try {
    if (op.work.source) {
      CHECK(pinned(op.work.source, op.work.source_bytes),
            "{}: its pinned source was freed before it ran: wait for an event behind it first", op.work.what);
      CHECK(checksum(op.work.source, op.work.source_bytes) == op.checksum,
            "{}: its pinned source was written to before it ran: wait for an event behind it first", op.work.what);
    }
    if (op.work.run) op.work.run();
    if (op.work.run && op.work.ticks) ++ticks_;
  } catch (...) {
    drop_all();
    throw;
  }
}

// Runs what this place of the queue needs, and nothing else.
void Streams::advance(Queue queue, uint32_t position) {
  Line& l = line(queue);
  while (l.done < position && !l.waiting.empty()) {
    const StreamEvent::Place wait_for = l.waiting.front().wait_for;
    if (wait_for.position > 0) advance(wait_for.queue, wait_for.position);
    run_front(queue);
  }
}

void Streams::run_all() {
  while (true) {
    std::optional<Queue> next;
    for (const Queue queue : {Queue::compute, Queue::transfer}) {
      const Line& l = line(queue);
      if (l.waiting.empty()) continue;
      const StreamEvent::Place wait_for = l.waiting.front().wait_for;
      if (wait_for.position > line(wait_for.queue).done) continue;
      const bool earlier = next && l.waiting.front().sequence < line(*next).waiting.front().sequence;
      if (!next || earlier == (options().order == Order::forward)) next = queue;
    }
    if (!next) return;
    run_front(*next);
  }
}

void Streams::drop_all() noexcept {
  for (Line& l : lines_) l.waiting.clear(), l.done = l.asked;
}

void Streams::begin_wait(const char* what) {
  if (capture_) refuse_while_capturing(what);
  if (!unheard_) return;
  drop_all();
  std::rethrow_exception(std::exchange(unheard_, nullptr));
}

void Streams::wait(const StreamEvent& event) {
  std::lock_guard lock(mutex_);
  begin_wait("wait");
  advance(event.place.queue, event.place.position);
  if (event.place.position > 0) join(host_, event.clock);
}

void Streams::finish(Queue queue) {
  std::lock_guard lock(mutex_);
  begin_wait("wait");
  Line& l = line(queue);
  advance(queue, l.asked);
  join(host_, l.clock);
}

void Streams::drain() {
  std::lock_guard lock(mutex_);
  begin_wait("sync");
  run_all();
  for (const Line& l : lines_) join(host_, l.clock);
}

void Streams::drain_quietly() noexcept {
  std::lock_guard lock(mutex_);
  if (capture_ || unheard_) return;
  try {
    drain();
  } catch (...) {
    unheard_ = std::current_exception();
  }
}

// ---- Capture and replay ---------------------------------------------------------------------------------------------

std::unique_ptr<StreamGraph> Streams::capture(const std::function<void()>& work) {
  std::lock_guard lock(mutex_);
  CHECK(!capture_, "capture: a step is being captured already");
  std::vector<Node> nodes;
  capture_ = &nodes;
  struct End {
    Streams& s;
    ~End() {
      s.capture_ = nullptr;
      for (Line& l : s.lines_) l.capturing = false, l.last.clear();
    }
  };
  {
    const End end{*this};
    line(Queue::compute).capturing = true;
    work();
    check_joined();
  }
  return std::unique_ptr<StreamGraph>(new StreamGraph(*this, std::move(nodes)));
}

void Streams::check_joined() const {
  std::vector<bool> joined(capture_->size());
  std::vector<int> todo = lines_[static_cast<int>(Queue::compute)].last;
  while (!todo.empty()) {
    const int node = todo.back();
    todo.pop_back();
    if (joined[node]) continue;
    joined[node] = true;
    todo.insert(todo.end(), (*capture_)[node].after.begin(), (*capture_)[node].after.end());
  }
  const auto lost = std::find(joined.begin(), joined.end(), false);
  CHECK(lost == joined.end(),
        "capture: ends while the transfer queue is not joined ({}): record an event there, and let compute wait for it",
        (*capture_)[lost - joined.begin()].work.what);
}

// Nodes in an order that their dependencies allow: of those that could go next the first, or the last.
void StreamGraph::replay() {
  std::lock_guard lock(streams_.mutex_);
  CHECK(!streams_.capture_, "replay: a step is being captured");
  std::vector<size_t> missing(nodes_.size());
  std::vector<std::vector<int>> next(nodes_.size());
  std::set<int> ready;
  for (int i = 0; i < static_cast<int>(nodes_.size()); ++i) {
    missing[i] = nodes_[i].after.size();
    for (const int before : nodes_[i].after) next[before].push_back(i);
    if (missing[i] == 0) ready.insert(i);
  }
  while (!ready.empty()) {
    const auto chosen = options().order == Order::forward ? ready.begin() : std::prev(ready.end());
    const int node = *chosen;
    ready.erase(chosen);
    for (const int after : next[node])
      if (--missing[after] == 0) ready.insert(after);
    streams_.enqueue(Queue::compute, nodes_[node].work);
  }
}

std::string StreamGraph::difference(const StreamGraph& other) const {
  if (nodes_.size() != other.nodes_.size()) return text("{} nodes, then {}", nodes_.size(), other.nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Work &a = nodes_[i].work, &b = other.nodes_[i].work;
    if (std::strcmp(a.what, b.what) != 0) return text("node {} is {}, then {}", i, a.what, b.what);
    if (a.arguments != b.arguments) return text("node {}, {}, is given other arguments", i, a.what);
  }
  return "";
}

// ---- Pinned memory and copies ---------------------------------------------------------------------------------------

void* Streams::pin(size_t bytes) {
  constexpr size_t page = 4096;
  auto* const memory = static_cast<char*>(std::aligned_alloc(page, (bytes + page - 1) / page * page));
  if (!memory) throw std::bad_alloc();
  std::lock_guard lock(mutex_);
  pinned_[memory] = bytes;
  return memory;
}

void Streams::unpin(void* memory) noexcept {
  std::lock_guard lock(mutex_);
  pinned_.erase(static_cast<const char*>(memory));
  std::free(memory);
}

bool Streams::pinned(const void* p, size_t bytes) const {
  const auto* const begin = static_cast<const char*>(p);
  auto range = pinned_.upper_bound(begin);
  if (range == pinned_.begin()) return false;
  --range;
  return begin + bytes <= range->first + range->second;
}

bool Streams::read_later(const void* p, size_t bytes) const {
  const auto* const begin = static_cast<const char*>(p);
  for (const Line& l : lines_)
    for (const Operation& op : l.waiting)
      if (op.work.source && op.work.source < begin + bytes && begin < op.work.source + op.work.source_bytes)
        return true;
  return false;
}

void Streams::copy(Queue queue, void* to, const void* from, size_t bytes, bool to_host, bool from_host) {
  std::lock_guard lock(mutex_);
  CHECK(!to_host || pinned(to, bytes), "copy_later: the host's memory it writes is not pinned");
  CHECK(!from_host || pinned(from, bytes), "copy_later: the host's memory it reads is not pinned");
  if (to_host && !line(queue).capturing && !read_later(to, bytes)) std::memset(to, 0xff, bytes);
  Work work{to_host     ? "copy to the host"
            : from_host ? "copy from the host"
                        : "copy",
            [this, to, from, bytes, to_host] {
              CHECK(!to_host || pinned(to, bytes), "copy to the host: its memory was freed before it ran");
              device_copy(to, from, bytes);
              std::memcpy(to, from, bytes);
            },
            {}};
  if (from_host) work.source = static_cast<const char*>(from), work.source_bytes = bytes;
  ask(queue, std::move(work));
}

}  // namespace tapedeck::emulation
