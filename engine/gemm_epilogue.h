// gemm's epilogues as kernels of their own, for where a library multiplies but has no such epilogue: it does not know
// the combination of types, or its alignment does not allow it.
#pragma once
#include <functional>

#include "engine/gemm.h"

namespace tapedeck {

// Runs g through `library`, which returns false for what it cannot do, as k = 0 may be. What it refuses it is asked
// again without the bias gradient, then as a plain product, and kernels do the rest. Where C has 16 bits, the sums of a
// bias gradient and the epilogue of a plain product then start from values rounded to 16 bits. Throws Error when the
// plain product is refused too.
void gemm_by_library(Device device, const Gemm& g, const std::function<bool(const Gemm&)>& library);

// bias_gradient[j] = Σ_i C[i][j], in the order of the rows.
void sum_bias_gradient(Device device, const Gemm& g);

}  // namespace tapedeck
