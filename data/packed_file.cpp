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
  CHECK(std::filesystem::is_regular_file(path, failed), "{}: no such file", path);
  file_.open(path, std::ios::binary);
  CHECK(file_, "{}: cannot be opened: check its permissions", path);
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

size_t PackedFile::refill() {
  file_.read(reinterpret_cast<char*>(packed_.data()), static_cast<std::streamsize>(packed_.size()));
  CHECK(!file_.bad(), "{}: reading failed", name_);
  inflater_->next_in = packed_.data();
  inflater_->avail_in = static_cast<uInt>(file_.gcount());
  return inflater_->avail_in;
}

size_t PackedFile::unpack(uint8_t* out, size_t n) {
  z_stream& z = *inflater_;
  size_t done = 0;
  while (done < n && !finished_) {
    if (z.avail_in == 0)
      CHECK(refill() > 0,
            "{}: gzip data is cut short: {} bytes of file unpack to {} bytes and then end; fetch it again", name_,
            grouped(file_bytes_), grouped(z.total_out));
    const size_t room = std::min<size_t>(n - done, std::numeric_limits<uInt>::max());
    z.next_out = out + done;
    z.avail_out = static_cast<uInt>(room);
    const int result = inflate(&z, Z_NO_FLUSH);
    done += room - z.avail_out;
    CHECK(result == Z_OK || result == Z_STREAM_END,
          "{}: gzip data is damaged after {} unpacked bytes ({}); fetch it again", name_, grouped(z.total_out),
          z.msg ? z.msg : "unknown error");
    if (result != Z_STREAM_END) continue;
    finished_ = true;
    const uint64_t rest = file_bytes_ - z.total_in;
    CHECK(rest == 0, "{}: {} bytes follow the end of the gzip data at byte {}; fetch it again", name_, grouped(rest),
          grouped(z.total_in));
  }
  return done;
}

}  // namespace tapedeck
