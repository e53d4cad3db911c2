// The CPU: host memory, where everything has happened when a call returns.
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <new>

#include "engine/backends.h"
#include "engine/gemm_devices.h"

namespace tapedeck {
namespace {

struct Moment final : Event {
  std::chrono::steady_clock::time_point at;
};

class CpuBackend final : public Backend {
 public:
  Arena& arena() override { return arena_; }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memmove(to, from, bytes);
  }
  void gemm(const Gemm& g) override { gemm_on_cpu(g); }
  void sync() override {}
  void launched(const char*) override {}

  // The queues of a device that has always done everything already.
  void* pin(size_t bytes) override { return ::operator new(bytes, std::align_val_t(Arena::alignment)); }
  void unpin(void* memory) noexcept override { ::operator delete(memory, std::align_val_t(Arena::alignment)); }
  void copy_later(Queue, void* to, const void* from, size_t bytes) override { copy(to, from, bytes); }
  std::unique_ptr<Event> event() override { return std::make_unique<Moment>(); }
  void record(Event& event, Queue) override { dynamic_cast<Moment&>(event).at = std::chrono::steady_clock::now(); }
  void wait(Queue, const Event&) override {}
  void wait(const Event&) override {}
  double seconds(const Event& from, const Event& to) override {
    return std::chrono::duration<double>(dynamic_cast<const Moment&>(to).at - dynamic_cast<const Moment&>(from).at)
        .count();
  }

 private:
  Arena arena_{"cpu", static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE)), false};
};

}  // namespace

// Never destroyed: tensors in static variables of other files may outlive any order of destruction.
Backend& cpu_backend() {
  static Backend& backend = *new CpuBackend;
  return backend;
}

}  // namespace tapedeck
