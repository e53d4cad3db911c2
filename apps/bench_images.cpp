#include "apps/bench_images.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "apps/files.h"
#include "data/csv_records.h"
#include "data/shard.h"
#include "data/shard_writer.h"
#include "engine/check.h"
#include "engine/random.h"

namespace tapedeck {
namespace {

constexpr int32_t images = 8192, held_back = 64;  // for validation and for testing each
constexpr int64_t pixels = 28 * 28;
constexpr int classes = 10;

Dataset make_images() {
  Dataset data{.name = "made-up", .shape = "28x28x1", .features = pixels, .classes = classes};
  const auto site = site_of("bench.images");
  for (int64_t i = 0; i < images * pixels / 4; ++i) {
    const Random4 bits = random_bits(1, 0, site, static_cast<uint64_t>(i));
    for (const uint32_t word : bits.word)  // a fifth is not black
      data.pixels.push_back(bounded(word, 5u) == 0 ? static_cast<uint8_t>(word % 256) : uint8_t{0});
  }
  for (int32_t i = 0; i < images; ++i) data.labels.push_back(i % classes);
  data.train.resize(images - 2 * held_back), data.validation.resize(held_back), data.test.resize(held_back);
  std::iota(data.train.begin(), data.train.end(), 0);
  std::iota(data.validation.begin(), data.validation.end(), images - 2 * held_back);
  std::iota(data.test.begin(), data.test.end(), images - held_back);
  check(data);
  return data;
}

std::string csv_text(const Dataset& data) {  // the label last
  std::string out, fields[256];
  for (int value = 0; value < 256; ++value) fields[value] = fmt::format("{},", value);
  for (int32_t row = 0; row < images; ++row) {
    for (int64_t i = 0; i < pixels; ++i) out += fields[data.pixels[row * pixels + i]];
    out += fmt::format("{}\n", data.labels[row]);
  }
  return out;
}

int64_t size_of_file(const std::string& path) { return static_cast<int64_t>(std::filesystem::file_size(path)); }

}  // namespace

BenchImages::Folder::Folder() {
  std::error_code cause;
  path = (std::filesystem::temp_directory_path(cause) / "tapedeck-bench-XXXXXX").string();
  CHECK(!cause, "no folder for temporary files: {}; TMPDIR names one", cause.message());
  CHECK(mkdtemp(path.data()), "{}: cannot be made: {}; TMPDIR names another place", path, std::strerror(errno));
}

BenchImages::Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

BenchImages::BenchImages() : memory_(make_images()) {
  write_file(csv_, csv_text(memory_));
  write_shard(shard_, memory_);
}

Dataset BenchImages::csv() const {
  const auto records = std::make_shared<const CsvRecords>(csv_);
  Dataset data = memory_;
  data.pixels = {};
  data.labels.assign(records->answers().begin(), records->answers().end());
  data.records = records;
  check(data);
  return data;
}

Dataset BenchImages::shard() const { return open_shard(shard_); }

int64_t BenchImages::csv_bytes() const { return size_of_file(csv_); }
int64_t BenchImages::shard_bytes() const { return size_of_file(shard_); }

}  // namespace tapedeck
