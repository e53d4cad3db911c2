// The emulated device: checked memory (NaN when fresh, red zones looked at after every kernel) and two queues.
#include <cstring>

#include "engine/backends.h"
#include "engine/check.h"
#include "engine/emulation/emulated_device.h"
#include "engine/emulation/race_detector.h"
#include "engine/gemm_devices.h"

namespace tapedeck {
namespace {

using emulation::StreamEvent;
using emulation::Streams;

class EmulatedBackend final : public Backend {
 public:
  EmulatedBackend() {
    emulation::device_memory(arena_.slab(), arena_.capacity());
    arena_.guard_later([this](const char* what, std::function<void()> work) {
      streams.ask(Queue::compute, {what, std::move(work), {}, nullptr, 0, false});
    });
  }
  Arena& arena() override { return arena_; }

  void gemm(const Gemm& g) override {
    streams.ask(Queue::compute, {"gemm",
                                 [this, g] {
                                   gemm_emulated(g);
                                   check_red_zones("gemm");
                                 },
                                 emulation::bytes_of(g)});
  }
  void launched(const char*) override {}  // the red zones are looked at when the kernel has run
  void sync() override { streams.drain(); }
  void sync_quietly() noexcept override { streams.drain_quietly(); }

  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes == 0) return;
    const bool to_device = arena_.contains(to), from_device = arena_.contains(from);
    if (!(to_device && from_device) && streams.capturing()) refuse_while_capturing("copy");
    if (from_device) {
      streams.ask(Queue::compute, {"copy",
                                   [=] {
                                     emulation::device_copy(to, from, bytes);
                                     std::memmove(to, from, bytes);
                                   },
                                   {}});
      if (!to_device) streams.finish(Queue::compute);
    } else {  // a copy of the source, which may change as soon as this returns
      std::string kept(static_cast<const char*>(from), bytes);
      streams.ask(Queue::compute, {"copy from the host",
                                   [to, kept = std::move(kept)] {
                                     emulation::device_copy(to, kept.data(), kept.size());
                                     std::memcpy(to, kept.data(), kept.size());
                                   },
                                   {}});
    }
  }

  void* pin(size_t bytes) override { return streams.pin(bytes); }
  void unpin(void* memory) noexcept override { streams.unpin(memory); }
  void copy_later(Queue queue, void* to, const void* from, size_t bytes) override {
    streams.copy(queue, to, from, bytes, !arena_.contains(to), !arena_.contains(from));
  }

  std::unique_ptr<Event> event() override { return std::make_unique<StreamEvent>(); }
  void record(Event& event, Queue queue) override { streams.record(dynamic_cast<StreamEvent&>(event), queue); }
  void wait(Queue queue, const Event& event) override { streams.wait(queue, dynamic_cast<const StreamEvent&>(event)); }
  void wait(const Event& event) override { streams.wait(dynamic_cast<const StreamEvent&>(event)); }
  double seconds(const Event& from, const Event& to) override {
    const auto at = [](const Event& event) {
      const auto& seconds = dynamic_cast<const StreamEvent&>(event).seconds;
      CHECK(seconds && *seconds, "seconds: an event has not happened yet: wait for it before its time is read");
      return **seconds;
    };
    return at(to) - at(from);
  }

  bool can_capture() const override { return true; }
  bool capturing() const override { return streams.capturing(); }
  std::unique_ptr<Graph> capture(const std::function<void()>& work) override { return streams.capture(work); }

  void check_red_zones(const char* kernel) {
    try {
      arena_.check_red_zones();
    } catch (const Error& e) {
      throw Error(text("{}: {}", kernel, e.what()));
    }
  }

  Streams streams;

 private:
  Arena arena_{"emulated", size_t{4} << 30, true};
};

// Never destroyed: tensors in static variables of other files may outlive any order of destruction.
EmulatedBackend& device() {
  static EmulatedBackend& backend = *new EmulatedBackend;
  return backend;
}

}  // namespace

Backend& emulated_backend() { return device(); }

namespace emulation {

Streams& streams() { return device().streams; }

void run_checked(const Launch& launch) {
  run_grid(launch);
  device().check_red_zones(launch.kernel);
}

}  // namespace emulation
}  // namespace tapedeck
