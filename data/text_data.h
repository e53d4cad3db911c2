// A text as examples: windows of `context` tokens, whose answers are the tokens that follow each. A token is a
// character, or with DataOptions::bytes a byte of the file as it is.
//
//   training    the first 0.9 of the tokens: a window at every place, so an epoch begins once at each
//   validation  the last 0.1: windows side by side, which leave out the end where no whole one fits
//   testing     the same windows as validation, unless options.test takes a part off the end of the text
//
// The vocabulary is of the whole text. With options.encoding it is that of the model, and a text that is too short for
// parts is all for testing.
#pragma once
#include <string>

#include "data/dataset.h"

namespace tapedeck {

// Throws UsageError where a part is shorter than context + 1 tokens; Error for a text that is empty or no UTF-8, and
// naming character and place for one that the model's vocabulary lacks.
Dataset load_text(const std::string& path, const DataOptions& options);

}  // namespace tapedeck
