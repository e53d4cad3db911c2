// Data sets in CSV files: a row an example, one column the answer, numbers in all others.
#pragma once
#include <string>

#include "data/dataset.h"

namespace tapedeck {

// Reads a file, plain or gzip. options.label names the answer's column, the last one by default.
//
// Classes are the different answers, ordered as numbers when all are whole numbers and else by their bytes, and kept in
// encoding.class_names. With options.regression the answers are numbers to predict.
//
// Rows are dealt to the splits by what the file holds. Then each feature is standardised by mean and deviation of the
// training rows, kept in encoding. With options.encoding, that of a trained model, nothing is fitted: its classes,
// means and deviations are used, and a file with other columns or an unknown class is refused.
//
// Throws Error naming file, line, column and value of what is wrong, and UsageError for an option that does not fit.
Dataset load_csv(const std::string& path, const DataOptions& options);

}  // namespace tapedeck
