#include "engine/cuda/error.h"

#include <string>

#include "engine/check.h"
#include "engine/scope.h"

namespace tapedeck::cuda {
namespace {

// After these "the process must be terminated and relaunched" (CUDA Runtime API, the enumeration of errors).
bool ends_the_context(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable: return true;
    default: return false;
  }
}

}  // namespace

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) [[likely]]
    return;
  cudaGetLastError();  // else the next check would report it again
  const std::string& layer = Scope::path();
  const std::string what = text("cuda: {}{}{} failed: {} ({})", call, layer.empty() ? "" : " in ", layer,
                                cudaGetErrorString(status), cudaGetErrorName(status));
  if (status == cudaErrorMemoryAllocation) throw OutOfMemory(what);
  if (ends_the_context(status))
    throw Error(what +
                "; it may stem from an earlier kernel, and this process can no longer use the GPU: start it again");
  throw Error(what);
}

}  // namespace tapedeck::cuda
