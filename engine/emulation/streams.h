// The two queues of the emulated device, their events, and the graphs captured from them.
//
// In `eager` mode work runs when it is asked for, so that a debugger shows who asked. In `lazy` mode nothing runs
// before the host waits, and then only what that wait needs; where the whole device is waited for, queues that are
// free to go take turns so that the earliest work goes first, or, with Order::reverse, the latest. A missing event or
// wait that a GPU forgives most of the time then shows every time.
//
// What the host may get wrong is an Error: pinned memory written, read or freed while a copy still needs it (a copy's
// source is checksummed when it is asked for; its destination is filled with 0xFF until it runs), waiting while
// capturing, a forked queue that is not joined. After a failure all that waited is dropped, so that whoever has heard
// of it starts clean.
// Any thread may call any member; work runs under the device's lock, one thing at a time.
#pragma once
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/backend.h"

namespace tapedeck::emulation {

enum class Mode { eager, lazy };

// How far each queue had come: clock[q] operations of queue q happen before, or are, the one that holds it.
using Clock = std::vector<uint32_t>;

struct Work {
  const char* what;              // a kernel's name, "copy", …: for messages
  std::function<void()> run;     // may be empty: a place to wait at
  std::string arguments;         // what a kernel was given, byte for byte; see difference()
  const char* source = nullptr;  // pinned memory that it reads
  size_t source_bytes = 0;
  bool ticks = true;  // the logical clock
};

class StreamEvent final : public Event {
 public:
  struct Place {  // in a queue; position 0: never recorded
    Queue queue = Queue::compute;
    uint32_t position = 0;
  } place;
  Clock clock;
  std::shared_ptr<std::optional<double>> seconds;  // when it happened; null: never recorded
  bool captured = false;
  std::vector<int> nodes;  // of the capture: what it stands behind
};

class StreamGraph;

class Streams {
 public:
  void set_mode(Mode mode) noexcept;  // drains quietly first
  Mode mode() const;

  void ask(Queue queue, Work work);
  void record(StreamEvent& event, Queue queue);
  void wait(Queue queue, const StreamEvent& event);
  void wait(const StreamEvent& event);  // the host; throws Error while capturing
  void finish(Queue queue);             // the host waits for what this queue has been asked for by now
  void drain();                         // the host waits for everything; throws Error while capturing
  void drain_quietly() noexcept;        // the same, but what fails is thrown by whoever waits next
  bool capturing() const;
  // Events then tell how much work has run: each kernel, product or copy takes a microsecond, the same in every run.
  void use_logical_time(bool on) noexcept;

  std::unique_ptr<StreamGraph> capture(const std::function<void()>& work);

  void* pin(size_t bytes);
  void unpin(void* memory) noexcept;
  void copy(Queue queue, void* to, const void* from, size_t bytes, bool to_host, bool from_host);

 private:
  friend class StreamGraph;
  struct Operation {
    Work work;
    uint64_t sequence;
    StreamEvent::Place wait_for;
    Clock clock;
    uint64_t checksum;
  };
  struct Line {  // one queue
    std::deque<Operation> waiting;
    uint32_t asked = 0, done = 0;
    Clock clock = Clock(queues);
    bool capturing = false;
    std::vector<int> last;  // while capturing: the nodes that the next one comes after
  };
  struct Node {
    Work work;
    std::vector<int> after;
  };
  static constexpr int queues = 2;

  Line& line(Queue queue) { return lines_[static_cast<int>(queue)]; }
  void enqueue(Queue queue, Work work, StreamEvent::Place wait_for = {});
  void advance(Queue queue, uint32_t position);
  void run_front(Queue queue);
  void run_all();
  void drop_all() noexcept;
  void begin_wait(const char* what);  // throws Error while capturing, and what failed while nobody could hear of it
  void check_joined() const;
  bool pinned(const void* p, size_t bytes) const;
  bool read_later(const void* p, size_t bytes) const;

  mutable std::recursive_mutex mutex_;  // recursive: work that runs may free tensors, and that asks for more work
  Mode mode_ = Mode::eager;
  Line lines_[queues];
  uint64_t next_sequence_ = 0;
  Clock host_ = Clock(queues);
  std::map<const char*, size_t> pinned_;
  std::vector<Node>* capture_ = nullptr;
  bool logical_time_ = false;
  uint64_t ticks_ = 0;
  std::exception_ptr unheard_;  // a failure that drain_quietly() met
};

class LogicalTime {  // while it lives
 public:
  explicit LogicalTime(Streams& streams) : streams_(streams) { streams.use_logical_time(true); }
  ~LogicalTime() { streams_.use_logical_time(false); }
  LogicalTime(const LogicalTime&) = delete;
  LogicalTime& operator=(const LogicalTime&) = delete;

 private:
  Streams& streams_;
};

class StreamGraph final : public Graph {
 public:
  void replay() override;
  int64_t nodes() const override { return static_cast<int64_t>(nodes_.size()); }
  // "" where the other graph was captured from the same calls with the same arguments, else the first difference: a
  // captured step that takes a number from the host, which every replay would use again, differs from the next one.
  std::string difference(const StreamGraph& other) const;

 private:
  friend class Streams;
  StreamGraph(Streams& streams, std::vector<Streams::Node> nodes) : streams_(streams), nodes_(std::move(nodes)) {}
  Streams& streams_;
  std::vector<Streams::Node> nodes_;
};

}  // namespace tapedeck::emulation
