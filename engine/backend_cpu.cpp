// The CPU: host memory, where everything has happened when a call returns.
#include <unistd.h>

#include <cstring>

#include "engine/backend.h"
#include "engine/gemm_devices.h"

namespace tapedeck {
namespace {

class CpuBackend final : public Backend {
 public:
  Arena& arena() override { return arena_; }
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes > 0) std::memmove(to, from, bytes);
  }
  void gemm(const Gemm& g) override { gemm_on_cpu(g); }
  void sync() override {}
  void launched(const char*) override {}

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
