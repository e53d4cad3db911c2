// Tables. The first byte says how the answers are meant; what is taken is taken again by its own encoding, as the same.
#include "data/csv.h"
#include "tests/fuzz/fuzz.h"

using namespace tapedeck;

std::vector<std::string> seeds() {
  return {"0\xEF\xBB\xBF\"a\",\"b\",\"label\"\r\n1,2,0\r\n3,4,1\r\n5,6,0\r\n-7,.5,1",
          "1size,kind\n1.5,2\n\n2,3e4\n 7 , 4\n8,5\n", "2kind,x,y\nrose,1,2\nlily,3,4\n\"ro\"\"se\",5,6\nrose,1,9\n",
          "01,2,3\r4,5,6\r7,8,9\r1,1,3\r", "0a,b\n1,\"x\ny\"\n2,z\n3,z\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const MemoryFile file(bytes_of(data + 1, size - 1));
  DataOptions options = {.label = data[0] == '2' ? "1" : "", .regression = data[0] == '1'};
  Dataset first, second;
  if (!accepts([&] { first = load_csv(file.path(), options); })) return 0;
  promise(accepts([&] { check(first); }), "a data set that was taken is sound");
  options.encoding = &first.encoding;
  promise(accepts([&] { second = load_csv(file.path(), options); }), "its own encoding fits");
  promise(first.values == second.values && first.labels == second.labels && first.targets == second.targets,
          "and gives the same numbers");
  return 0;
}
