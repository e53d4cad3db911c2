// The emulated device: checked memory (NaN when fresh, red zones looked at after every kernel).
#include <cstring>

#include "engine/backend.h"
#include "engine/gemm_devices.h"

namespace tapedeck {
namespace {

class EmulatedBackend final : public Backend {
 public:
  Arena& arena() override { return arena_; }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memmove(to, from, bytes);
  }
  void gemm(const Gemm& g) override {
    gemm_emulated(g);
    launched("gemm");
  }
  void sync() override {}
  void launched(const char* kernel) override {
    try {
      arena_.check_red_zones();
    } catch (const Error& e) {
      throw Error(text("{}: {}", kernel, e.what()));
    }
  }

 private:
  Arena arena_{"emulated", size_t{4} << 30, true};
};

}  // namespace

Backend& emulated_backend() {
  static Backend& backend = *new EmulatedBackend;
  return backend;
}

}  // namespace tapedeck
