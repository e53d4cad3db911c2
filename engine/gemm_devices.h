// The gemm of each device, for its backend. What it is given is already checked (gemm.cpp).
#pragma once
#include "engine/gemm.h"

namespace tapedeck {

void gemm_on_cpu(const Gemm& g);
void gemm_emulated(const Gemm& g);

}  // namespace tapedeck
