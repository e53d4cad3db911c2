#include "data/packed_file.h"

#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "data/byte_count.h"
#include "engine/check.h"

namespace tapedeck {

PackedFile::PackedFile(const std::string& path) : name_(std::filesystem::path(path).filename().string()) {
  std::error_code failed;
  if (std::filesystem::is_directory(path, failed)) throw Error(text("{}: is a folder, wants a file", path));
  if (std::filesystem::exists(path, failed) && !std::filesystem::is_regular_file(path, failed))
    throw Error(text("{}: is a pipe or a device, wants a file", path));
  if (!std::filesystem::is_regular_file(path, failed)) throw Error(text("{}: no such file", path));
  file_.open(path, std::ios::binary);
  if (!file_) throw Error(text("{}: cannot be opened: check its permissions", path));
  file_bytes_ = std::filesystem::file_size(path);

  if (file_.get() == 0x1F && file_.get() == 0x8B) {
    inflater_ = std::make_unique<z_stream>();
    const int gzip_only = 15 + 16;  // zlib's code for "gzip header expected, largest window"
    CHECK(inflateInit2(inflater_.get(), gzip_only) == Z_OK, "{}: zlib has no memory for unpacking", name_);
    packed_.resize(1 << 16);
  }
  file_.clear();
  file_.seekg(0);
}

PackedFile::~PackedFile() {
  if (inflater_) inflateEnd(inflater_.get());
}

size_t PackedFile::read(uint8_t* out, size_t n) {
  if (is_gzip()) return unpack(out, n);
  file_.read(reinterpret_cast<char*>(out), static_cast<std::streamsize>(n));
  CHECK(!file_.bad(), "{}: reading failed", name_);
  return static_cast<size_t>(file_.gcount());
}

// Moves what is left to the front and reads on behind it.
void PackedFile::refill() {
  z_stream& z = *inflater_;
  std::copy_n(z.next_in, z.avail_in, packed_.data());
  z.next_in = packed_.data();
  const size_t room = packed_.size() - z.avail_in;
  file_.read(reinterpret_cast<char*>(packed_.data()) + z.avail_in, static_cast<std::streamsize>(room));
  CHECK(!file_.bad(), "{}: reading failed", name_);
  z.avail_in += static_cast<uInt>(file_.gcount());
}

size_t PackedFile::unpack(uint8_t* out, size_t n) {
  z_stream& z = *inflater_;
  size_t done = 0;
  while (done < n && !finished_) {
    if (z.avail_in == 0) refill();
    if (z.avail_in == 0)
      throw Error(text("{}: gzip data is cut short: {} bytes of file unpack to {} bytes and then end; fetch it again",
                       name_, grouped(file_bytes_), grouped(plain_bytes_ + z.total_out)));
    const size_t room = std::min<size_t>(n - done, std::numeric_limits<uInt>::max());
    z.next_out = out + done;
    z.avail_out = static_cast<uInt>(room);
    const int result = inflate(&z, Z_NO_FLUSH);
    done += room - z.avail_out;
    if (result != Z_OK && result != Z_STREAM_END)
      throw Error(text("{}: gzip data is damaged after {} unpacked bytes ({}); fetch it again", name_,
                       grouped(plain_bytes_ + z.total_out), z.msg ? z.msg : "unknown error"));
    if (result == Z_STREAM_END) end_member();
  }
  return done;
}

// Either the file ends here, or another member begins.
void PackedFile::end_member() {
  z_stream& z = *inflater_;
  packed_bytes_ += z.total_in, plain_bytes_ += z.total_out;
  if (z.avail_in < 2) refill();
  finished_ = z.avail_in == 0;
  if (finished_) return;
  if (z.avail_in < 2 || z.next_in[0] != 0x1F || z.next_in[1] != 0x8B)
    throw Error(text("{}: {} bytes follow the end of the gzip data at byte {}; fetch it again", name_,
                     grouped(file_bytes_ - packed_bytes_), grouped(packed_bytes_)));
  CHECK(inflateReset(&z) == Z_OK, "{}: zlib cannot go on unpacking", name_);
}

std::vector<uint8_t> read_rest(PackedFile& file) {
  std::vector<uint8_t> bytes;
  for (size_t have = 0;;) {
    bytes.resize(have + std::max<size_t>(have, 1 << 16));
    const size_t got = file.read(bytes.data() + have, bytes.size() - have), room = bytes.size() - have;
    have += got;
    if (got == room) continue;
    bytes.resize(have);
    return bytes;
  }
}

std::vector<uint8_t> read_promised(PackedFile& file, uint64_t header_bytes, uint64_t bytes, std::string_view extents) {
  const uint64_t promised = header_bytes + bytes;
  const char* const what = file.is_gzip() ? "unpacked file" : "file";
  std::vector<uint8_t> content;
  for (uint64_t have = 0; have < bytes;) {  // doubles what was really read: a header that lies costs nothing
    const uint64_t room = std::min(bytes - have, std::max<uint64_t>(have, 1 << 20));
    content.resize(have + room);
    const size_t got = file.read(content.data() + have, room);
    have += got;
    CHECK(got == room, "{}: header promises {} bytes ({}), {} has {}: download cut short? Fetch it again", file.name(),
          grouped(promised), extents, what, grouped(header_bytes + have));
  }
  uint64_t rest = 0;
  std::vector<uint8_t> scratch(1 << 16);
  while (const size_t got = file.read(scratch.data(), scratch.size())) rest += got;
  CHECK(rest == 0, "{}: header promises {} bytes ({}), {} has {}: {} too many; fetch it again", file.name(),
        grouped(promised), extents, what, grouped(promised + rest), grouped(rest));
  return content;
}

std::string data_name(const std::string& path) {
  const std::filesystem::path name = std::filesystem::path(path).filename();
  return (name.extension() == ".gz" ? name.stem() : name).stem().string();
}

}  // namespace tapedeck
