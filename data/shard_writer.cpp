#include "data/shard_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "data/checksum.h"
#include "data/shard.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t progress_step = 1 << 20;  // bytes of records between two calls of progress

// The file under its first name, and the checksums of what was added to it.
class ShardFile {
 public:
  explicit ShardFile(const std::string& path) : path_(path), growing_(path + ".tmp") {
    CHECK(!fs::exists(path) || fs::is_regular_file(path), "{}: is no plain file; name a new one", path);
    file_.reset(std::fopen(growing_.c_str(), "wbe"));
    if (!file_) failed();
  }

  ~ShardFile() {
    if (!file_) return;  // it has its name
    file_.reset();
    std::remove(growing_.c_str());
  }

  void add_front(ShardHeader header, const ShardMetadata& metadata) {
    const std::string json = to_json(metadata);
    const uint32_t json_crc = crc32_of(json.data(), json.size());
    header.metadata_bytes = static_cast<uint32_t>(json.size());
    header.crc = crc(header);
    check(header, layout(header).end, path_);  // what no reader would take is not written
    write(&header, sizeof header);
    write(json.data(), json.size());
    write(&json_crc, sizeof json_crc);
  }

  // Records and answers: what blocks cover.
  void add(const void* bytes, uint64_t n) {
    write(bytes, n);
    for (const auto* at = static_cast<const std::byte*>(bytes); n > 0;) {
      const uint64_t part = std::min(n, shard_block - in_block_);
      block_crc_ = crc32_of(at, part, block_crc_);
      in_block_ += part, at += part, n -= part;
      if (in_block_ == shard_block) end_block();
    }
  }

  void finish() {
    if (in_block_ > 0) end_block();
    write(table_.data(), table_.size() * sizeof(uint32_t));
    if (std::fflush(file_.get()) != 0 || fsync(fileno(file_.get())) != 0) failed();
    if (std::rename(growing_.c_str(), path_.c_str()) != 0) failed();
    file_.reset();
    const fs::path folder = fs::absolute(path_).parent_path();  // the new name is on disk when its folder is
    if (const int opened = open(folder.c_str(), O_RDONLY | O_CLOEXEC); opened >= 0) fsync(opened), close(opened);
  }

 private:
  [[noreturn]] void failed() const { throw Error(text("{}: cannot be written: {}", path_, std::strerror(errno))); }

  void write(const void* bytes, uint64_t n) {
    if (std::fwrite(bytes, 1, n, file_.get()) != n) failed();
  }

  void end_block() {
    table_.push_back(block_crc_);
    block_crc_ = 0, in_block_ = 0;
  }

  std::string path_, growing_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, std::fclose};
  std::vector<uint32_t> table_;
  uint32_t block_crc_ = 0;
  uint64_t in_block_ = 0;
};

// One record as it will lie in the file. Records that are read go through `scratch`.
std::span<const std::byte> record_bytes(const Dataset& data, const Shard* shard, const int32_t& row,
                                        std::vector<float>& scratch) {
  const auto numbers = static_cast<size_t>(data.features), begin = static_cast<size_t>(row) * numbers;
  if (!data.pixels.empty()) return std::as_bytes(std::span(data.pixels).subspan(begin, numbers));
  if (!data.records) return std::as_bytes(std::span(data.values).subspan(begin, numbers));
  scratch.resize(numbers);
  if (!shard) {
    data.records->read({&row, 1}, scratch.data());
    return std::as_bytes(std::span(scratch));
  }
  shard->read_raw(row, 1, scratch.data());
  return std::as_bytes(std::span(scratch)).first(shard->record_bytes());
}

}  // namespace

void write_shard(const std::string& path, const Dataset& data, const ShardProgress& progress) {
  if (data.sequences)
    throw UsageError(text("{}: its sequences are made as they are read, a shard has no use for them", data.name));
  const auto* shard = dynamic_cast<const Shard*>(data.records.get());
  std::vector<int32_t> rows = data.train;
  rows.insert(rows.end(), data.validation.begin(), data.validation.end());
  rows.insert(rows.end(), data.test.begin(), data.test.end());

  ShardHeader header;
  header.type = shard ? shard->header().type : data.pixels.empty() ? RecordType::f32 : RecordType::u8;
  header.answers = data.classes > 0 ? Answers::classes : Answers::numbers;
  header.records = rows.size(), header.features = static_cast<uint64_t>(data.features);
  header.train = data.train.size(), header.validation = data.validation.size(), header.test = data.test.size();
  ShardFile file(path);
  file.add_front(header, {.name = data.name,
                          .shape = data.shape,
                          .pixel_scale = shard ? shard->metadata().pixel_scale : data.pixel_scale,
                          .classes = data.classes,
                          .encoding = data.encoding});

  std::vector<float> scratch;
  uint64_t since_progress = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::span<const std::byte> bytes = record_bytes(data, shard, rows[i], scratch);
    file.add(bytes.data(), bytes.size());
    since_progress += bytes.size();
    if (progress && since_progress >= progress_step) since_progress = 0, progress(static_cast<int64_t>(i + 1));
  }
  for (const int32_t row : rows)
    if (data.classes > 0)
      file.add(&data.labels[static_cast<size_t>(row)], sizeof(int32_t));
    else
      file.add(&data.targets[static_cast<size_t>(row)], sizeof(float));
  file.finish();
}

}  // namespace tapedeck
