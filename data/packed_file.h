// A file to read from start to end, unpacked on the way when it is gzip [RFC 1952]: one member, or several that follow
// one another, as `cat a.gz b.gz` writes. What counts is the content, which begins 1F 8B, never the name: browsers
// unpack x.gz and keep the name, or save x.gz as x.
#pragma once
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
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
  void refill();
  void end_member();

  std::string name_;
  std::ifstream file_;
  uint64_t file_bytes_ = 0;  // as it lies on disk
  std::unique_ptr<z_stream_s> inflater_;
  std::vector<uint8_t> packed_;                  // what inflater_ has not yet taken
  uint64_t packed_bytes_ = 0, plain_bytes_ = 0;  // of the members that ended
  bool finished_ = false;                        // the gzip data ended, and its checksums agreed
};

// Everything that is left. Memory grows with what is really there.
std::vector<uint8_t> read_rest(PackedFile& file);

// What a header of header_bytes, already read, promises to follow it: exactly that many bytes, up to the end. Memory
// grows with what the file really holds, not with what was promised. Throws Error with both byte counts when there are
// fewer or more; extents is the header's own word for them, "60000x28x28".
std::vector<uint8_t> read_promised(PackedFile& file, uint64_t header_bytes, uint64_t bytes, std::string_view extents);

// What to call data that lies in a file: "data/iris.csv.gz" -> "iris".
std::string data_name(const std::string& path);

}  // namespace tapedeck
