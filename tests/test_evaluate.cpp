// tapedeck evaluate on what a run left at any time, and on data that the run never saw.
#include <filesystem>

#include "apps/data_record.h"
#include "engine/check.h"
#include "tests/program.h"
#include "tests/test_data_folder.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using test::Outcome;
namespace fs = std::filesystem;

namespace {

std::string write(const TemporaryFolder& folder, const char* name, const std::string& content) {
  return folder.write(name, {content.begin(), content.end()});
}

std::string train(const TemporaryFolder& folder, std::vector<std::string> options) {
  const std::string run = folder / "run";
  options.insert(options.begin(), "train");
  options.insert(options.end(), {"--out", run, "--quiet", "--threads", "1", "--hidden", "8"});
  const Outcome outcome = test::tapedeck(options);
  INFO(outcome.err);
  REQUIRE(outcome.code == exit_done);
  return run;
}

Outcome evaluate(const std::string& run, std::vector<std::string> options = {}) {
  options.insert(options.begin(), {"evaluate", run, "--threads", "1"});
  return test::tapedeck(options);
}

Json score(const std::string& run, std::vector<std::string> options = {}) {
  options.push_back("--json");
  const Outcome outcome = evaluate(run, options);
  INFO(outcome.err);
  REQUIRE(outcome.code == exit_done);
  return outcome.json();
}

void refuses(const Outcome& outcome, std::initializer_list<std::string_view> words) {
  CHECK(outcome.code == exit_failed);
  CHECK(outcome.out.empty());
  CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
  CHECK(mentions(outcome.err, words));
}

// Two kinds of flowers that differ in their first column; `shift` moves all of it.
std::string flowers(int rows, double shift, const char* first = "rose", const char* second = "lily") {
  std::string out = "size,weight,kind\n";
  for (int i = 0; i < rows; ++i)
    out += text("{},{},{}\n", shift + (i % 2) * 10 + 0.1 * (i % 7), 0.3 * (i % 5), i % 2 ? first : second);
  return out;
}

}  // namespace

TEST_CASE("evaluate takes a run, a file in it, or a run that was stopped, and says which and what it holds") {
  const TemporaryFolder folder;
  const std::string run = train(folder, {"--data", "blobs", "--steps", "12", "--checkpoint-every", "5"});
  const Outcome whole = evaluate(run, {"--device", "cpu"});  // auto may say why it takes no GPU
  CHECK(mentions(whole.out.substr(0, whole.out.find('\n')),
                 {"run/model.safetensors", "mlp of 60 parameters after step 12", "trained on blobs"}));
  CHECK(mentions(whole.out, {"400 test examples of blobs"}));
  CHECK(whole.err.empty());
  const Json last = score(run);
  CHECK(last["step"] == 12);
  CHECK(last["parameters"] == 60);

  CHECK(score(run + "/model.safetensors")["loss"] == last["loss"]);
  CHECK(score(run + "/best.safetensors")["step"].is_null());
  const std::string early = run + "/checkpoint/step-00000010/weights.safetensors";
  CHECK(score(early)["step"] == 10);
  CHECK(score(early)["loss"] != last["loss"]);

  fs::remove(run + "/model.safetensors");
  fs::remove_all(run + "/checkpoint/step-00000012");
  const Outcome stopped = evaluate(run, {"--json"});
  CHECK(stopped.code == exit_done);
  CHECK(mentions(stopped.err, {"not finished", "step-00000010"}));
  CHECK(stopped.json()["loss"] == score(early)["loss"]);

  fs::copy(early, folder / "alone.safetensors");
  refuses(evaluate(folder / "alone.safetensors"), {"alone.safetensors", "config.json"});
  fs::remove_all(run + "/checkpoint");
  refuses(evaluate(run), {"run", "no model.safetensors and no checkpoint"});
}

// Fault: a finished run that went on and was stopped still held the model of its first end, which was taken for the
// last, under the step that the run had come to.
TEST_CASE("evaluate takes the newest checkpoint of a run that went on after its end and was stopped") {
  const TemporaryFolder folder;
  const std::string run = train(folder, {"--data", "blobs", "--steps", "12"});
  const std::string model = test::read_file(run + "/model.safetensors");
  REQUIRE(test::tapedeck({"train", "--resume", run, "--steps", "20", "--quiet"}).code == exit_done);
  const Json last = score(run);
  CHECK(last["step"] == 20);
  write(folder, "run/model.safetensors", model);  // as it was until the new end
  Json summary = test::read_json(run + "/summary.json");
  summary["status"] = "interrupted";
  write(folder, "run/summary.json", summary.dump());
  const auto takes_the_last = [&] {
    const Json now = score(run);
    CHECK(now["step"] == 20);
    CHECK(now["loss"] == last["loss"]);
    const Json named = score(run + "/model.safetensors");
    CHECK(named["step"].is_null());
    CHECK(named["loss"] != last["loss"]);
  };
  takes_the_last();
  fs::remove(run + "/summary.json");  // while it goes on, there is none
  takes_the_last();
  fs::remove_all(run + "/checkpoint");
  CHECK(score(run)["loss"] == score(run + "/model.safetensors")["loss"]);  // nothing newer is left
}

// Fault: means, deviations and class names were made anew from the data at hand, so that the model saw other numbers
// than it was trained on, and classes changed their places.
TEST_CASE("other data is encoded as the run's was, and all of it is scored") {
  const TemporaryFolder folder;
  const std::string run = train(folder, {"--data", "csv:" + write(folder, "a.csv", flowers(200, 0)), "--steps", "200"});
  CHECK(score(run)["accuracy"] == 1);
  CHECK(score(run)["examples"] == 20);

  const Json same = score(run, {"--data", "csv:" + write(folder, "b.csv", flowers(60, 0))});
  CHECK(same["accuracy"] == 1);
  CHECK(same["examples"] == 60);
  CHECK(same["split"] == "all");
  CHECK(score(run, {"--data", "csv:" + folder / "b.csv", "--split", "test"})["examples"] == 6);
  const Json moved = score(run, {"--data", "csv:" + write(folder, "moved.csv", flowers(60, 100))});
  CHECK(moved["accuracy"] == 0.5);  // all look large; by their own mean they would be told apart

  // One class alone, listed first in the file: it keeps its id.
  const Json lilies = score(run, {"--data", "csv:" + write(folder, "one.csv", flowers(60, 0, "lily", "lily"))});
  CHECK(lilies["confusion"][1] == Json{0, 0});
  CHECK(lilies["confusion"][0][0] == 30);

  CHECK(score(run, {"--data", "csv:" + folder / "a.csv"})["split"] == "test");  // its own data, by name
  fs::remove(folder / "a.csv");
  CHECK(score(run, {"--data", "csv:" + folder / "b.csv"})["accuracy"] == 1);  // needs the run alone
}

// Fault: one or two new examples were refused because they could not be dealt to three parts.
TEST_CASE("a model takes other data of a single row") {
  const TemporaryFolder folder;
  const std::string run =
      train(folder, {"--data", "csv:" + write(folder, "flowers.csv", flowers(40, 0)), "--steps", "5"});
  for (const int rows : {1, 2, 3}) {
    const std::string other = "csv:" + write(folder, "few.csv", flowers(rows, 0));
    CHECK(score(run, {"--data", other})["examples"] == rows);
    const Outcome part = evaluate(run, {"--data", other, "--split", "train"});
    CHECK(part.code == (rows < 3 ? exit_usage : exit_done));
    CHECK((rows == 3 || mentions(part.err, {"--split train: few has no such part"})));
  }
}

TEST_CASE("names of classes are shown without what a terminal would obey") {
  const TemporaryFolder folder;
  const std::string file = write(folder, "flowers.csv", flowers(40, 0, "\"ro\nse\"", "\x1b[2Jlily"));
  const std::string run = train(folder, {"--data", "csv:" + file, "--steps", "5"});
  const Outcome shown = evaluate(run, {"--split", "all"});
  CHECK(mentions(shown.out, {"all 40 examples of flowers", R"(ro\nse)", R"(\x1b[2Jlily)"}));
  CHECK(shown.out.find('\x1b') == shown.out.npos);
  CHECK(score(run)["classes"][1]["name"] == "ro\nse");
}

TEST_CASE("data that does not fit the model is refused with what both have") {
  const TemporaryFolder folder;
  const std::string run = train(folder, {"--data", "csv:" + write(folder, "a.csv", flowers(200, 0)), "--steps", "5"});
  const auto on = [&](const std::string& data) { return evaluate(run, {"--data", data}); };
  refuses(on("csv:" + write(folder, "new.csv", flowers(60, 0, "tulip"))), {"new.csv", "tulip"});
  refuses(on("csv:" + write(folder, "wide.csv", "a,b,c,kind\n1,2,3,rose\n2,3,4,lily\n")), {"wide.csv", "3", "2"});
  refuses(on("csv:" + write(folder, "names.csv", "size,height,kind\n1,2,rose\n2,3,lily\n3,4,rose\n")),
          {"height", "weight"});
  refuses(on("blobs"), {"blobs", "rose"});
  CHECK(on("csv:" + folder / "missing.csv").code == exit_failed);
  CHECK(on("nothing").code == exit_usage);

  const TemporaryFolder other;
  const std::string blobs = train(other, {"--data", "blobs", "--steps", "5"});
  refuses(evaluate(blobs, {"--data", "digits"}), {"digits", "64 features", "blobs with 2"});
  const std::string spirals = other / "run-3";
  fs::rename(blobs, spirals);
  CHECK(score(spirals, {"--data", "spirals"})["confusion"].size() == 4);  // three of the four classes occur
  const std::string three = train(other, {"--data", "spirals", "--steps", "5"});
  refuses(evaluate(three, {"--data", "blobs"}), {"blobs", "4 classes", "spirals with 3"});
}

// Fault: a file that had changed since the run was split anew, and rows trained on were scored as test rows.
TEST_CASE("the run's own data must still be what it was") {
  const TemporaryFolder folder;
  const std::string file = write(folder, "a.csv", flowers(200, 0));
  const std::string run = train(folder, {"--data", "csv:" + file, "--steps", "5"});
  write(folder, "a.csv", flowers(202, 0));
  refuses(evaluate(run), {"is not what it was", "--data csv:" + file});
  CHECK(score(run, {"--data", "csv:" + file})["examples"] == 202);
}

TEST_CASE("a damaged description of the data is refused by its name") {
  const TemporaryFolder folder;
  const std::string run = train(folder, {"--data", "blobs", "--steps", "5"});
  const Json good = test::read_json(run + "/data.json");
  const auto with = [&](const char* key, const Json& value) {
    Json changed = good;
    changed[key] = value;
    std::ofstream(run + "/data.json") << changed.dump();
    return evaluate(run);
  };
  CHECK(with("classes", good["classes"]).code == exit_done);  // else the refusals prove nothing
  for (const auto& change : {std::pair<const char*, Json>{"classes", "four"},
                             {"format_version", 2},
                             {"format_version", "1"},
                             {"mean", {1, 2, 3}},
                             {"mean", {nullptr, 1}},
                             {"class_names", {"a"}},
                             {"columns", 3},
                             {"hash", nullptr}}) {
    CAPTURE(change.first);
    refuses(with(change.first, change.second), {"data.json"});
  }
  std::ofstream(run + "/data.json") << "{";
  refuses(evaluate(run), {"data.json", "not JSON"});
}
