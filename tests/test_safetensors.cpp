// Weights on disk: what was written comes back, and a file that lies about itself is refused before it is believed.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/safetensors.h"

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

void refuses(const std::string& bytes, const std::string& part) {
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
  refuses(file_of(tensor_entry("F8_E4M3", "[8]", "[0,8]"), eight), "F8_E4M3");
  for (const char* shape : {"[4611686018427387904]", "[1099511627776,1099511627776]", "[4294967296,4294967296]"})
    refuses(file_of(tensor_entry("F32", shape, "[0,8]"), eight), "more elements");
  refuses(file_of(tensor_entry("F32", "[1,1,1,1,1,1,2]", "[0,8]"), eight), "7 extents");
  for (const char* shape : {"[-2]", "[2.0]", "[2.5]", "[\"2\"]", "2", "null", "[18446744073709551616]"}) {
    INFO(std::string(shape));
    refuses(file_of(tensor_entry("F32", shape, "[0,8]"), eight), "shape of tensor \"w\"");
  }
  for (const char* offsets : {"[-8,0]", "[0,8.0]", "[0,\"8\"]", "\"0,8\"", "[18446744073709551608,0]", "null"}) {
    INFO(std::string(offsets));
    refuses(file_of(tensor_entry("F32", "[2]", offsets), eight), "data_offsets of tensor \"w\"");
  }
  refuses(file_of(tensor_entry("F32", "[2]", "[0]"), eight), "1 numbers, needs 2");
  for (const char* header : {R"({"w":3})", R"({"w":{}})", R"({"w":{"dtype":1,"shape":[2],"data_offsets":[0,8]}})",
                             R"({"w":{"dtype":"F32","data_offsets":[0,8]}})", R"({"w":{"dtype":"F32","shape":[2]}})",
                             "[]", "7", "{", "", "{\"\xff\":1}"}) {
    INFO(std::string(header));
    refuses(file_of(header, eight), "");
  }
}

// Fault: two tensors shared bytes, or bytes belonged to none, and the file was taken for a whole one.
TEST_CASE("tensors cover the file exactly") {
  const auto two = [](const char* first, const char* second, int bytes) {
    return file_of(text(R"({{"a":{{"dtype":"F32","shape":[1],"data_offsets":{}}},"b":{{"dtype":"F32","shape":[1],)"
                        R"("data_offsets":{}}},"none":{{"dtype":"F32","shape":[0,4],"data_offsets":[4,4]}}}})",
                        first, second),
                   std::string(static_cast<size_t>(bytes), '\0'));
  };
  CHECK(refusal(two("[0,4]", "[4,8]", 8)).empty());
  CHECK(refusal(two("[4,8]", "[0,4]", 8)).empty());  // in the header's order, which need not be the file's
  refuses(two("[0,4]", "[0,4]", 4), "overlap");
  refuses(two("[0,4]", "[2,6]", 6), "overlap");
  refuses(two("[0,4]", "[6,10]", 10), "gap");
  refuses(two("[2,6]", "[6,10]", 10), "gap");
  refuses(two("[0,4]", "[4,8]", 9), "1 bytes follow");
  refuses(to_safetensors(examples()) + "x", "1 bytes follow");
}

TEST_CASE("a name that stands twice is refused, where a parser would keep the last") {
  const std::string w = R"("w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  refuses(file_of("{" + w + "," + w + "}", std::string(4, '\0')), "\"w\" stands twice");
  refuses(file_of(R"({"w":{"dtype":"F32","shape":[1],"shape":[1],"data_offsets":[0,4]}})", std::string(4, '\0')),
          "\"shape\" stands twice");
  const Tensor one = Tensor::from(std::vector<float>{1}, {1});
  CHECK_THROWS_AS(to_safetensors({{"w", one}, {"w", one}}), Error);
}

TEST_CASE("a header that nests without end is refused, not followed") {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string deep = "{\"w\":";
    for (int i = 0; i < 100000; ++i) deep += open;
    refuses(file_of(deep, ""), "nests deeper");
  }
}

TEST_CASE("metadata comes back, and what is no text is refused") {
  const Tensor one = Tensor::from(std::vector<float>{1}, {1});
  const Metadata said = {{"step", "200"}, {"note", "\"quoted\" é"}};
  const Safetensors back = read_safetensors(to_safetensors({{"w", one}}, said), "file");
  CHECK(back.metadata ==
        Metadata{{"step", "200"}, {"note", "\"quoted\" é"}, {"format", "pt"}, {"format_version", "1"}});
  CHECK(back.tensors.size() == 1);
  CHECK(read_safetensors(to_safetensors(back.tensors, back.metadata), "file").metadata == back.metadata);
  refuses(file_of(R"({"__metadata__":{"step":200}})", ""), "\"step\" in its __metadata__ is no text");
  refuses(file_of(R"({"__metadata__":[]})", ""), "__metadata__");
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
  refuses(with_version("\"2\""), "format version \"2\", this program reads 1 to 1");
  for (const char* wrong : {"\"99999999999999999999\"", "\"soon\"", "\"1abc\"", "\"0\"", "\"-5\"", "\" 1\"", "\"\""}) {
    INFO(std::string(wrong));
    refuses(with_version(wrong), "format version");
  }
  refuses(with_version("2"), "is no text");
  CHECK(refusal(file_of(R"({"__metadata__":{"format":"pt"}})", "")).empty());
}
