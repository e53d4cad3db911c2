// tapedeck data info FILE: what a file is, told by its content.
#include <algorithm>
#include <filesystem>

#include "data/npy.h"
#include "engine/safetensors.h"
#include "tests/idx_bytes.h"
#include "tests/program.h"
#include "tests/shard_files.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

Json info(const std::string& file) {
  const Outcome outcome = tapedeck::test::tapedeck({"data", "info", file, "--json"});
  INFO(outcome.err);
  REQUIRE(outcome.code == exit_done);
  return outcome.json();
}

std::string failure(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"data", "info"};
  all.insert(all.end(), words.begin(), words.end());
  const Outcome outcome = tapedeck::test::tapedeck(all);
  CHECK(outcome.code != exit_done);
  CHECK(outcome.out == "");
  return outcome.err;
}

}  // namespace

TEST_CASE("data info of a shard checks every block and names the damaged ones") {
  const TemporaryFolder folder;
  const std::string path = large_shard(folder);
  for (const std::string& name : {path, "shard:" + path}) {
    const Json said = info(name);
    CHECK(said["type"] == "u8");
    CHECK(said["rows"] == 6000);
    CHECK(said["checksums"] == "all 73 blocks good");
    CHECK(said["splits"]["train"]["rows"] == 5000);
    CHECK(said["splits"]["validation"]["class_counts"] == Json(std::vector<int>(10, 50)));
    CHECK(said["range"] == Json({0.0, 1.0}));
  }
  CHECK(mentions(tapedeck::test::tapedeck({"data", "info", path}).out, {"u8", "all 73 blocks good", "5000"}));
  const Outcome order = tapedeck::test::tapedeck({"data", "info", path, "--order", "0", "--json"});
  CHECK(order.json().size() == 5000);

  std::vector<uint8_t> bytes = file_bytes(path);
  bytes[bytes.size() / 2] ^= 1;
  const std::string message = failure({folder.write("bad.shard", bytes)});
  CHECK(mentions(message, {"bad.shard", "block", "records", "checksum"}));
  CHECK(mentions(failure({folder.write("bad.shard", first(bytes, 1000))}), {"bad.shard", "1,000"}));
  CHECK(mentions(failure({folder.write("packed.shard", gzip(file_bytes(path)))}), {"packed.shard"}));
}

TEST_CASE("data info tells CSV, npy, IDX, safetensors and text by content") {
  const TemporaryFolder folder;
  const std::string rows = "a,b,kind\n1,2,x\n2,4,y\n3,1,x\n4,2,y\n5,1,x\n";
  for (const Bytes& bytes : {text_bytes(rows), gzip(text_bytes(rows))}) {
    const Json csv = info(folder.write("anything", bytes));
    CHECK(csv["rows"] == 5);
    CHECK(csv["features"] == 2);
    CHECK(csv["class_names"] == Json({"x", "y"}));
  }
  const int64_t shape[] = {2, 3};
  Bytes array = text_bytes(npy_header("|u1", shape)) + Bytes{1, 2, 3, 4, 5, 250};
  const Json npy = info(folder.write("anything", array));
  CHECK(npy["kind"] == "NumPy array");
  CHECK(npy["type"] == "|u1");
  CHECK(npy["shape"] == Json({2, 3}));
  CHECK(npy["range"] == Json({1.0, 250.0}));

  const Json images = info(folder.write("anything", gzip(idx_images(5, 3, 4))));
  CHECK(images["kind"] == "IDX images");
  CHECK(images["shape"] == Json({5, 3, 4}));
  const Json labels = info(folder.write("anything", idx_labels(12)));
  CHECK(labels["class_counts"]["1"] == 2);
  CHECK(labels["class_counts"]["2"] == 1);

  const std::string weights = to_safetensors({{"layer.weight", Tensor::full({4, 3}, DType::f32, Device::cpu, 1)}});
  const Json tensors = info(folder.write("anything", text_bytes(weights)));
  CHECK(tensors["kind"] == "safetensors weights");
  CHECK(tensors["numbers"] == 12);
  CHECK(tensors["tensors"]["layer.weight"] == "f32 [4, 3]");

  const std::string verse = "Ähren, Meer,\nund Wind\n";
  const Json text = info(folder.write("anything", text_bytes(verse)));
  CHECK(text["kind"] == "text");
  CHECK(text["characters"] == 22);
  CHECK(text["vocabulary"] == 13);
  CHECK(text["begins"] == verse);
  CHECK(mentions(tapedeck::test::tapedeck({"data", "info", folder / "anything"}).out, {"text", "\\n", "Ä"}));
}

TEST_CASE("data info of a text shows its windows, vocabulary and parts") {
  const TemporaryFolder folder;
  std::string verses;
  for (int i = 0; i < 100; ++i) verses += "Meer und Wind\n";
  const std::string file = "text:" + folder.write("sea.txt", text_bytes(verses));
  const Json said = info(file);
  CHECK(said["rows"] == 1400 - 64);
  CHECK(said["shape"] == "64 tokens");
  CHECK(said["classes"] == 10);
  CHECK(said["class_names"][0] == "\n");
  CHECK(said["answers_each"] == 64);
  CHECK(said["accuracy_of"] == "answers");
  CHECK(said["example"]["given"] == verses.substr(0, 64));
  CHECK(said["example"]["asked"] == verses.substr(1, 64));
  CHECK(said["splits"]["train"]["rows"] == 1260 - 64);
  CHECK(said["splits"]["validation"]["rows"] == 2);
  CHECK_FALSE(said.contains("range"));
  CHECK(mentions(
      tapedeck::test::tapedeck({"data", "info", file}).out,
      {"sea: ", "1336 of 64 tokens", "10 tokens", "\"Meer und Wind\\nMeer", "the test part is the validation"}));
  CHECK(tapedeck::test::tapedeck({"data", "info", file, "--order", "0", "--json"}).json().size() == 1260 - 64);
  CHECK(mentions(failure({"text:" + folder.write("s.txt", text_bytes("short"))}), {"has 5 tokens", "need 65"}));
}

TEST_CASE("data info of a task shows a question with its answer and the parameters") {
  const Json said = info("task:sort:length=4,symbols=10");
  CHECK(said["rows"] == 202000);
  CHECK(said["classes"] == 11);
  CHECK(said["accuracy_of"] == "examples");
  std::string given = said["example"]["given"], asked = said["example"]["asked"];
  CHECK(given.back() == '=');
  given.pop_back();
  std::sort(given.begin(), given.end());
  CHECK(given == asked);
  CHECK(mentions(tapedeck::test::tapedeck({"data", "info", "task:modadd"}).out,
                 {"modadd: a + b modulo p", "p (a whole number from 11 to 499)", "98 tokens: 0, 1,", " =\"", "3764"}));
  CHECK(mentions(failure({"task:srot"}), {"did you mean sort?"}));
}

// Fault: nothing said whether the first row was taken for a header.
TEST_CASE("data info of a CSV names its columns, or says that there is no header") {
  const TemporaryFolder folder;
  const std::string rows = "1,2,x\n2,4,y\n3,1,x\n4,2,y\n5,1,x\n";
  const std::string named = folder.write("t.csv", text_bytes("a,b,kind\n" + rows));
  CHECK(mentions(tapedeck::test::tapedeck({"data", "info", named}).out, {"features  2, values", "columns   a, b\n"}));
  CHECK(info(named)["columns"] == Json({"a", "b"}));
  const std::string bare = folder.write("t.csv", text_bytes(rows));
  CHECK(mentions(tapedeck::test::tapedeck({"data", "info", bare}).out, {"columns   without names", "no header"}));
  CHECK(info(bare)["columns"] == Json::array());
  CHECK(mentions(tapedeck::test::tapedeck({"data", "info", "digits"}).out, {"features  64 (8x8x1), values"}));
}

// Fault: names in a file went to the terminal as they were, which obeyed the escape codes in them.
TEST_CASE("data info shows what a terminal would obey as an escape") {
  const TemporaryFolder folder;
  const std::string rows = "\"a\x1b[2J\",b,kind\n1,2,\"x\ny\"\n2,4,\x1b]0;\n3,1,\"x\ny\"\n4,2,\x1b]0;\n5,1,\x1b]0;\n";
  const std::string out = tapedeck::test::tapedeck({"data", "info", folder.write("t.csv", text_bytes(rows))}).out;
  CHECK(mentions(out, {R"(a\x1b[2J, b)", R"(x\ny)", R"(\x1b]0;)"}));
  CHECK(out.find('\x1b') == out.npos);
  const Tensor one = Tensor::full({1}, DType::f32, Device::cpu, 1);
  const std::string weights = folder.write("w", text_bytes(to_safetensors({{"\x1b[2J", one}})));
  CHECK(mentions(tapedeck::test::tapedeck({"data", "info", weights}).out, {R"(\x1b[2J)", "f32 [1]"}));
}

TEST_CASE("data info refuses what it cannot read in one sentence") {
  const TemporaryFolder folder;
  CHECK(mentions(failure({folder / "none.csv"}), {"none.csv: no such file"}));
  CHECK(mentions(failure({folder.path()}), {folder.path()}));
  CHECK(mentions(failure({folder.write("empty", {})}), {"empty", "is empty"}));
  CHECK(mentions(failure({folder.write("noise", {1, 2, 0xFF, 0xFE, 0})}), {"noise: is neither a shard"}));
  CHECK(mentions(failure({folder.write("words", text_bytes("a verse\nor two\n")), "--order", "0"}), {"--order 0"}));
  CHECK(mentions(failure({folder.write("cut", first(idx_images(5, 3, 4), 30))}), {"cut", "30"}));
}
