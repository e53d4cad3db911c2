// Weights on disk: what was written comes back, and a file that lies about itself is refused before it is believed.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/checkpoint.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;

namespace {

// A file with this header and these numbers behind it.
std::string file_of(const std::string& header, const std::string& numbers) {
  const uint64_t length = header.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &length, 8);
  return out + header + numbers;
}

std::string tensor_entry(const char* dtype, const std::string& shape, const std::string& offsets) {
  return std::string(R"({"w":{"dtype":")") + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

std::string refusal(const std::string& bytes) {
  try {
    from_safetensors(bytes, "some.safetensors");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

void refuses(const std::string& bytes, const char* part) {
  const std::string message = refusal(bytes);
  INFO("\"" << message << "\" should say " << part);
  CHECK(message.find("some.safetensors") == 0);
  CHECK(message.find(part) != std::string::npos);
}

std::vector<NamedTensor> examples() {
  return {{"layer.weight", Tensor::from(std::vector<float>{1, -2.5f, 0, -0.0f, INFINITY, 1e-40f}, {2, 3})},
          {"layer.bias", Tensor::from(std::vector<double>{0.1, -1e300}, {2})},
          {"scalar", Tensor::from(std::vector<int32_t>{-7}, {})},
          {"empty", Tensor::from(std::vector<float>{}, {0, 4})},
          {"odd \"name\" with \\ and é", Tensor::from(std::vector<int32_t>{1, 2, 3}, {3, 1})},
          {"half", Tensor::full({5}, DType::f16, Device::cpu, 0.5)},
          {"brain", Tensor::full({2, 2}, DType::bf16, Device::cpu, -3)}};
}

}  // namespace

TEST_CASE("named tensors come back bit for bit, in their order") {
  const std::vector<NamedTensor> before = examples();
  const std::string bytes = to_safetensors(before);
  const std::vector<NamedTensor> after = from_safetensors(bytes, "round trip");
  REQUIRE(after.size() == before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    const Tensor& tensor = before[i].second;
    INFO(before[i].first);
    CHECK(after[i].first == before[i].first);
    CHECK(after[i].second.shape == tensor.shape);
    CHECK(after[i].second.dtype == tensor.dtype);
    CHECK(std::memcmp(after[i].second.data.begin(), tensor.data.begin(), tensor.bytes()) == 0);
  }
  CHECK(to_safetensors(after) == bytes);
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  CHECK(header % 8 == 0);  // so that the numbers are aligned
  CHECK(from_safetensors(to_safetensors({}), "none").empty());
}

TEST_CASE("the header is the format's own, so that other programs read it") {
  const std::string bytes = to_safetensors({{"w", Tensor::from(std::vector<float>{1, 2}, {1, 2})}});
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  CHECK(header["w"] == nlohmann::json::parse(R"({"dtype": "F32", "shape": [1, 2], "data_offsets": [0, 8]})"));
  CHECK(header["__metadata__"]["format_version"] == "1");
  CHECK(bytes.size() == 8 + length + 8);
  CHECK(std::memcmp(bytes.data() + 8 + length, "\x00\x00\x80\x3f\x00\x00\x00\x40", 8) == 0);  // 1 and 2, little-endian
}

// Fault: a file that was cut short was read as a smaller model.
TEST_CASE("a file cut short anywhere is refused") {
  const std::string bytes = to_safetensors(
      {{"w", Tensor::from(std::vector<float>{1, 2, 3}, {3})}, {"v", Tensor::from(std::vector<double>{4}, {1})}});
  for (size_t length = 0; length < bytes.size(); ++length) {
    INFO("first " << length << " of " << bytes.size() << " bytes");
    CHECK(refusal(bytes.substr(0, length)).find("some.safetensors") == 0);
  }
  CHECK(refusal(bytes).empty());
}

TEST_CASE("a header that lies about sizes, types or places is refused in a sentence") {
  const std::string eight(8, '\0');
  CHECK(refusal(file_of(tensor_entry("F32", "[2]", "[0,8]"), eight)).empty());  // else the refusals prove nothing
  refuses(file_of(tensor_entry("F32", "[2]", "[0,12]"), eight), "8 bytes");
  refuses(file_of(tensor_entry("F32", "[2]", "[4,12]"), eight), "8 bytes");
  refuses(file_of(tensor_entry("F32", "[2]", "[8,0]"), eight), "8 bytes");
  refuses(file_of(tensor_entry("F32", "[3]", "[0,8]"), eight), "12 bytes");
  refuses(file_of(tensor_entry("F64", "[2]", "[0,8]"), eight), "16 bytes");
  refuses(file_of(tensor_entry("F32", "[2]", "[0]"), eight), "w");
  refuses(file_of(tensor_entry("F32", "[2]", "[18446744073709551608,0]"), eight), "8 bytes");
  refuses(file_of(tensor_entry("F8_E4M3", "[8]", "[0,8]"), eight), "F8_E4M3");
  for (const char* shape : {"[-2]", "[4611686018427387904]", "[4294967296,4294967296]", "[1,1,1,1,1,1,2]"}) {
    INFO(shape);
    CHECK_THROWS_AS(from_safetensors(file_of(tensor_entry("F32", shape, "[0,8]"), eight), "some"), Error);
  }
  for (const char* header : {R"({"w":3})", R"({"w":{}})", R"({"w":{"dtype":1,"shape":[2],"data_offsets":[0,8]}})",
                             R"({"w":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})",
                             R"({"w":{"dtype":"F32","shape":["2"],"data_offsets":[0,8]}})",
                             R"({"w":{"dtype":"F32","shape":[2],"data_offsets":"0,8"}})", "[]", "7", "{", ""}) {
    INFO(header);
    CHECK(refusal(file_of(header, eight)).find("some.safetensors") == 0);
  }
}

TEST_CASE("a header length that no file can have is refused, not allocated") {
  for (const uint64_t length : {uint64_t{1} << 63, ~uint64_t{0}, ~uint64_t{0} - 7, uint64_t{1} << 40, uint64_t{11}}) {
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    refuses(bytes + "{}        ", "promises");
  }
}

TEST_CASE("a newer format is refused with both versions, and one without is taken as a foreign file") {
  const auto with_version = [](const std::string& version) {
    return file_of(R"({"__metadata__":{"format_version":)" + version + "}}", "");
  };
  CHECK(refusal(with_version("\"1\"")).empty());
  refuses(with_version("\"2\""), "format version 2");
  refuses(with_version("\"2\""), "up to 1");
  refuses(with_version("\"99999999999999999999\""), "version");
  refuses(with_version("\"soon\""), "version");
  refuses(with_version("2"), "");
  CHECK(refusal(file_of(R"({"__metadata__":{"format":"pt"}})", "")).empty());
}
