// A file to read from start to end, unpacked on the way when it is gzip (RFC 1952). What counts is the content, which
// begins 1F 8B, never the name: browsers unpack x.gz and keep the name, or save x.gz as x.
#pragma once
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

struct z_stream_s;

namespace tapedeck {

class PackedFile {
 public:
  // Throws Error when path is missing, unreadable or not a file.
  explicit PackedFile(const std::string& path);
  ~PackedFile();

  // Up to n bytes to out; fewer only at the end of the content. Throws Error when the gzip data is cut short or
  // damaged, and when the file goes on after the end of the gzip data.
  size_t read(uint8_t* out, size_t n);

  bool is_gzip() const { return inflater_ != nullptr; }
  const std::string& name() const { return name_; }  // without its folder, for messages

 private:
  size_t unpack(uint8_t* out, size_t n);
  size_t refill();

  std::string name_;
  std::ifstream file_;
  uint64_t file_bytes_ = 0;  // as it lies on disk
  std::unique_ptr<z_stream_s> inflater_;
  std::vector<uint8_t> packed_;  // what inflater_ has not yet taken
  bool finished_ = false;        // the gzip data ended, and its checksum agreed
};

}  // namespace tapedeck
