#include "data/mnist.h"

#include <filesystem>
#include <numeric>

#include "data/idx.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

// The plain file if there is one, else the packed one; all missing files are named at once.
std::vector<std::string> find_files(const std::string& folder) {
  if (folder.empty())
    throw UsageError(
        text("mnist: say with --data-dir where {} and its three siblings are (plain or .gz)", mnist_files[0]));
  std::error_code failed;
  CHECK(std::filesystem::exists(folder, failed), "mnist: --data-dir {}: no such folder", folder);
  CHECK(std::filesystem::is_directory(folder, failed),
        "mnist: --data-dir {}: is a file, needs a folder, the one that holds the four MNIST files", folder);
  std::vector<std::string> found;
  std::string missing;
  for (const char* name : mnist_files) {
    const std::filesystem::path plain = std::filesystem::path(folder) / name, packed = plain.string() + ".gz";
    if (std::filesystem::exists(plain))
      found.push_back(plain.string());
    else if (std::filesystem::exists(packed))
      found.push_back(packed.string());
    else
      missing += missing.empty() ? name : std::string(", ") + name;
  }
  CHECK(missing.empty(), "mnist: {} not found in {}, neither plain nor with .gz; put the four MNIST files there",
        missing, folder);
  return found;
}

// Appends one pair of files.
void append(Dataset& data, const std::string& image_path, const std::string& label_path) {
  const IdxPair pair = read_idx_pair(image_path, label_path);
  CHECK(data.shape.empty() || data.shape == pair.shape(), "mnist: images of {} in {}, but {} in the training file",
        pair.shape(), image_path, data.shape);
  check_labels(pair.labels, data.classes, label_path);

  data.shape = pair.shape();
  data.features = pair.features();
  data.pixels.insert(data.pixels.end(), pair.images.bytes.begin(), pair.images.bytes.end());
  data.labels.insert(data.labels.end(), pair.labels.begin(), pair.labels.end());
}

std::vector<int32_t> range(int64_t begin, int64_t end) {
  std::vector<int32_t> rows(end - begin);
  std::iota(rows.begin(), rows.end(), static_cast<int32_t>(begin));
  return rows;
}

}  // namespace

Dataset load_mnist(const std::string& folder) {
  const std::vector<std::string> files = find_files(folder);
  Dataset data{.name = "mnist", .classes = 10, .pixel_scale = 1.0f / 255};
  append(data, files[0], files[1]);
  const int64_t training_file = data.rows(), validation = training_file / 12;
  CHECK(validation > 0, "mnist: {} has {} images; a validation split needs at least 12", files[0], training_file);
  append(data, files[2], files[3]);

  data.train = range(0, training_file - validation);
  data.validation = range(training_file - validation, training_file);
  data.test = range(training_file, data.rows());
  check(data);
  return data;
}

}  // namespace tapedeck
