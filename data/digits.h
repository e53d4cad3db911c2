// The digits that travel inside the program: 1,797 images of 8x8 pixels, written by 13 people.
//
// UCI "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, 1998, licensed CC BY 4.0
// (https://archive.ics.uci.edu/dataset/80), as shipped by scikit-learn. A pixel counts the dark ones of 4x4 dots, so it
// is 0 … 16.
#pragma once
#include <cstdint>

#include "data/dataset.h"

namespace tapedeck {

inline constexpr int digits_rows = 1797, digits_validation_rows = 359, digits_test_rows = 360;
inline constexpr uint64_t digits_split_seed = 1998;  // fixed for good; mixes the writers, whose images stand together

Dataset load_digits();  // features are pixel / 16

}  // namespace tapedeck
