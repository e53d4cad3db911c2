// .npy files as numpy writes them, and as no program does.
#include "data/npy.h"

#include <cstring>
#include <map>

#include "data/catalog.h"
#include "engine/check.h"
#undef CHECK  // below, CHECK is doctest's
#include <doctest/doctest.h>

#include "tests/idx_bytes.h"
#include "tests/test_data_folder.h"

using namespace tapedeck;
using doctest::Contains;

namespace {

template <class T>
Bytes bytes_of(const std::vector<T>& items) {
  Bytes bytes(items.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), items.data(), bytes.size());
  return bytes;
}

// A file with this dictionary; version 1, 2 or 3.
Bytes npy(std::string_view dictionary, const Bytes& elements, uint8_t version = 1) {
  Bytes bytes = {0x93, 'N', 'U', 'M', 'P', 'Y', version, 0};
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes.push_back(static_cast<uint8_t>(dictionary.size() >> 8 * i));
  return bytes + text_bytes(dictionary) + elements;
}

template <class T>
Bytes npy(std::string_view descr, const std::vector<int64_t>& shape, const std::vector<T>& items) {
  return text_bytes(npy_header(descr, shape)) + bytes_of(items);
}

Npy read(const Bytes& content) {
  const TemporaryFolder folder;
  return read_npy(folder.write("x.npy", content));
}

void refuses(const Bytes& content, const char* message) {
  CHECK_THROWS_WITH_AS(read(content), Contains(message), Error);
}

std::vector<double> numbers(const Npy& array) {
  std::vector<double> out;
  for (int64_t i = 0; i < array.count(); ++i) out.push_back(array.at(i));
  return out;
}

using Shape = std::vector<int64_t>;
using Doubles = std::vector<double>;

}  // namespace

TEST_CASE("npy: the header that is written is the one that numpy.save writes") {
  const auto wanted = [](std::string dictionary, size_t total) {  // before the elements: a multiple of 64
    dictionary.append(total - 11 - dictionary.size(), ' ');
    const auto length = static_cast<char>(total - 10);
    return std::string("\x93NUMPY\1\0", 8) + length + '\0' + dictionary + '\n';
  };
  CHECK(npy_header("<f4", Shape{2, 3}) == wanted("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", 128));
  CHECK(npy_header("|u1", Shape{3}) == wanted("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }", 128));
  CHECK(npy_header("<f8", Shape{}) == wanted("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 128));
  for (int digits = 1; digits < 19; ++digits) {
    const Shape shape(3, static_cast<int64_t>(std::stoull(std::string(digits, '9'))));
    const std::string header = npy_header("<i8", shape);
    CHECK(header.size() % 64 == 0);
    CHECK(header.back() == '\n');
    CHECK(parse_npy_header(header.substr(10), "x").shape == shape);
  }
}

TEST_CASE("npy: every kind of number is read, in all three versions, plain or gzip") {
  const auto is = [](const Bytes& content, const Doubles& wanted) {
    for (const Bytes& bytes : {content, gzip(content)}) CHECK(numbers(read(bytes)) == wanted);
  };
  is(npy<uint8_t>("|u1", {2}, {0, 255}), {0, 255});
  is(npy<int8_t>("|i1", {2}, {-128, 127}), {-128, 127});
  is(npy<uint16_t>("<u2", {2}, {0, 65535}), {0, 65535});
  is(npy<int16_t>("<i2", {2}, {-32768, 1}), {-32768, 1});
  is(npy<uint32_t>("<u4", {1}, {4294967295u}), {4294967295.0});
  is(npy<int32_t>("<i4", {1}, {-2147483647}), {-2147483647});
  is(npy<uint64_t>("<u8", {1}, {uint64_t(1) << 63}), {0x1p63});
  is(npy<int64_t>("<i8", {2}, {-5, int64_t(1) << 40}), {-5, 0x1p40});
  is(npy<float>("<f4", {2}, {0.5f, -1e30f}), {0.5, double(-1e30f)});
  is(npy<double>("<f8", {2}, {0.1, 1e300}), {0.1, 1e300});
  is(npy<uint8_t>("|b1", {3}, {0, 1, 7}), {0, 1, 1});
  is(npy<float>("<f4", {}, {3}), {3});
  for (const uint8_t version : {1, 2, 3}) {
    const Npy array = read(npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2)}", {5, 6}, version));
    CHECK(array.shape == Shape{1, 2});
    CHECK(array.bytes == Bytes{5, 6});
  }
}

TEST_CASE("npy: an array in Fortran's order comes out in C's") {
  // a[i][j][k] = 100 i + 10 j + k of shape (2, 3, 4), the first index running fastest
  std::vector<int32_t> items;
  Doubles wanted;
  for (int k = 0; k < 4; ++k)
    for (int j = 0; j < 3; ++j)
      for (int i = 0; i < 2; ++i) items.push_back(100 * i + 10 * j + k);
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j)
      for (int k = 0; k < 4; ++k) wanted.push_back(100 * i + 10 * j + k);
  const Npy array = read(npy("{'descr': '<i4', 'fortran_order': True, 'shape': (2, 3, 4), }\n", bytes_of(items)));
  CHECK(array.shape == Shape{2, 3, 4});
  CHECK(numbers(array) == wanted);
}

TEST_CASE("npy: the header is a Python dictionary with three keys in any order, and nothing else") {
  for (const char* header : {"{'shape':(2,),'descr':'<f4','fortran_order':False}",
                             "  {  \"descr\" : \"<f4\" , 'shape' : ( 2 , ) , 'fortran_order' : False , }  \n",
                             "{'descr': '<f4', 'shape': (2),"
                             " 'fortran_order': False}"}) {
    const NpyHeader parsed = parse_npy_header(header, "x");
    CHECK(parsed.descr == "<f4");
    CHECK(parsed.shape == Shape{2});
    CHECK_FALSE(parsed.fortran_order);
  }
  CHECK(parse_npy_header("{'descr': '<f4', 'shape': (), 'fortran_order': True}", "x").shape.empty());

  const std::map<std::string, const char*> bad = {
      {"", "x: its header is damaged: { is missing before its end"},
      {"{}", "lacks descr"},
      {"{'descr': '<f4', 'shape': (2,)}", "lacks fortran_order"},
      {"{'descr': '<f4', 'fortran_order': False}", "lacks shape"},
      {"{'descr': '<f4', 'descr': '<f4', ", "has descr twice"},
      {"{'descr': [('a', '<f4')], ", "wants a text in quotes at \"[('a', '<f4')]"},
      {"{'descr': '<f4", "wants a text in quotes"},
      {"{'more': 1}", "unknown key more"},
      {"{'descr' '<f4'}", ": is missing before \"'<f4'}\""},
      {"{'shape': 2}", "( is missing before \"2}\""},
      {"{'shape': (2 3)}", ") is missing before \"3)}\""},
      {"{'shape': (-2,)}", "wants an extent, a whole number from 0, at \"-2,)}\""},
      {"{'shape': (2.5,)}", ") is missing before \".5,)}\""},
      {"{'shape': (,)}", "wants an extent"},
      {"{'shape': (99999999999999999999,)}", "wants an extent"},
      {"{'shape': (2,", "wants an extent, a whole number from 0, at its end"},
      {"{'fortran_order': 0}", "wants True or False at \"0}\""},
      {"{'descr': '<f4', 'shape': (2,), 'fortran_order': False} x", "goes on after the dictionary with \"x\""},
      {"{'descr': '<f4' 'shape': (2,)", "} is missing before"}};
  for (const auto& entry : bad) {
    INFO(entry.first);
    CHECK_THROWS_WITH_AS(parse_npy_header(entry.first, "x"), Contains(entry.second), Error);
  }
}

TEST_CASE("npy: what is not such a file, or not numbers of ours, is refused in a sentence") {
  refuses({}, "x.npy: is no .npy file");
  refuses(text_bytes("PK\3\4 npz"), "x.npy: is no .npy file");
  refuses(npy("{}", {}, 4), ".npy version 4.0 is not known, wants 1.0, 2.0 or 3.0");
  const auto with_descr = [](const std::string& descr) {
    return npy("{'descr': '" + descr + "', 'fortran_order': False, 'shape': (1,), }", Bytes(8));
  };
  refuses(with_descr(">\x1b"), "its numbers are big-endian (>\\x1b); save it as array.astype('<\\x1b')");
  refuses(with_descr(">f4"), "its numbers are big-endian (>f4); save it as array.astype('<f4')");
  refuses(with_descr("<f2"), "its elements are <f2, wants one of |u1 |i1 <u2");
  refuses(with_descr("<c8"), "its elements are <c8");
  refuses(with_descr("|O"), "its elements are |O");
  refuses(with_descr(""), "its elements are ");
}

// Fault: sizes of a header were trusted, so a damaged one asked for terabytes, or overflowed to a few bytes.
TEST_CASE("npy: sizes are checked against the file, and both counts are said") {
  const auto with_shape = [](const std::string& shape, size_t bytes) {
    return npy("{'descr': '<f8', 'fortran_order': False, 'shape': " + shape + "}", Bytes(bytes));
  };
  const std::string before = std::to_string(with_shape("(3, 2)", 0).size() + 48);  // both in one header length
  refuses(with_shape("(3, 2)", 47), ("header promises " + before + " bytes (3x2), file has ").c_str());
  refuses(with_shape("(3, 2)", 50), "2 too many");
  refuses(gzip(with_shape("(3, 2)", 50)), "unpacked file has");
  refuses(with_shape("(0, 2)", 0), "holds nothing: its shape is 0x2");
  refuses(with_shape("(1099511627776, 2)", 100), "header promises 17,592,186,044,");
  refuses(with_shape("(4294967296, 4294967296, 4294967296)", 0), "is larger than any file");
  refuses(with_shape("(2305843009213693952,)", 0), "a shape of 2305843009213693952 is larger than any file");
  std::string deep = "(";
  for (int i = 0; i < 40; ++i) deep += "1,";
  refuses(with_shape(deep + ")", 8), "has 40 axes, wants at most 32");
  Bytes huge_header = {0x93, 'N', 'U', 'M', 'P', 'Y', 2, 0, 0xFF, 0xFF, 0xFF, 0xFF};
  refuses(huge_header, "a header of 4294967295 bytes, wants at most 65536");
}

TEST_CASE("npy: a file cut at any byte is refused, and one with a changed header read or refused") {
  const TemporaryFolder folder;
  const Bytes whole = npy<float>("<f4", {2, 3}, {1, 2, 3, 4, 5, 6});
  for (const Bytes& content : {whole, gzip(whole)})
    for (size_t n = 0; n < content.size(); ++n) {
      INFO(n << " of " << content.size() << " bytes");
      CHECK_THROWS_AS(read_npy(folder.write("x.npy", first(content, n))), Error);
    }
  int refused = 0;
  for (size_t at = 0; at < 80; ++at)
    for (const char value : std::string("\0 '(),09:{}\x93\xFF", 13)) {
      Bytes changed = whole;
      changed[at] = static_cast<uint8_t>(value);
      try {
        const size_t bytes = read_npy(folder.write("x.npy", changed)).bytes.size();
        CHECK(bytes == 24);
      } catch (const Error&) {
        ++refused;
      }
    }
  CHECK(refused > 500);
}
