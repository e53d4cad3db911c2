// MNIST: 60,000 and 10,000 handwritten digits of 28x28 grey pixels in four IDX files [LeCun, Cortes and Burges 1998].
#pragma once
#include <string>

#include "data/dataset.h"

namespace tapedeck {

// Images and labels to train on, then those to test on; each as it is or with .gz.
inline constexpr const char* mnist_files[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                                              "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

// Reads the four files from a folder. The last twelfth of the training file (5,000 of 60,000) validates. Throws
// UsageError when no folder is given.
Dataset load_mnist(const std::string& folder);

}  // namespace tapedeck
