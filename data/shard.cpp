#include "data/shard.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "data/byte_count.h"
#include "data/checksum.h"
#include "data/encoding.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr uint64_t most_scratch = 1 << 18;  // bytes of records taken at a time on their way to floats: within a cache

template <class T>
void to_floats(const uint8_t* bytes, int64_t n, float scale, float* out) {
  const T* in = reinterpret_cast<const T*>(bytes);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(in[i]) * scale;
}

}  // namespace

Shard::OpenFile::~OpenFile() {
  if (descriptor >= 0) close(descriptor);
}

Shard::Shard(const std::string& path) : path_(path), name_(std::filesystem::path(path).filename().string()) {
  file_.descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe is refused, not waited for
  CHECK(file_.descriptor >= 0, "{}: cannot be opened: {}", path, std::strerror(errno));
  struct stat about;
  CHECK(fstat(file_.descriptor, &about) == 0 && S_ISREG(about.st_mode), "{}: is not a file", path);
  file_bytes_ = static_cast<uint64_t>(about.st_size);
  read_front();
  read_answers();
}

// Exactly n bytes from a place in the file.
void Shard::read_bytes(void* out, uint64_t n, uint64_t at) const {
  while (n > 0) {
    const ssize_t got = pread(file_.descriptor, out, n, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    CHECK(got >= 0, "{}: {} cannot be read: {}", path_, place(at), std::strerror(errno));
    CHECK(got > 0,
          "{}: {} is gone: the file had {} bytes when it was opened, and ends before byte {} now; do not change it in "
          "a run",
          name_, place(at), grouped(file_bytes_), grouped(at));
    out = static_cast<char*>(out) + got, n -= static_cast<uint64_t>(got), at += static_cast<uint64_t>(got);
  }
}

void Shard::read_front() {
  CHECK(file_bytes_ >= sizeof header_, "{}: has {} bytes, too few for a shard's header of {}", name_, file_bytes_,
        sizeof header_);
  read_bytes(&header_, sizeof header_, 0);
  check(header_, file_bytes_, name_);
  layout_ = layout(header_);

  std::string json(header_.metadata_bytes, '\0');
  uint32_t crc;
  read_bytes(json.data(), json.size(), layout_.metadata);
  read_bytes(&crc, sizeof crc, layout_.metadata + json.size());
  CHECK(crc == crc32_of(json.data(), json.size()), "{}: its metadata does not match its checksum; convert it again",
        name_);
  metadata_ = parse_metadata(json, name_);
  CHECK((header_.answers == Answers::classes) == (metadata_.classes > 0),
        "{}: has {} classes, which does not fit its kind of answers; convert it again", name_, metadata_.classes);

  table_.resize(layout_.blocks());
  read_bytes(table_.data(), table_.size() * sizeof(uint32_t), layout_.table);
  checked_ = std::make_unique<std::atomic<bool>[]>(table_.size());
}

void Shard::read_answers() {
  check_bytes(layout_.answers, layout_.table);
  const bool classes = header_.answers == Answers::classes;
  labels_.resize(classes ? header_.records : 0);
  targets_.resize(classes ? 0 : header_.records);
  read_bytes(classes ? static_cast<void*>(labels_.data()) : targets_.data(), layout_.table - layout_.answers,
             layout_.answers);
}

// What stands at a byte of the file: "record 5000".
std::string Shard::place(uint64_t at) const {
  if (layout_.end == 0 || at < layout_.metadata) return "its header";
  if (at < layout_.records) return "its metadata";
  if (at < layout_.answers) return text("record {}", (at - layout_.records) / record_bytes());
  return at < layout_.table ? "its table of answers" : "its table of checksums";
}

// "block 61 (records 4990 to 5073)"
std::string Shard::describe(uint64_t block) const {
  const uint64_t begin = block * shard_block;
  if (layout_.records + begin >= layout_.answers) return text("block {} (answers)", block);
  const uint64_t last = std::min((begin + shard_block - 1) / record_bytes(), header_.records - 1);
  return text("block {} (records {} to {})", block, begin / record_bytes(), last);
}

bool Shard::matches(uint64_t block) const {
  uint8_t bytes[shard_block];
  const uint64_t begin = layout_.records + block * shard_block, n = std::min(shard_block, layout_.table - begin);
  read_bytes(bytes, n, begin);
  return crc32_of(bytes, n) == table_[block];
}

// Checks the blocks that hold these bytes, unless that was done. Two threads may check the same one: no harm.
void Shard::check_bytes(uint64_t begin, uint64_t end) const {
  const uint64_t first = (begin - layout_.records) / shard_block, last = (end - 1 - layout_.records) / shard_block;
  for (uint64_t block = first; block <= last; ++block) {
    if (checked_[block].load(std::memory_order_relaxed)) continue;
    CHECK(matches(block), "{}: {} is damaged: {} does not match its checksum; convert it again", name_,
          place(std::max(begin, layout_.records + block * shard_block)), describe(block));
    checked_[block].store(true, std::memory_order_relaxed);
  }
}

void Shard::read_raw(int64_t first, int64_t records, void* out) const {
  CHECK(first >= 0 && first + records <= count(), "{}: there is no record {}, it has 0 to {}", name_,
        first < 0 ? first : first + records - 1, count() - 1);
  const uint64_t begin = layout_.records + static_cast<uint64_t>(first) * record_bytes();
  const uint64_t bytes = static_cast<uint64_t>(records) * record_bytes();
  check_bytes(begin, begin + bytes);
  read_bytes(out, bytes, begin);
}

void Shard::read_run(int64_t first, int64_t records, float* out) const {
  if (header_.type == RecordType::f32) return read_raw(first, records, out);
  thread_local std::vector<uint8_t> scratch;
  scratch.resize(static_cast<uint64_t>(records) * record_bytes());
  read_raw(first, records, scratch.data());
  const auto numbers = records * static_cast<int64_t>(header_.features);
  if (header_.type == RecordType::u8)
    to_floats<uint8_t>(scratch.data(), numbers, metadata_.pixel_scale, out);
  else
    to_floats<int32_t>(scratch.data(), numbers, 1, out);
}

void Shard::read(std::span<const int32_t> rows, float* out) const {
  const uint64_t most = std::max<uint64_t>(1, most_scratch / record_bytes());
  for (size_t i = 0, run = 1; i < rows.size(); i += run, run = 1) {
    while (run < most && i + run < rows.size() && int64_t(rows[i + run]) == rows[i] + static_cast<int64_t>(run)) ++run;
    read_run(rows[i], static_cast<int64_t>(run), out + i * header_.features);
  }
}

// Of all that an example and its place in a split depend on.
uint64_t Shard::content_hash() const {
  const uint64_t front[] = {uint64_t(header_.type), header_.features, header_.train,
                            header_.validation,     header_.test,     std::bit_cast<uint32_t>(metadata_.pixel_scale)};
  return uint64_t(crc32_of(front, sizeof front)) << 32 | crc32_of(table_.data(), table_.size() * sizeof(uint32_t));
}

void Shard::verify() const {
  constexpr int64_t most_named = 5;
  std::string damaged;
  int64_t bad = 0;
  for (uint64_t block = 0; block < table_.size(); ++block)
    if (!matches(block) && ++bad <= most_named) damaged += (bad > 1 ? ", " : "") + describe(block);
  CHECK(bad == 0, "{}: {} of {} blocks do not match their checksums: {}{}; convert it again", name_, bad, blocks(),
        damaged, bad > most_named ? ", …" : "");
}

Dataset open_shard(const std::string& path, const Encoding* encoding) {
  auto shard = std::make_shared<const Shard>(path);
  const ShardHeader& header = shard->header();
  const ShardMetadata& metadata = shard->metadata();
  Dataset data{.name = metadata.name,
               .shape = metadata.shape,
               .features = static_cast<int64_t>(header.features),
               .classes = metadata.classes,
               .labels = shard->labels(),
               .targets = shard->targets(),
               .encoding = metadata.encoding};
  if (encoding) check_encoding(data, *encoding);
  int32_t row = 0;
  for (auto [part, count] :
       {std::pair{&data.train, header.train}, {&data.validation, header.validation}, {&data.test, header.test}}) {
    part->resize(count);
    std::iota(part->begin(), part->end(), row);
    row += static_cast<int32_t>(count);
  }
  data.records = std::move(shard);
  check(data, !encoding);
  return data;
}

}  // namespace tapedeck
