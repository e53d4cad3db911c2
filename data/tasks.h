// Tasks with one right answer, made on the fly: a model that has understood one answers everything right, with a loss
// near 0. An example is a pure function of task, parameters and row, the same on every machine.
//
//   copy, reverse, sort   n symbols, "=", and n symbols of answer                              3152=3152 2513 1235
//   addition              two numbers, and the digits of their sum from the last to the first  123+989=2111
//   modadd                a, b, "=", (a + b) mod p, each number one token                      42 90 = 35
//   induction             n symbols, and the same again, asked for from the second on          7c0a7c0a
//
// The sum comes last digit first because each digit then follows from two digits and a carry that is already known; the
// first digit of a sum depends on all of them [Lee et al. 2023, arXiv:2307.03381]. modadd shows grokking: the training
// pairs are learned by heart long before the others come out right [Power et al. 2022, arXiv:2201.02177]. Induction is
// what two layers of attention learn to do together [Olsson et al. 2022, arXiv:2209.11895].
//
// An example is in the part that a hash of its question says (0.8 train, 0.1 validation, 0.1 test), so no question is
// in two; a row draws until it meets one of its part. modadd has each pair once, and deals them in a fixed order.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "data/dataset.h"

namespace tapedeck {

inline constexpr int64_t task_train_rows = 200'000, task_test_rows = 1'000;  // as many to validate as to test

// Throws UsageError for a spec that parse_task refuses, or whose task has too few different examples.
Dataset make_task(const std::string& spec);

// Throws UsageError about --prompt, saying what a question looks like, unless the tokens are one of the task, or one
// with the beginning of an answer.
void check_question(const std::string& spec, std::span<const int32_t> tokens);

}  // namespace tapedeck
