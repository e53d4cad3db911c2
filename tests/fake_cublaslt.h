// A double of cuBLASLt on host memory, written from its documentation (cublasLt.h of CUDA 13.0): column-major
// D = epilogue(alpha · op(A) · op(B) + beta · C) in plain loops. It refuses what the real one refuses: an attribute
// that it does not know or of another size, layouts that do not fit, types that do not go together, leading dimensions
// that are too small or not a multiple of what they must be.
#pragma once
#include <cublasLt.h>

#include <set>
#include <vector>

#include "engine/cuda/cublaslt_functions.h"

namespace tapedeck::test {

struct FakeCublasLt {
  int offers = 3;                                     // algorithms that the heuristics return, numbered from 0
  std::set<int> unknown_epilogues;                    // those for which they return none
  std::set<int> unknown_algorithms;                   // that the check and the product refuse
  cublasStatus_t fails_with = CUBLAS_STATUS_SUCCESS;  // the product does nothing but this
  // What happened:
  int heuristics = 0, products = 0, checks = 0, alive = 0;  // alive: descriptors that were not destroyed
  int last_algorithm = -1;
  int last_epilogue = 0;
  int last_compute = 0;
  uint64_t asked_workspace = 0;
  uint32_t asked_reductions = 0, asked_alignment_a = 0, asked_alignment_b = 0;
};

FakeCublasLt& fake_cublaslt();  // there is one, since C functions have no place for another
const CublasLtFunctions& fake_cublaslt_functions();

}  // namespace tapedeck::test
