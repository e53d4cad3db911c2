// The folder of four MNIST files: complete, consistent, and the real one.
#include <algorithm>
#include <array>
#include <cmath>

#include "data/catalog.h"
#include "data/mnist.h"
#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

#include "tests/idx_bytes.h"
#include "tests/test_data_folder.h"

using namespace tapedeck;
using doctest::Contains;

namespace {

// 24 and 6 images of 2x3.
void write_mnist(const TemporaryFolder& folder) {
  folder.write("train-images-idx3-ubyte", idx_images(24, 2, 3));
  folder.write("train-labels-idx1-ubyte.gz", gzip(idx_labels(24)));
  folder.write("t10k-images-idx3-ubyte.gz", gzip(idx_images(6, 2, 3)));
  folder.write("t10k-labels-idx1-ubyte", idx_labels(6));
}

}  // namespace

TEST_CASE("mnist: the end of the training file validates, the test file tests") {
  const TemporaryFolder folder;
  write_mnist(folder);
  const Dataset data = load_dataset("mnist", {.data_dir = folder.path()});
  CHECK(data.name == "mnist");
  CHECK(data.shape == "2x3x1");
  CHECK(data.features == 6);
  CHECK(data.classes == 10);
  CHECK(data.rows() == 30);
  CHECK(data.train.size() == 22);
  CHECK(data.validation == std::vector<int32_t>{22, 23});
  CHECK(data.test == std::vector<int32_t>{24, 25, 26, 27, 28, 29});

  float features[12];
  int32_t labels[2];
  gather(data, std::vector<int32_t>{25, 1}, features, labels);
  CHECK(labels[0] == 1);
  CHECK(labels[1] == 1);
  for (int i = 0; i < 12; ++i) CHECK(features[i] == doctest::Approx((6 + i % 6) / 255.0));  // second of both files
}

TEST_CASE("mnist: says which files are missing and where it looked") {
  CHECK_THROWS_WITH_AS(load_mnist(""), Contains("--data-dir"), UsageError);
  const TemporaryFolder folder;
  CHECK_THROWS_WITH_AS(load_mnist(folder / "none"), Contains("/none: no such folder"), Error);
  CHECK_THROWS_WITH_AS(load_mnist(folder.write("file", {1})), Contains("/file: is a file, needs a folder"), Error);
  write_mnist(folder);
  std::filesystem::remove(folder / "train-labels-idx1-ubyte.gz");
  std::filesystem::remove(folder / "t10k-labels-idx1-ubyte");
  const std::string message = "mnist: train-labels-idx1-ubyte, t10k-labels-idx1-ubyte not found in " + folder.path();
  CHECK_THROWS_WITH_AS(load_mnist(folder.path()), Contains(message.c_str()), Error);
}

// Fault: images were paired with the labels of another file.
TEST_CASE("mnist: files that do not belong together are refused with both counts") {
  const TemporaryFolder folder;
  write_mnist(folder);
  folder.write("t10k-labels-idx1-ubyte", idx_labels(24));
  CHECK_THROWS_WITH_AS(load_mnist(folder.path()), Contains("6 images in"), Error);
  CHECK_THROWS_WITH_AS(load_mnist(folder.path()), Contains("but 24 labels in"), Error);
  folder.write("t10k-labels-idx1-ubyte", idx_labels(6));
  folder.write("t10k-images-idx3-ubyte.gz", idx_images(6, 3, 3));
  CHECK_THROWS_WITH_AS(load_mnist(folder.path()), Contains("images of 3x3x1"), Error);
  write_mnist(folder);
  folder.write("train-images-idx3-ubyte", idx_images(11, 2, 3));
  folder.write("train-labels-idx1-ubyte.gz", idx_labels(11));
  CHECK_THROWS_WITH_AS(load_mnist(folder.path()), Contains("at least 12"), Error);
}

// Fault: a class id beyond the classes was read out of bounds in the loss.
TEST_CASE("mnist: a label outside the classes is refused with file, row, value and class count") {
  const TemporaryFolder folder;
  write_mnist(folder);
  Bytes labels = idx_labels(6);
  labels[8 + 3] = 10;
  folder.write("t10k-labels-idx1-ubyte", labels);
  CHECK_THROWS_WITH_AS(load_mnist(folder.path()),
                       Contains("t10k-labels-idx1-ubyte: label 10 at row 3, but there are 10 classes (0 to 9)"), Error);
}

TEST_CASE("mnist: its split is fixed, so fractions are refused") {
  CHECK_THROWS_WITH_AS(load_dataset("mnist", {.validation = 0.2}), Contains("splits are fixed"), UsageError);
  CHECK_THROWS_WITH_AS(load_dataset("digits", {.test = 0.2}), Contains("splits are fixed"), UsageError);
}

TEST_CASE("mnist: the real files hold 70,000 digits") {
  const auto path = test_data("mnist/train-images-idx3-ubyte.gz");
  if (!path) return;
  const Dataset data = load_mnist(std::filesystem::path(*path).parent_path().string());
  CHECK(data.shape == "28x28x1");
  CHECK(data.pixels.size() == 70000 * 784);
  CHECK(data.values.empty());
  CHECK(data.train.size() == 55000);
  CHECK(data.validation.size() == 5000);
  CHECK(data.test.size() == 10000);
  const auto list = data_kinds();
  CHECK(std::any_of(list.begin(), list.end(), [](const DataKind& entry) {
    return entry.name == "mnist" && entry.size == "70,000 rows: 55,000 / 5,000 / 10,000";
  }));
  CHECK(std::vector<int32_t>(data.labels.begin(), data.labels.begin() + 8) ==
        std::vector<int32_t>{5, 0, 4, 1, 9, 2, 1, 3});

  std::array<int, 10> counts{};
  for (int row = 0; row < 60000; ++row) ++counts[data.labels[row]];
  CHECK(counts == std::array<int, 10>{5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949});

  // The mean and deviation that everybody normalises with: 0.1307 and 0.3081.
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < 60000 * 784; ++i) {
    const double value = data.pixels[i] / 255.0;
    sum += value;
    squares += value * value;
  }
  const double mean = sum / (60000 * 784);
  CHECK(std::abs(mean - 0.1307) < 5e-5);
  CHECK(std::abs(std::sqrt(squares / (60000 * 784) - mean * mean) - 0.3081) < 5e-5);
}
