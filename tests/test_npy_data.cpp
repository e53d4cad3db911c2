// Arrays as data sets, and labels outside the classes.
#include "data/npy.h"

#include <cstring>
#include <limits>

#include "data/catalog.h"
#include "data/idx.h"
#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

#include "tests/idx_bytes.h"
#include "tests/test_data_folder.h"

using namespace tapedeck;
using doctest::Contains;

namespace {

template <class T>
std::string write(const TemporaryFolder& folder, const char* name, std::string_view descr,
                  const std::vector<int64_t>& shape, const std::vector<T>& items) {
  Bytes bytes(items.size() * sizeof(T));
  std::memcpy(bytes.data(), items.data(), bytes.size());
  return folder.write(name, text_bytes(npy_header(descr, shape)) + bytes);
}

// n numbers 0, 1, …, modulo m.
template <class T>
std::vector<T> counting(int n, int m = 1 << 20) {
  std::vector<T> items;
  for (int i = 0; i < n; ++i) items.push_back(static_cast<T>(i % m));
  return items;
}

}  // namespace

TEST_CASE("npy: images stay bytes, and their labels come from another file") {
  const TemporaryFolder folder;
  const std::string x = write(folder, "x.npy", "|u1", {20, 3, 4}, counting<uint8_t>(240));
  const std::string y = write(folder, "y.npy", "<i8", {20}, counting<int64_t>(20, 3));
  const Dataset data = load_dataset("npy:" + x, {.validation = 0.2, .label = y});
  CHECK(data.name == "x");
  CHECK(data.shape == "3x4");
  CHECK(data.features == 12);
  CHECK(data.classes == 3);
  CHECK(data.values.empty());
  CHECK(data.pixels == counting<uint8_t>(240));
  CHECK(data.validation.size() == 4);
  float features[12];
  int32_t label;
  gather(data, std::vector<int32_t>{7}, features, &label);
  CHECK(features[3] == doctest::Approx(87 / 255.0));
  CHECK(label == 1);
  CHECK(load_npy(x, {.label = write(folder, "y2.npy", "|u1", {20, 1}, counting<uint8_t>(20, 2))}).classes == 2);
}

TEST_CASE("npy: without a label file the last column of a matrix is the answer") {
  const TemporaryFolder folder;
  std::vector<double> items;
  for (int i = 0; i < 20; ++i) items.insert(items.end(), {i + 0.5, -i * 2.0, double(i % 2)});
  const std::string x = write(folder, "x.npy", "<f8", {20, 3}, items);
  const Dataset data = load_npy(x, {});
  CHECK(data.features == 2);
  CHECK(data.shape == "2");
  CHECK(data.classes == 2);
  CHECK(data.values[6] == 3.5f);
  CHECK(data.values[7] == -6.0f);
  CHECK(data.labels[3] == 1);

  const Dataset numbers = load_npy(write(folder, "n.npy", "<f8", {10, 2}, counting<double>(20)), {.regression = true});
  CHECK(numbers.classes == 0);
  CHECK(numbers.targets[4] == 9.0f);

  const Dataset pixels =
      load_npy(write(folder, "p.npy", "|u1", {20, 2}, counting<uint8_t>(40, 2)), {.regression = true});
  CHECK(pixels.pixels == Bytes(20, 0));
  CHECK(pixels.targets == std::vector<float>(20, 1));

  const std::string vector = write(folder, "v.npy", "<f4", {20}, counting<float>(20));
  CHECK_THROWS_WITH_AS(load_npy(vector, {}), Contains("say with --label FILE where the answers are"), UsageError);
  CHECK(load_npy(vector, {.label = vector, .regression = true}).features == 1);
}

// Fault: a class id that is none was read out of bounds in the loss, or gave a silent number.
TEST_CASE("npy and idx: a label that is no class id is refused with file, row and value") {
  const TemporaryFolder folder;
  const std::string x = write(folder, "x.npy", "<f4", {20, 2}, counting<float>(40));
  const auto refuses = [&](const std::vector<double>& labels, const char* message, bool numbers = false) {
    const std::string y = write(folder, "y.npy", "<f8", {std::ssize(labels)}, labels);
    CHECK_THROWS_WITH_AS(load_npy(x, {.label = y, .regression = numbers}), Contains(message), Error);
  };
  std::vector<double> labels = counting<double>(20, 10);
  labels[3] = -4;
  refuses(labels, "y.npy: label -4 at row 3 is no class id, a whole number from 0 to 65535");
  labels[3] = 2.5;
  refuses(labels, "label 2.5 at row 3 is no class id, a whole number from 0 to 65535; to predict numbers, say --loss");
  labels[3] = 65536;
  refuses(labels, "label 65536 at row 3");
  labels[3] = std::numeric_limits<double>::quiet_NaN();
  refuses(labels, "label nan at row 3");
  refuses(labels, "y.npy: answer nan at row 3 is no finite number", true);
  labels[3] = 1e300;
  refuses(labels, "answer 1e+300 at row 3", true);
  labels.pop_back();
  refuses(labels, "20 examples in");
  refuses(labels, "but 19 answers in");
  refuses(std::vector<double>(20), "every label is 0; classes need two at least");
  const std::string matrix = write(folder, "m.npy", "<f4", {20, 2}, counting<float>(40));
  CHECK_THROWS_WITH_AS(load_npy(x, {.label = matrix}), Contains("m.npy: holds an array of 2 axes"), Error);

  // IDX holds bytes: the largest label says how many classes there are, and numbers to predict are taken as such.
  const std::string images = folder.write("images", idx_images(20, 2, 2));
  Bytes bytes = idx_labels(20);
  bytes[8 + 5] = 10;
  const std::string ids = folder.write("labels", bytes);
  CHECK(load_idx(images, {.label = ids}).classes == 11);
  const Dataset targets = load_idx(images, {.label = ids, .regression = true});
  CHECK(targets.classes == 0);
  CHECK(targets.targets[5] == 10.0f);
}

TEST_CASE("npy: a feature that is not finite is refused with row and column") {
  const TemporaryFolder folder;
  const std::string y = write(folder, "y.npy", "|u1", {20}, counting<uint8_t>(20, 2));
  std::vector<float> items = counting<float>(60);
  items[3 * 4 + 2] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH_AS(load_npy(write(folder, "x.npy", "<f4", {20, 3}, items), {.label = y}),
                       Contains("x.npy: row 4, column 2: inf is no finite number"), Error);
  std::vector<double> doubles = counting<double>(60);
  doubles[0] = 1e39;
  CHECK_THROWS_WITH_AS(load_npy(write(folder, "x.npy", "<f8", {20, 3}, doubles), {.label = y}),
                       Contains("row 0, column 0: 1e+39 is no finite number of a float's range"), Error);
}

TEST_CASE("idx: any pair of images and labels is a data set, split by its content") {
  const TemporaryFolder folder;
  const std::string images = folder.write("images.gz", gzip(idx_images(30, 2, 3)));
  const std::string labels = folder.write("labels", idx_labels(30));
  const Dataset data = load_dataset("idx:" + images, {.validation = 0.2, .test = 0.1, .label = labels});
  CHECK(data.name == "images");
  CHECK(data.shape == "2x3x1");
  CHECK(data.features == 6);
  CHECK(data.classes == 10);
  CHECK(data.pixel_scale == 1.0f / 255);
  CHECK(data.validation.size() == 6);
  CHECK(data.train.size() == 21);
  CHECK_THROWS_WITH_AS(load_dataset("idx:" + images), Contains("say with --label FILE where the labels are"),
                       UsageError);
  CHECK_THROWS_WITH_AS(load_idx(images, {.label = folder.write("few", idx_labels(29))}), Contains("30 images in "),
                       Error);
  CHECK_THROWS_WITH_AS(load_idx(images, {.label = images}), Contains("mislabelled"), Error);
}
