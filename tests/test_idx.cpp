// The IDX reader against files that are packed, cut, damaged, or something else altogether.
#include "data/idx.h"

#include <algorithm>

#include "data/packed_file.h"
#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

#include "tests/idx_bytes.h"
#include "tests/test_data_folder.h"

using namespace tapedeck;
using doctest::Contains;

TEST_CASE("idx: a gzip file that was not named .gz, or a plain one that was, loads") {
  const TemporaryFolder folder;
  const Bytes images = idx_images(5, 3, 4);
  for (const char* name : {"images", "images.gz"})
    for (const Bytes& content : {images, gzip(images)}) {
      const Idx idx = read_idx_images(folder.write(name, content));
      CHECK(idx.extents == std::vector<uint32_t>{5, 3, 4});
      CHECK(idx.bytes == Bytes(images.begin() + 16, images.end()));
    }
  const Idx labels = read_idx_labels(folder.write("labels", gzip(idx_labels(7))));
  CHECK(labels.extents == std::vector<uint32_t>{7});
  CHECK(labels.bytes == Bytes{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("idx: a file larger than every buffer keeps all its bytes") {
  const TemporaryFolder folder;
  const Bytes images = idx_images(5000, 28, 28);  // 3.9 MB
  for (const Bytes& content : {images, gzip(images)}) {
    const Idx idx = read_idx_images(folder.write("images", content));
    CHECK(idx.bytes == Bytes(images.begin() + 16, images.end()));
  }
}

// Fault: a file cut by a failed download was taken as a shorter data set.
TEST_CASE("idx: a file cut at any byte is refused, plain or gzip") {
  const TemporaryFolder folder;
  for (const Bytes& whole : {idx_images(2, 3, 4), gzip(idx_images(2, 3, 4))})
    for (size_t n = 0; n < whole.size(); ++n) {
      INFO(n << " of " << whole.size() << " bytes");
      CHECK_THROWS_AS(read_idx_images(folder.write("images", first(whole, n))), Error);
    }
  for (const Bytes& whole : {idx_labels(5), gzip(idx_labels(5))})
    for (size_t n = 0; n < whole.size(); ++n) {
      INFO(n << " of " << whole.size() << " bytes");
      CHECK_THROWS_AS(read_idx_labels(folder.write("labels", first(whole, n))), Error);
    }
}

TEST_CASE("idx: any other value of any header byte is refused") {
  const TemporaryFolder folder;
  const Bytes whole = idx_images(2, 3, 4);
  for (size_t at = 0; at < 16; ++at)
    for (int value = 0; value < 256; ++value) {
      Bytes changed = whole;
      changed[at] = static_cast<uint8_t>(value);
      INFO("byte " << at << " is " << value);
      const std::string path = folder.write("images", changed);
      if (changed == whole)
        CHECK_NOTHROW(read_idx_images(path));
      else
        CHECK_THROWS_AS(read_idx_images(path), Error);
    }
}

// Fault: gzip data whose checksum is wrong was used all the same.
TEST_CASE("idx: a flipped bit anywhere in gzip data is refused, or changes nothing") {
  const TemporaryFolder folder;
  const Bytes images = idx_images(2, 3, 4), packed = gzip(images);
  size_t refused = 0;
  for (size_t bit = 0; bit < 8 * packed.size(); ++bit) {
    Bytes changed = packed;
    changed[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    const std::string path = folder.write("images", changed);
    INFO("bit " << bit << " of " << 8 * packed.size());
    try {
      const Idx idx = read_idx_images(path);
      CHECK(idx.bytes == Bytes(images.begin() + 16, images.end()));  // the bit was of a time stamp, say
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(refused > 8 * (packed.size() - 10));  // all but some of gzip's own header

  Bytes wrong_sum = packed;
  wrong_sum[packed.size() - 8] ^= 1;
  CHECK_THROWS_WITH_AS(read_idx_images(folder.write("images", wrong_sum)), Contains("gzip data is damaged"), Error);
}

// Fault: header counts were not compared with the size of the file.
TEST_CASE("idx: the message about a cut file has both byte counts") {
  const TemporaryFolder folder;
  const Bytes cut = idx_header({60000, 28, 28}) + Bytes(10000 * 784);
  CHECK_THROWS_WITH_AS(read_idx_images(folder.write("train-images", cut)),
                       Contains("train-images: header promises 47,040,016 bytes (60000x28x28), file has 7,840,016"),
                       Error);
  CHECK_THROWS_WITH_AS(read_idx_images(folder.write("train-images", gzip(cut))),
                       Contains("promises 47,040,016 bytes (60000x28x28), unpacked file has 7,840,016"), Error);

  const Bytes packed = gzip(idx_images(100, 28, 28)), half = first(packed, packed.size() / 2);
  CHECK_THROWS_WITH_AS(read_idx_images(folder.write("x", half)), Contains("gzip data is cut short"), Error);
}

TEST_CASE("idx: what is not an IDX file is called by its name") {
  const TemporaryFolder folder;
  const auto says = [&](const Bytes& content, const char* message) {
    CHECK_THROWS_WITH_AS(read_idx_images(folder.write("x", content)), Contains(message), Error);
  };
  says({}, "x: has 0 bytes, too few for an IDX file of images");
  says(first(idx_images(1, 2, 2), 10), "x: cut short: the header has 16 bytes, but the file 10");
  says(text_bytes("<!DOCTYPE html><html>"), "x: is a web page");
  says(text_bytes("\r\n\r\n<html>"), "x: is a web page");
  says(gzip(text_bytes("<html>not found</html>")), "x: is a web page");
  says(text_bytes("PK\3\4 a zip file"), "begins with bytes 80 75 3 4, wants 0 0 8 3");
  says({0, 0, 13, 3, 0, 0, 0, 1}, "IDX type 13 is not supported");
  says({0x1F, 0x8B, 7, 7, 7, 7}, "gzip data is damaged");
  says(idx_header({0, 28, 28}), "holds nothing: its header says 0x28x28");
  CHECK_THROWS_WITH_AS(read_idx_images(folder / "none"), Contains("none: no such file"), Error);
  CHECK_THROWS_WITH_AS(read_idx_images(folder.path()), Contains("is a folder, wants a file"), Error);
}

TEST_CASE("idx: labels given as images are mislabelled, and the reverse") {
  const TemporaryFolder folder;
  const std::string images = folder.write("a", idx_images(2, 3, 4)), labels = folder.write("b", gzip(idx_labels(9)));
  CHECK_THROWS_WITH_AS(read_idx_images(labels),
                       Contains("b: mislabelled: an IDX file of rank 1 (labels), wants rank 3"), Error);
  CHECK_THROWS_WITH_AS(read_idx_labels(images),
                       Contains("a: mislabelled: an IDX file of rank 3 (images), wants rank 1"), Error);
}

// Fault: memory for the count in the header (1.6 TB) was asked for before the file was looked at.
TEST_CASE("idx: a huge count in the header costs no memory") {
  const TemporaryFolder folder;
  const Bytes huge = idx_header({0x7FFFFFFF, 28, 28}) + Bytes(784);
  for (const Bytes& content : {huge, gzip(huge)})
    CHECK_THROWS_WITH_AS(read_idx_images(folder.write("x", content)),
                         Contains("header promises 1,683,627,179,264 bytes"), Error);
  CHECK_THROWS_WITH_AS(read_idx_labels(folder.write("x", idx_header({0xFFFFFFFF}))), Contains("4,294,967,303 bytes"),
                       Error);
  const Bytes absurd = idx_header({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF});
  CHECK_THROWS_WITH_AS(read_idx_images(folder.write("x", absurd)), Contains("more than any file"), Error);
}

TEST_CASE("idx: bytes after the last element are refused") {
  const TemporaryFolder folder;
  const Bytes images = idx_images(2, 3, 4);
  const auto says = [&](const Bytes& content, const char* message) {
    CHECK_THROWS_WITH_AS(read_idx_images(folder.write("x", content)), Contains(message), Error);
  };
  says(images + Bytes{7}, "header promises 40 bytes (2x3x4), file has 41: 1 too many");
  says(gzip(images + Bytes(3)), "header promises 40 bytes (2x3x4), unpacked file has 43: 3 too many");
  says(gzip(images) + Bytes(5), "5 bytes follow the end of the gzip data");
  says(gzip(images) + Bytes{0x1F}, "1 bytes follow the end of the gzip data");
  says(gzip(images) + gzip(images), "header promises 40 bytes (2x3x4), unpacked file has 80: 40 too many");
  says(gzip(images) + Bytes{0x1F, 0x8B}, "gzip data is cut short");
  says(gzip(images) + Bytes{0x1F, 0x8B, 7, 7}, "gzip data is damaged after 40 unpacked bytes");
}

// Fault: of several gzip members, which are one file by RFC 1952, the first was taken for all, or all were refused.
TEST_CASE("idx: gzip data in several members is one file") {
  const TemporaryFolder folder;
  const Bytes images = idx_images(2000, 28, 28), wanted(images.begin() + 16, images.end());
  const auto middle = static_cast<ptrdiff_t>(images.size() / 2);
  const Bytes a(images.begin(), images.begin() + middle), b(images.begin() + middle, images.end());
  for (const Bytes& content : {gzip(a) + gzip(b), gzip({}) + gzip(a) + gzip({}) + gzip(b) + gzip({})})
    CHECK(read_idx_images(folder.write("x", content)).bytes == wanted);
  Bytes each;  // so many that members begin at many places of a read buffer
  for (size_t i = 0; i < images.size(); i += 400) {
    const Bytes member = gzip(Bytes(&images[i], images.data() + std::min(i + 400, images.size())));
    each.insert(each.end(), member.begin(), member.end());
  }
  CHECK(read_idx_images(folder.write("x", each)).bytes == wanted);
}
