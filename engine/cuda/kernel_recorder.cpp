// The recorder of a build with CUDA; it has CUPTI where the toolkit's headers have.
#include "engine/gpu.h"
#include "engine/kernel_times.h"
#if __has_include(<cupti.h>)
#include "engine/cuda/cupti_recorder.h"
#endif

namespace tapedeck {

std::unique_ptr<KernelRecorder> kernel_recorder(std::string& why_not) {
#if __has_include(<cupti.h>)
  const CuptiFunctions* const functions = cupti_functions(why_not);
  return functions ? std::make_unique<CuptiRecorder>(*functions) : nullptr;
#else
  why_not = "this program was built without CUPTI's headers";
  return nullptr;
#endif
}

}  // namespace tapedeck
