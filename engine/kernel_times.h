// What a device ran and when, as it tells itself (on a GPU by CUPTI, engine/cuda/cupti_recorder.h), and to whom each of
// it belongs. Nothing here knows CUDA.
//
// Where spans are timed by events, an op's time holds what the device waited for between them. Here it is the time of
// the kernels, copies and fills that were asked for since its begin: of each record the interval of its thread is known
// in which it was asked for (its mark), and what lies between records is time without work.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tapedeck {

struct KernelRecord {
  enum class Kind : uint8_t { kernel, copy, fill };
  Kind kind = Kind::kernel;
  const char* name = "";       // stays as long as the program runs
  int64_t begin = 0, end = 0;  // nanoseconds of the host's steady clock
  int64_t asked = 0;           // when the host asked for it; 0: unknown
  uint32_t stream = 0;         // as the device numbers them
  uint32_t correlation = 0;    // of the call that asked for it; one call that replays a graph asks for many
  uint64_t graph_node = 0;     // 0: of no graph
  uint64_t mark = 0;           // 0: asked for outside of every interval, or by another thread
  uint64_t captured = 0;       // the mark that its graph's node was captured under; 0: unknown, or of no graph
};

class KernelRecorder {
 public:
  virtual ~KernelRecorder() = default;
  virtual std::string start() = 0;                // why it cannot; "" where it records from now on
  virtual std::vector<KernelRecord> take() = 0;   // what it has recorded; the device must have got there
  virtual int64_t lost() const { return 0; }      // records that it had no room for, ever
  virtual void stop() noexcept = 0;               // what was not taken is gone
  virtual void push(uint64_t mark) noexcept = 0;  // what this thread asks for from now on has this mark
  virtual void pop() noexcept = 0;
  // From now on, also while it is stopped: what is captured has the mark of its interval (KernelRecord::captured) each
  // time that it is replayed. Returns why it cannot, or "".
  virtual std::string follow_graphs() { return "this recorder does not follow graphs"; }

  uint64_t mark() {  // a new interval of this thread; marks grow
    unmark();
    push(++last_);
    marked_ = true;
    return last_;
  }
  uint64_t reserve() { return ++last_; }  // a mark of what was asked for already
  void unmark() {
    if (std::exchange(marked_, false)) pop();
  }

 private:
  uint64_t last_ = 0;
  bool marked_ = false;
};

struct DeviceWork {
  int64_t begin, end;
  int32_t owner;  // -1: nobody's
  bool kernel;
};
struct Shares {
  std::vector<int64_t> of_owner;                  // nanoseconds
  int64_t of_nobody = 0;                          // in which nothing ran but what nobody owns
  std::vector<std::pair<int64_t, int64_t>> gaps;  // in which nothing ran
};
// Shares [begin, end) out, each instant once, so that shares and gaps add up to the whole also where streams overlap:
// of what runs at once, what has an owner comes first, then a kernel before copies, then what began earlier.
Shares share_out(const std::vector<DeviceWork>& works, int64_t begin, int64_t end, size_t owners);

}  // namespace tapedeck
