#include "data/idx.h"

#include <cctype>

#include "data/encoding.h"
#include "data/packed_file.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

const char* kind_of_rank(int rank) { return rank == 3 ? "images" : rank == 1 ? "labels" : "something else"; }

// Throws unless the first four bytes say "unsigned bytes of this rank".
void check_magic(const PackedFile& file, const uint8_t* magic, size_t size, int rank) {
  CHECK(size == 4, "{}: has {} bytes, too few for an IDX file of {}; fetch it again", file.name(), size,
        kind_of_rank(rank));
  CHECK(magic[0] != '<' && !std::isspace(magic[0]),
        "{}: is a web page, not an IDX file of {}: the download gave an error page; fetch it again", file.name(),
        kind_of_rank(rank));
  CHECK(magic[0] == 0 && magic[1] == 0, "{}: is not an IDX file: begins with bytes {} {} {} {}, wants 0 0 8 {}",
        file.name(), magic[0], magic[1], magic[2], magic[3], rank);
  CHECK(magic[2] == 8, "{}: IDX type {} is not supported, wants 8 (unsigned bytes)", file.name(), magic[2]);
  CHECK(magic[3] == rank, "{}: mislabelled: an IDX file of rank {} ({}), wants rank {} ({})", file.name(), magic[3],
        kind_of_rank(magic[3]), rank, kind_of_rank(rank));
}

Idx read_idx(const std::string& path, int rank) {
  PackedFile file(path);
  uint8_t header[4 + 3 * 4];
  check_magic(file, header, file.read(header, 4), rank);
  const size_t header_bytes = 4 + 4 * rank, got = 4 + file.read(header + 4, 4 * rank);
  CHECK(got == header_bytes, "{}: cut short: the header has {} bytes, but the file {}; fetch it again", file.name(),
        header_bytes, got);

  Idx idx;
  unsigned __int128 elements = 1;  // three extents of 32 bits
  std::string extents;
  for (int i = 0; i < rank; ++i) {
    const uint8_t* b = header + 4 + 4 * i;
    idx.extents.push_back(uint32_t(b[0]) << 24 | uint32_t(b[1]) << 16 | uint32_t(b[2]) << 8 | b[3]);
    elements *= idx.extents.back();
    if (i > 0) extents += 'x';
    extents += std::to_string(idx.extents.back());
  }
  CHECK(elements > 0, "{}: holds nothing: its header says {}", file.name(), extents);
  CHECK(elements < (uint64_t(1) << 63), "{}: header promises {} bytes, more than any file: damaged; fetch it again",
        file.name(), extents);
  idx.bytes = read_promised(file, header_bytes, static_cast<uint64_t>(elements), extents);
  return idx;
}

}  // namespace

Idx read_idx_images(const std::string& path) { return read_idx(path, 3); }
Idx read_idx_labels(const std::string& path) { return read_idx(path, 1); }

std::string IdxPair::shape() const {
  return std::to_string(images.extents[1]) + "x" + std::to_string(images.extents[2]) + "x1";
}

IdxPair read_idx_pair(const std::string& image_path, const std::string& label_path) {
  IdxPair pair{.images = read_idx_images(image_path), .labels = {}};
  const Idx labels = read_idx_labels(label_path);
  CHECK(pair.images.extents[0] == labels.extents[0], "{} images in {}, but {} labels in {}: files of different sets?",
        pair.images.extents[0], image_path, labels.extents[0], label_path);
  pair.labels.assign(labels.bytes.begin(), labels.bytes.end());
  return pair;
}

Dataset load_idx(const std::string& path, const DataOptions& options) {
  if (options.label.empty()) throw UsageError(text("idx:{}: say with --label FILE where the labels are", path));
  IdxPair pair = read_idx_pair(path, options.label);
  Dataset data{.name = data_name(path), .shape = pair.shape(), .features = pair.features()};
  data.pixels = std::move(pair.images.bytes);
  data.pixel_scale = 1.0f / 255;
  take_answers(data, std::vector<double>(pair.labels.begin(), pair.labels.end()), options, options.label);
  split_by_content(data, options);
  check(data, !options.encoding);
  return data;
}

}  // namespace tapedeck
