// Arrays with the answers in the last column.
#include "data/npy.h"
#include "tests/fuzz/fuzz.h"

using namespace tapedeck;

namespace {

std::string array(const char* descr, const std::vector<int64_t>& shape, const std::string& elements) {
  return npy_header(descr, shape) + elements;
}

std::string with_header(char version, const std::string& dictionary, const std::string& elements) {
  std::string out = std::string("\x93NUMPY") + version + '\0';
  if (version == 1)
    out += raw(std::vector<uint16_t>{static_cast<uint16_t>(dictionary.size())});
  else
    out += raw(std::vector<uint32_t>{static_cast<uint32_t>(dictionary.size())});
  return out + dictionary + elements;
}

}  // namespace

std::vector<std::string> seeds() {
  const std::vector<float> floats = {1, 2, 0, 3, 4, 1, 5, 6, 0, 7, 8, 1};
  return {array("<f4", {4, 3}, raw(floats)),
          array("|u1", {4, 3}, std::string("\1\2\0\3\4\1\5\6\0\7\1\1", 12)),
          array("<i8", {}, std::string(8, '\1')),
          array("<f8", {0, 4}, ""),
          with_header(2, "{'descr': '<f4', 'fortran_order': True, 'shape': (4, 3), }\n", raw(floats)),
          with_header(3, "{\"shape\":(12,),\"fortran_order\":False,\"descr\":\"<f4\"}", raw(floats)),
          with_header(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 3), }\n", "")};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(bytes_of(data, size));
  accepts([&] {
    const Npy array = read_npy(file.path());
    for (int64_t i = 0; i < array.count(); ++i) array.at(i);
    const std::string header = npy_header(array.descr, array.shape);
    promise(header.size() % 64 == 0, "elements begin at a multiple of 64");
  });
  for (const bool numbers : {false, true}) {
    Dataset set;
    if (accepts([&] { set = load_npy(file.path(), {.regression = numbers}); }))
      promise(accepts([&] { check(set); }), "a data set that was taken is sound");
  }
  return 0;
}
