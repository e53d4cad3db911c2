// What the GPU ran, from CUPTI's activity records ("CUDA Profiling Tools Interface", activity API of CUDA 13.0). CUPTI
// fills buffers of ours on threads of its own; they are read as they come, into records that know nothing of CUPTI.
//
// Of kinds: CONCURRENT_KERNEL (KERNEL would run one kernel at a time), MEMCPY and MEMSET are what ran. RUNTIME and
// DRIVER are the calls that asked for it, and only beside these does EXTERNAL_CORRELATION tell which mark a call had:
// call and kernel have one correlation id. CUPTI converts the GPU's times to the clock that we give it, the host's
// steady one.
#pragma once
#include "engine/cuda/cupti_functions.h"
#include "engine/cuda/cupti_graphs.h"
#include "engine/kernel_times.h"

namespace tapedeck {

// There is one CUPTI in a process, and its callbacks have no place for whose they are: so of these only one may record.
class CuptiRecorder final : public KernelRecorder {
 public:
  explicit CuptiRecorder(const CuptiFunctions& functions) : f_(functions), graphs_(functions) {}
  ~CuptiRecorder() override { stop(); }
  CuptiRecorder(const CuptiRecorder&) = delete;
  CuptiRecorder& operator=(const CuptiRecorder&) = delete;

  std::string start() override;
  std::vector<KernelRecord> take() override;
  int64_t lost() const override;
  void stop() noexcept override;
  void push(uint64_t mark) noexcept override;
  void pop() noexcept override;
  std::string follow_graphs() override;

 private:
  const CuptiFunctions& f_;
  CuptiGraphs graphs_;
  size_t enabled_ = 0;  // of the kinds
};

// "SoftmaxForward<float>" of a kernel of ours, else the function's name without its parameters.
std::string readable_kernel(const char* mangled);

}  // namespace tapedeck
