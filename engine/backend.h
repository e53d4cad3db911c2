// Backend: what differs between devices and is chosen at run time. Kernels (map, each, rows) are in launch.h.
//
// A device works through two queues. Kernels, gemm, copy() and fill run on `compute`, in the order they were asked for;
// `transfer` copies beside them, for a loader. An event orders the two. On the CPU everything has happened when the
// call returns; on a GPU, and on `emulated` in its deferred mode, only when the host waits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/arena.h"
#include "engine/device.h"
#include "engine/gemm.h"

namespace tapedeck {

enum class Queue : uint8_t { compute, transfer };

class Event {  // a place in a queue's work
 public:
  virtual ~Event() = default;
};

class Graph {  // captured work
 public:
  virtual ~Graph() = default;
  virtual void replay() = 0;  // on the compute queue, with the arguments it was captured with
  virtual int64_t nodes() const = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Arena& arena() = 0;
  virtual void gemm(const Gemm& g) = 0;
  virtual void launched(const char* kernel) = 0;  // called after each kernel: where a device checks for faults
  virtual void sync() = 0;                        // returns when everything asked so far, of any queue, has happened
  // For destructors: the same, but what fails is thrown by whoever waits next. While capturing it waits for nothing.
  virtual void sync_quietly() noexcept;

  // On the compute queue; either side may be the host's memory, and such a copy has happened when the call returns.
  // Throws Error while capturing where a side is the host's.
  virtual void copy(void* to, const void* from, size_t bytes) = 0;

  // Host memory that queued copies read and write, and kernels too. unpin() waits for nobody: see PinnedBuffer.
  virtual void* pin(size_t bytes) = 0;
  virtual void unpin(void* memory) noexcept = 0;
  // A copy that has happened when the queue gets there. Its host side must be pinned and stay as it is until then.
  virtual void copy_later(Queue queue, void* to, const void* from, size_t bytes) = 0;

  virtual std::unique_ptr<Event> event() = 0;
  virtual void record(Event& event, Queue queue) = 0;      // the event is what the queue has been asked for by now
  virtual void wait(Queue queue, const Event& event) = 0;  // what the queue is asked for from now on comes after it
  virtual void wait(const Event& event) = 0;               // the host waits
  virtual double seconds(const Event& from, const Event& to) = 0;  // between two events that have happened

  virtual bool can_capture() const { return false; }
  virtual bool capturing() const { return false; }
  // Runs `work` with the compute queue recording instead of running. Work on the transfer queue is recorded as well
  // once it waits for an event of the capture, and must be joined before the end. What `work` throws ends the capture.
  virtual std::unique_ptr<Graph> capture(const std::function<void()>& work);
};

// Throws the Error that whoever reads or waits while a step is captured gets; `what`: "copy", "sync", …
[[noreturn]] void refuse_while_capturing(const char* what);

Backend& backend(Device device);  // throws Error when this machine or build has no such device

}  // namespace tapedeck
