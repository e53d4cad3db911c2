// The gemm of each device, for its backend. What it is given is already checked (gemm.cpp).
#pragma once
#include "engine/gemm.h"

namespace tapedeck {

void gemm_on_cpu(const Gemm& g);
bool bf16_products_are_fast();  // on the CPU: else their factors are converted, and products made in f32
void gemm_emulated(const Gemm& g);

}  // namespace tapedeck
