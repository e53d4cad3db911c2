// A shard: a data set in one file that trains without being loaded. Made by `tapedeck data convert`.
//
//   bytes                        what
//   64                           header: "TAPEDECK", version, type, counts, CRC (shard_header.h: ShardHeader)
//   metadata_bytes               JSON: name, shape, scale, classes, encoding
//   4                            CRC-32 of the metadata
//   records * features * size    the records, row-major, u8, f32 or i32: training, then validation, then test
//   records * 4                  the answers: int32 class ids or float numbers
//   blocks * 4                   one CRC-32 for each 64 KiB of records and answers, counted from the first record
//
// Little-endian, no padding. CRC-32 is zlib's. A header that does not add up to the size of the file is refused before
// anything else is read or allocated. A block is checked when a record in it is first read.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/shard_header.h"

namespace tapedeck {

class Shard : public Records {
 public:
  // Reads header, metadata, answers and checksums. Throws Error naming the file and what is wrong with it.
  explicit Shard(const std::string& path);

  int64_t count() const override { return static_cast<int64_t>(header_.records); }
  // Any number of threads may read at once. u8 records are scaled, i32 ones become floats.
  void read(std::span<const int32_t> rows, float* out) const override;
  void read_raw(int64_t first, int64_t records, void* out) const;  // neighbours, as they lie in the file
  uint64_t content_hash() const override;

  const ShardHeader& header() const { return header_; }
  const ShardMetadata& metadata() const { return metadata_; }
  const std::vector<int32_t>& labels() const { return labels_; }  // Answers::classes
  const std::vector<float>& targets() const { return targets_; }  // Answers::numbers

  uint64_t record_bytes() const { return header_.features * size_of(header_.type); }
  int64_t blocks() const { return static_cast<int64_t>(table_.size()); }
  void verify() const;  // reads every block; throws Error naming all that are damaged

 private:
  struct OpenFile {
    int descriptor = -1;
    ~OpenFile();
  };

  void read_front();
  void read_answers();
  void read_bytes(void* out, uint64_t n, uint64_t at) const;
  void read_run(int64_t first, int64_t records, float* out) const;
  bool matches(uint64_t block) const;
  void check_bytes(uint64_t begin, uint64_t end) const;
  std::string place(uint64_t at) const;
  std::string describe(uint64_t block) const;

  std::string path_, name_;  // name_: without its folder, for messages
  OpenFile file_;
  uint64_t file_bytes_ = 0;
  ShardHeader header_;
  ShardLayout layout_ = {};
  ShardMetadata metadata_;
  std::vector<uint32_t> table_;                   // checksums by block
  std::unique_ptr<std::atomic<bool>[]> checked_;  // by block
  std::vector<int32_t> labels_;
  std::vector<float> targets_;
};

// A shard with answers as a data set: rows are the records, and the parts lie one behind the other. With the encoding
// of a model it must have been made the same way, else Error.
Dataset open_shard(const std::string& path, const Encoding* encoding = nullptr);

}  // namespace tapedeck
