// tapedeck export: an archive that numpy.load reads, from whatever a run has saved.
#include <zlib.h>

#include <cstring>
#include <filesystem>

#include "apps/npz.h"
#include "engine/check.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using test::contains;
namespace fs = std::filesystem;

namespace {

std::vector<NamedTensor> examples() {
  return {{"scalar", Tensor::from(std::vector<float>{-2.5f}, {})},
          {"three", Tensor::from(std::vector<double>{0.1, -1e300, 5e-324}, {3})},
          {"layer/weight", Tensor::from(std::vector<float>{1, -2.5f, 0, -0.0f, 3e38f, 1e-40f}, {2, 3})},
          {"empty", Tensor::from(std::vector<float>{}, {0, 4})},
          {"größe ∂", Tensor::from(std::vector<int32_t>{1, -2, 2147483647}, {3, 1})},
          {"half", Tensor::full({5}, DType::f16, Device::cpu, -0.333)},
          {"brain", Tensor::full({2, 2}, DType::bf16, Device::cpu, 3.14159)}};
}

template <class T>
T number(const std::string& bytes, size_t at) {
  T value;
  REQUIRE(at + sizeof value <= bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Member {
  std::string name, content;
};

// Reads the archive by its central directory, and checks all that ZIP says twice.
std::vector<Member> unzip(const std::string& zip) {
  const size_t end = zip.size() - 22;
  REQUIRE(zip.substr(end, 4) == "PK\5\6");
  const auto count = number<uint16_t>(zip, end + 10);
  size_t at = number<uint32_t>(zip, end + 16);
  REQUIRE(at + number<uint32_t>(zip, end + 12) == end);
  std::vector<Member> members;
  for (int i = 0; i < count; ++i) {
    REQUIRE(zip.substr(at, 4) == "PK\1\2");
    CHECK(number<uint16_t>(zip, at + 8) == 0x800);  // names are UTF-8
    CHECK(number<uint16_t>(zip, at + 10) == 0);     // stored
    const auto crc = number<uint32_t>(zip, at + 16), size = number<uint32_t>(zip, at + 24);
    const auto name_bytes = number<uint16_t>(zip, at + 28);
    const size_t local = number<uint32_t>(zip, at + 42);
    const std::string name = zip.substr(at + 46, name_bytes);
    REQUIRE(zip.substr(local, 4) == "PK\3\4");
    CHECK(zip.substr(local + 4, 26) == zip.substr(at + 6, 26));  // versions to lengths: the same in both places
    CHECK(zip.substr(local + 30, name_bytes) == name);
    const std::string content = zip.substr(local + 30 + name_bytes, size);
    CHECK(content.size() == size);
    CHECK(number<uint32_t>(zip, at + 20) == size);
    CHECK(crc == crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())));
    members.push_back({name, content});
    at += 46 + name_bytes;
  }
  CHECK(at == end);
  return members;
}

// A Python that has numpy: the one in PATH, or the system's; "" where there is none.
std::string python_with_numpy() {
  for (const std::string python : {"python3", "/usr/bin/python3"})
    if (std::system((python + " -c 'import numpy' >/dev/null 2>&1").c_str()) == 0) return python;
  std::cout << "skipped: python3 has no numpy\n";
  return "";
}

const char* const kRun[] = {"train", "--data", "blobs", "--hidden", "8", "--steps", "3", "--quiet", "--out"};

std::string train_run(const std::string& folder) {
  std::vector<std::string> words(std::begin(kRun), std::end(kRun));
  words.push_back(folder);
  REQUIRE(test::tapedeck(words).code == exit_done);
  return folder;
}

}  // namespace

// Fault: a header cut by a fixed buffer or its shape by a character, elements at odd addresses, a wrong CRC.
TEST_CASE("an archive holds every array once, aligned, under its name and with its CRC") {
  const std::vector<NamedTensor> tensors = examples();
  const std::vector<Member> members = unzip(to_npz(tensors));
  REQUIRE(members.size() == tensors.size());
  const char* const shapes[] = {"()", "(3,)", "(2, 3)", "(0, 4)", "(3, 1)", "(5,)", "(2, 2)"};
  const char* const types[] = {"<f4", "<f8", "<f4", "<f4", "<i4", "<f2", "<f4"};
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string& name = tensors[i].first;
    const std::string& content = members[i].content;
    const Tensor& tensor = tensors[i].second;
    CAPTURE(name);
    CHECK(members[i].name == name + ".npy");
    const size_t data = 10 + number<uint16_t>(content, 8);
    CHECK(data % 64 == 0);
    CHECK(contains(content.substr(0, data),
                   text("'descr': '{}', 'fortran_order': False, 'shape': {}", types[i], shapes[i])));
    if (tensor.dtype != DType::bf16)
      CHECK(content.substr(data) == std::string(reinterpret_cast<const char*>(tensor.data.begin()), tensor.bytes()));
  }
  const std::string& brain = members[6].content;  // 16 bits more, all of them 0
  CHECK(number<float>(brain, brain.size() - 4) == 3.140625f);
  CHECK(unzip(to_npz({})).empty());
}

TEST_CASE("numpy.load gives the arrays that were written") {
  const std::string python = python_with_numpy();
  if (python.empty()) return;
  const TemporaryFolder folder;
  const std::string npz = to_npz(examples());
  folder.write("all.npz", {npz.begin(), npz.end()});
  const std::string program =
      "import json, numpy, sys, zipfile\n"
      "assert zipfile.ZipFile(sys.argv[1]).testzip() is None\n"
      "arrays = numpy.load(sys.argv[1])\n"
      "print(json.dumps({n: [a.dtype.str, list(a.shape), a.astype('f8').ravel().tolist()] for n, a in "
      "arrays.items()}))\n";
  folder.write("read.py", {program.begin(), program.end()});
  const std::string out = folder / "out.json";
  REQUIRE(std::system((python + " " + (folder / "read.py") + " " + (folder / "all.npz") + " > " + out).c_str()) == 0);
  const Json read = test::read_json(out);
  REQUIRE(read.size() == examples().size());
  for (const NamedTensor& example : examples()) {
    const std::string& name = example.first;
    const Tensor& tensor = example.second;
    CAPTURE(name);
    Json extents = Json::array();
    for (int axis = 0; axis < tensor.rank(); ++axis) extents.push_back(tensor.shape[axis]);
    CHECK(read.at(name) == Json{npy_type(tensor.dtype), extents, tensor.doubles()});
  }
}

// Fault: beyond 4 GiB the sizes in the archive wrapped around.
TEST_CASE("an archive beyond 4 GiB is refused before any of it is made") {
  Tensor large = Tensor::full({4}, DType::f32, Device::cpu, 1);
  large.shape = {1 << 30};  // a promise of 4 GiB that nobody reads
  try {
    to_npz({{"large", large}});
    FAIL("accepted");
  } catch (const Error& e) {
    CHECK(mentions(e.what(), {"4294967", "plain ZIP", ".safetensors"}));
  }
}

TEST_CASE("export writes the weights of a finished run, of a checkpoint, or of a file") {
  const TemporaryFolder folder;
  const std::string run = train_run(folder / "run"), to = folder / "weights.npz";
  const test::Outcome first = test::tapedeck({"export", run, "--to", to});
  CHECK(first.code == exit_done);
  CHECK(first.err.empty());
  CHECK(mentions(first.out, {"<f4 [8, 2]", "4 arrays", to}));
  const std::string npz = test::read_file(to);
  CHECK(unzip(npz).size() == 4);
  CHECK(npz == to_npz(from_safetensors(test::read_file(run + "/model.safetensors"), "model")));

  CHECK(mentions(test::tapedeck({"export", run, "--to", to}).err, {to, "is there already", "--force"}));
  const Json document = test::tapedeck({"export", run, "--to", to, "--json", "--force"}).json();
  CHECK(document["step"] == 3);
  CHECK(document["arrays"][0]["shape"].size() == 2);
  CHECK(test::read_file(to) == npz);  // replaced by the same bytes

  CHECK(test::tapedeck({"export", run + "/model.safetensors", "--to", folder / "file.npz"}).code == exit_done);
  CHECK(test::read_file(folder / "file.npz") == npz);

  fs::remove(run + "/model.safetensors");  // as if the run had been stopped
  const test::Outcome stopped = test::tapedeck({"export", run, "--to", folder / "stopped.npz", "--json"});
  CHECK(stopped.code == exit_done);
  CHECK(mentions(stopped.err, {"not finished", "step-00000003"}));
  CHECK(stopped.json()["step"] == 3);
  CHECK(test::read_file(folder / "stopped.npz") == npz);
}

// Fault: a path that cannot be written was noticed by nobody, and the weights were gone.
TEST_CASE("export says in a sentence what it cannot read or write, and leaves nothing half done") {
  const TemporaryFolder folder;
  const std::string run = train_run(folder / "run");
  const auto refused = [&](const std::string& from, const std::string& to,
                           std::initializer_list<std::string_view> words, int code = exit_failed) {
    const test::Outcome outcome = test::tapedeck({"export", from, "--to", to});
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    CHECK(mentions(outcome.err, words));
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  };
  refused(run, "/dev/full", {"/dev/full", "No space left"});
  refused(run, folder / "none/w.npz", {"none/w.npz", "No such file or directory"});
  refused(run, "/proc/w.npz", {"/proc/w.npz: cannot be written"});
  refused(run, folder.path(), {folder.path()});
  refused(run + "/model.safetensors", run + "/model.safetensors", {"the file to read"}, exit_usage);
  refused(folder / "nowhere", folder / "w.npz", {"nowhere", "no config.json"});
  refused(run + "/config.json", folder / "w.npz", {"config.json", "safetensors"});
  fs::create_directory(folder / "bare");
  refused(folder / "bare", folder / "w.npz", {"bare", "no config.json"});
  std::ofstream(run + "/model.safetensors", std::ios::app) << "x";
  refused(run, folder / "w.npz", {"model.safetensors", "1 bytes follow"});
  CHECK_FALSE(fs::exists(folder / "w.npz"));
  CHECK_FALSE(fs::exists(folder / "w.npz.tmp"));
  CHECK(test::tapedeck({"export", run}).code == exit_usage);
}
