// cuBLASLt's functions as a table, loaded when the program runs: a program built with CUDA starts where cuBLASLt is
// absent, and a test gives a table of its own.
#pragma once
#include <cublasLt.h>

#include <string>

#include "engine/gemm.h"

namespace tapedeck {

struct CublasLtFunctions {
  decltype(&::cublasLtCreate) create;
  decltype(&::cublasLtDestroy) destroy;
  decltype(&::cublasLtGetVersion) version;
  decltype(&::cublasLtGetStatusName) status_name;
  decltype(&::cublasLtMatmulDescCreate) operation_create;
  decltype(&::cublasLtMatmulDescDestroy) operation_destroy;
  decltype(&::cublasLtMatmulDescSetAttribute) operation_set;
  decltype(&::cublasLtMatrixLayoutCreate) layout_create;
  decltype(&::cublasLtMatrixLayoutDestroy) layout_destroy;
  decltype(&::cublasLtMatrixLayoutSetAttribute) layout_set;
  decltype(&::cublasLtMatmulPreferenceCreate) preference_create;
  decltype(&::cublasLtMatmulPreferenceDestroy) preference_destroy;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) preference_set;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) find_algorithms;
  decltype(&::cublasLtMatmulAlgoCheck) check_algorithm;
  decltype(&::cublasLtMatmul) multiply;
};

// The library's own, loaded at the first call. Throws Error when it is not found or lacks a function.
const CublasLtFunctions& cublaslt_functions();

// Throws Error unless status is success: which call failed, how, and for which product.
void check_cublaslt(const CublasLtFunctions& functions, cublasStatus_t status, const char* call, const Gemm& g);
std::string in_words(const Gemm& g);  // "33x65x17 of f32, bias_gelu"

}  // namespace tapedeck
