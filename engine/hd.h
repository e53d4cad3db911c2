// Host and device marks. One functor serves every device, so the code that a GPU may run is marked HD. A C++ compiler
// reads there that it must inline, without which it would not vectorise a loop over the functor.
#pragma once

#if defined(__CUDACC__)
#define HD __host__ __device__ __forceinline__
#else
#define HD inline __attribute__((always_inline))
#endif

#if defined(__CUDA_ARCH__)  // this pass of nvcc makes code for the GPU
#define ON_GPU 1
#else
#define ON_GPU 0
#endif

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "-ffast-math folds isfinite() away, and with it every check against NaN: build without it"
#endif
