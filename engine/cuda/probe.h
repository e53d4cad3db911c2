// Whether this program holds code for a GPU, asked by loading a kernel of ours.
#pragma once
#include <cuda_runtime_api.h>

#include <string>

namespace tapedeck::cuda {

cudaError_t load_a_kernel();  // cudaErrorNoKernelImageForDevice where there is no code for the current GPU
std::string built_for();      // "sm_80 and sm_90"

}  // namespace tapedeck::cuda
