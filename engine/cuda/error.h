// CUDA's status codes as errors of ours.
#pragma once
#include <cuda_runtime_api.h>

namespace tapedeck::cuda {

// Throws where a call failed: Error naming the call or kernel, the layer at work and CUDA's own words, and saying so
// when this process can no longer use the GPU; OutOfMemory where memory was what failed.
void check(cudaError_t status, const char* call);

}  // namespace tapedeck::cuda
