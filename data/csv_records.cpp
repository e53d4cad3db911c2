#include "data/csv_records.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>

#include "data/checksum.h"
#include "engine/check.h"

namespace tapedeck {

CsvRecords::CsvRecords(const std::string& path, const std::string& label) {
  CsvReader reader(path);
  CHECK(!reader.is_gzip(), "{}: is packed by gzip, which cannot be read from its middle; unpack it first", path);
  layout_ = read_layout(reader, label);
  hash_ = fnv1a_of_nothing;
  for (bool more = !layout_.has_header() || reader.next(); more; more = reader.next()) {
    layout_.check_fields(reader.fields().size(), reader.line());
    answers_.push_back(layout_.number(reader.fields()[layout_.label], layout_.label, reader.line()));
    places_.push_back({reader.offset(), reader.bytes(), reader.line()});
    for (const std::string_view field : reader.fields())
      hash_ = fnv1a(",", 1, fnv1a(field.data(), field.size(), hash_));
  }
  CHECK(!places_.empty(), "{}: has a header and no rows", layout_.file);
  CHECK(places_.size() <= size_t(std::numeric_limits<int32_t>::max()), "{}: has {} rows, more than 2^31", layout_.file,
        places_.size());
  file_ = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  CHECK(file_ >= 0, "{}: cannot be opened: {}", path, std::strerror(errno));
}

CsvRecords::~CsvRecords() {
  if (file_ >= 0) close(file_);
}

void CsvRecords::read(std::span<const int32_t> rows, float* out) const {
  std::vector<char> text;
  CsvRecord record;
  for (const int32_t row : rows) {
    CHECK(row >= 0 && row < count(), "{}: row {} is asked for, but there are rows 0 to {}", layout_.file, row,
          count() - 1);
    const Place& place = places_[static_cast<size_t>(row)];
    text.resize(place.bytes);
    for (size_t have = 0; have < text.size();) {
      const ssize_t got = pread(file_, text.data() + have, text.size() - have, off_t(place.offset + have));
      if (got < 0 && errno == EINTR) continue;
      CHECK(got > 0, "{}: row {} at line {} cannot be read: {}", layout_.file, row, place.line,
            got < 0 ? std::strerror(errno) : "the file is shorter than it was");
      have += static_cast<size_t>(got);
    }
    split_record(text, true, layout_.file, place.line, record);
    layout_.check_fields(record.fields.size(), place.line);  // the file may have changed
    for (size_t i = 0; i < layout_.count; ++i)
      if (i != layout_.label) *out++ = static_cast<float>(layout_.number(record.fields[i], i, place.line));
  }
}

}  // namespace tapedeck
