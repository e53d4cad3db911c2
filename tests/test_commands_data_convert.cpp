// tapedeck data convert, through the command line: every kind of source, and every way to fail.
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <set>

#include "data/catalog.h"
#include "data/npy.h"
#include "tests/idx_bytes.h"
#include "tests/program.h"
#include "tests/shard_files.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;
namespace fs = std::filesystem;

namespace {

Outcome convert(const std::vector<std::string>& words) {
  std::vector<std::string> all = {"data", "convert"};
  all.insert(all.end(), words.begin(), words.end());
  return tapedeck::test::tapedeck(all);
}

std::set<std::string> files_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename());
  return names;
}

// Features and answers of every part, in its order.
std::vector<float> all_parts(const Dataset& data) {
  std::vector<float> all;
  for (const auto* rows : {&data.train, &data.validation, &data.test}) {
    const std::vector<float> part = features_of(data, *rows);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace

TEST_CASE("data convert makes a shard of every kind of source, which holds the same") {
  const TemporaryFolder folder;
  std::string csv = "width,length,species\n";
  for (int i = 0; i < 40; ++i)
    csv += std::to_string(i * 0.7) + "," + std::to_string(50 - i) + "," + (i % 3 ? "setosa" : "virginica") + "\n";
  folder.write("iris.csv", text_bytes(csv));
  folder.write("sizes.csv", text_bytes("a,b,size\n1,2,0.5\n3,4,1.5\n5,7,2.5\n7,7,8\n9,9,1e-3\n2,2,2\n"));
  const int64_t shape[] = {40, 3};
  Bytes array = text_bytes(npy_header("|u1", shape));
  for (int i = 0; i < 120; ++i) array.push_back(static_cast<uint8_t>(i % 3 == 2 ? i % 4 : i));
  folder.write("array.npy", array);
  folder.write("images", gzip(idx_images(30, 3, 4)));
  folder.write("labels", idx_labels(30));
  struct Source {
    std::string spec, type;
    std::vector<std::string> options;
    DataOptions as = {};
  };
  const std::string labels = folder / "labels";
  for (const Source& source :
       {Source{"digits", "u8", {}}, Source{"spirals", "f32", {}}, Source{"csv:" + folder / "iris.csv", "f32", {}},
        Source{"csv:" + folder / "sizes.csv",
               "f32",
               {"--label", "size", "--loss", "mse"},
               {.label = "size", .regression = true}},
        Source{"npy:" + folder / "array.npy", "u8", {}},
        Source{"idx:" + folder / "images", "u8", {"--label", labels}, {.label = labels}}}) {
    INFO(source.spec);
    std::vector<std::string> words = {source.spec, "--to", folder / "out.shard", "--force", "--json"};
    words.insert(words.end(), source.options.begin(), source.options.end());
    const Outcome outcome = convert(words);
    INFO(outcome.err);
    REQUIRE(outcome.code == exit_done);
    const Dataset from = load_dataset(source.spec, source.as), to = load_dataset("shard:" + folder / "out.shard");
    CHECK(all_parts(to) == all_parts(from));
    CHECK(to.encoding == from.encoding);
    CHECK(to.classes == from.classes);
    CHECK(to.name == from.name);
    const Json said = outcome.json();
    CHECK(said["type"] == source.type);
    CHECK(said["records"] == from.rows());
    CHECK(said["bytes"] == fs::file_size(folder / "out.shard"));
    CHECK(said["splits"]["train"] == from.train.size());
    CHECK(said["splits"]["test"] == from.test.size());

    const Outcome again = convert({"shard:" + folder / "out.shard", "--to", folder / "copy.shard", "--force"});
    CHECK(again.code == exit_done);
    CHECK(file_bytes(folder / "copy.shard") == file_bytes(folder / "out.shard"));
  }
  CHECK(files_in(folder.path()) ==
        std::set<std::string>{"array.npy", "copy.shard", "images", "iris.csv", "labels", "out.shard", "sizes.csv"});
}

// Fault: a text became a shard that nothing could train on, and --bytes was ignored.
TEST_CASE("data convert refuses sequences before it reads them, and says how to train on them") {
  const TemporaryFolder folder;
  const std::string verses = "text:" + folder.write("play.txt", text_bytes("to be, or not to be\n"));
  for (const std::string& data : {verses, std::string("text:missing.txt"), std::string("task:copy")}) {
    const Outcome outcome = convert({data, "--to", folder / "play.shard"});
    CHECK(outcome.code == exit_usage);
    CHECK(mentions(outcome.err, {data, "a shard has no use for them", "--data " + data}));
    CHECK(outcome.out == "");
  }
  CHECK(mentions(convert({verses, "--bytes", "--to", folder / "play.shard"}).err, {"unknown option --bytes"}));
  CHECK(files_in(folder.path()) == std::set<std::string>{"play.txt"});
}

TEST_CASE("data convert never replaces a file unless told to, and then at once") {
  const TemporaryFolder folder;
  const std::string path = folder.write("there", text_bytes("mine"));
  const Outcome refused = convert({"digits", "--to", path});
  CHECK(refused.code == exit_usage);
  CHECK(mentions(refused.err, {path, "--force"}));
  CHECK(read_file(path) == "mine");
  const Outcome bad = convert({"csv:" + path, "--to", path, "--force"});  // nothing to convert
  CHECK(bad.code == exit_failed);
  CHECK(read_file(path) == "mine");
  CHECK(convert({"digits", "--to", path, "--force"}).code == exit_done);
  CHECK(Shard(path).count() == 1797);
  const Outcome missing = convert({"digits"});
  CHECK(missing.code == exit_usage);
  CHECK(mentions(missing.err, {"--to"}));
}

// Fault: a full disk left half a file under the name that was asked for.
TEST_CASE("data convert leaves nothing behind when the disk is full or the folder cannot be written") {
  const TemporaryFolder folder;
  const std::string path = folder / "digits.shard";
  for (const rlim_t bytes : {rlim_t(0), rlim_t(100), rlim_t(50000)}) {  // the largest file that may be written
    rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    const rlimit small = {bytes, before.rlim_max};
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    const Outcome full = convert({"digits", "--to", path, "--quiet"});
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    CHECK(full.code == exit_failed);
    CHECK(mentions(full.err, {path, "cannot be written: File too large"}));
    CHECK(files_in(folder.path()).empty());
  }
  const Outcome nowhere = convert({"digits", "--to", "/dev/null/x", "--quiet"});  // no folder, not even for root
  CHECK(nowhere.code == exit_failed);
  CHECK(mentions(nowhere.err, {"/dev/null/x: cannot be written: Not a directory"}));
  const Outcome device = convert({"digits", "--to", "/dev/full", "--force"});
  CHECK(device.code == exit_failed);
  CHECK(mentions(device.err, {"/dev/full", "no plain file"}));
  CHECK(fs::is_character_file("/dev/full"));
}

TEST_CASE("data convert says on stderr how far it is, in plain lines, or nothing with --quiet") {
  const TemporaryFolder folder;
  const int64_t shape[] = {30000, 101};
  const std::string path = folder.write("long.npy", text_bytes(npy_header("|u1", shape)) + Bytes(30000 * 101, 1));
  const Outcome loud = convert({"npy:" + path, "--to", folder / "a.shard"});
  CHECK(mentions(loud.err, {"reading npy:", "writing", "[", "70 %", "wrote"}));
  CHECK(loud.err.find('\r') == loud.err.npos);
  CHECK(mentions(loud.out, {"30,000", "u8", "24,000", "3,000"}));
  const Outcome quiet = convert({"npy:" + path, "--to", folder / "b.shard", "--quiet"});
  CHECK(quiet.err == "");
  CHECK(quiet.code == exit_done);
}
