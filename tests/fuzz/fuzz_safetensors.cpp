// Weights: what is taken is written, read again as the same, and exported.
#include "apps/npz.h"
#include "engine/safetensors.h"
#include "tests/fuzz/fuzz.h"

using namespace tapedeck;

namespace {

std::string file_of(const std::string& header, const std::string& numbers) {
  return raw(std::vector<uint64_t>{header.size()}) + header + numbers;
}

}  // namespace

std::vector<std::string> seeds() {
  return {to_safetensors({}),
          to_safetensors({{"a.weight", Tensor::full({2, 3}, DType::f32, Device::cpu, 1)},
                          {"a.bias", Tensor::full({3}, DType::bf16, Device::cpu, 2)}},
                         {{"step", "200"}}),
          to_safetensors({{"scalar", Tensor::full({}, DType::f64, Device::cpu, 1)},
                          {"empty", Tensor::full({0, 4}, DType::f16, Device::cpu, 1)},
                          {"é", Tensor::full({1, 1, 1}, DType::i32, Device::cpu, 5)}}),
          file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},)"
                  R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                  "12345678")};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Safetensors first, second;
  if (!accepts([&] { first = read_safetensors(bytes_of(data, size), "file"); })) return 0;
  const std::string written = to_safetensors(first.tensors, first.metadata);
  promise(accepts([&] { second = read_safetensors(written, "again"); }), "what we write we read");
  promise(second.tensors.size() == first.tensors.size(), "every tensor comes back");
  promise(to_safetensors(second.tensors, second.metadata) == written, "everything comes back");
  promise(accepts([&] { to_npz(first.tensors); }), "what we read we export");
  return 0;
}
