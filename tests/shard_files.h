// Shards for the tests: small data sets of every kind, and whole files as bytes.
#pragma once
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

#include "data/shard.h"
#include "data/shard_writer.h"
#include "tests/test_data_folder.h"

// 6 training, 2 validation and 2 test rows of `features` numbers; rows of the three parts lie mixed.
inline tapedeck::Dataset small_data(tapedeck::RecordType type, bool classes, int64_t features = 3) {
  tapedeck::Dataset data{.name = "small", .shape = "3", .features = features, .classes = classes ? 4 : 0};
  for (int i = 0; i < 10 * features; ++i) {
    if (type == tapedeck::RecordType::u8) data.pixels.push_back(static_cast<uint8_t>(i * 37));
    if (type == tapedeck::RecordType::f32) data.values.push_back(0.1f * static_cast<float>(i) - 1);
  }
  data.pixel_scale = 1.0f / 255;
  for (int row = 0; row < 10; ++row) {
    if (classes) data.labels.push_back(row % 4);
    if (!classes) data.targets.push_back(0.3f * static_cast<float>(row));
  }
  data.train = {9, 2, 4, 0, 7, 1}, data.validation = {3, 8}, data.test = {5, 6};
  return data;
}

inline std::vector<uint8_t> file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// All features of these rows.
inline std::vector<float> features_of(const tapedeck::Dataset& data, const std::vector<int32_t>& rows) {
  std::vector<float> x(rows.size() * static_cast<size_t>(data.features)), answers(rows.size());
  tapedeck::gather(data, rows, x.data(), answers.data());
  x.insert(x.end(), answers.begin(), answers.end());
  return x;
}

// Everything that a shard holds, read in one go.
inline std::vector<float> all_of(const tapedeck::Shard& shard) {
  std::vector<int32_t> rows(static_cast<size_t>(shard.count()));
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<float> out(rows.size() * shard.header().features);
  shard.read(rows, out.data());
  out.insert(out.end(), shard.labels().begin(), shard.labels().end());
  out.insert(out.end(), shard.targets().begin(), shard.targets().end());
  return out;
}

// A shard of 6,000 records of 784 bytes: 72 blocks of records, and answers.
inline std::string large_shard(const TemporaryFolder& folder) {
  tapedeck::Dataset data{
      .name = "large", .shape = "28x28x1", .features = 784, .classes = 10, .pixel_scale = 1.0f / 255};
  for (int row = 0; row < 6000; ++row) {
    for (int i = 0; i < 784; ++i) data.pixels.push_back(static_cast<uint8_t>(row * 31 + i));
    data.labels.push_back(row % 10);
    (row < 5000 ? data.train : row < 5500 ? data.validation : data.test).push_back(row);
  }
  tapedeck::write_shard(folder / "large.shard", data);
  return folder / "large.shard";
}
