// From columns of numbers and words to what a network takes: features of mean 0 and deviation 1, and class ids.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"

namespace tapedeck {

inline constexpr int most_classes = 65536;  // more are numbers to predict, or names of single rows

// Mean and deviation of every column of values, row-major [rows, columns], over the training rows alone: what
// validation and test rows hold must not reach a model in any way. The deviation of n rows is √(Σ (x − mean)² / n); a
// column that never changes has 1. Throws Error where a sum leaves the range of a double, with the column from 1.
void fit_columns(Encoding& encoding, std::span<const double> values, size_t columns, std::span<const int32_t> train,
                 std::string_view source);

// Answers of data whose classes have no names: whole numbers from 0 become class ids, and there are as many classes as
// the largest says; with options.regression they are numbers to predict. Throws Error naming source, row and value.
void take_answers(Dataset& data, std::span<const double> answers, const DataOptions& options, std::string_view source);

// Throws Error, saying what differs, unless the data is encoded as the data that a model was trained on.
void check_encoding(const Dataset& data, const Encoding& of_model);

// "a, b, c and 7 more"
std::string listed(std::span<const std::string> names);

}  // namespace tapedeck
