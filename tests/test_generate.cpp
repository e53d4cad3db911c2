// `generate` and `inspect` on saved runs.
#include <filesystem>
#include <string>

#include "apps/attention_picture.h"
#include "tests/runs.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

struct Trained {  // a gpt of a moment on a text of its own
  Trained() {
    std::ofstream out(folder / "text.txt");
    for (int i = 0; i < 300; ++i) out << "the cat sat on the mat.\n";
    out.close();
    const Outcome outcome = run_tapedeck({"train",     "--data",  "text:" + (folder / "text.txt"),
                                          "--layers",  "1",       "--heads",
                                          "2",         "--width", "16",
                                          "--context", "16",      "--steps",
                                          "60",        "--lr",    "0.01",
                                          "--warmup",  "5",       "--eval-every",
                                          "60",        "--quiet", "--out",
                                          run});
    if (outcome.code != exit_done) throw std::runtime_error(outcome.err);
  }
  TemporaryFolder folder;
  const std::string run = folder / "run";
};

}  // namespace

TEST_CASE("generate goes on from a prompt, the same for a seed, and needs the run's folder alone") {
  const Trained t;
  std::filesystem::remove(t.folder / "text.txt");
  const Words words = {"generate", t.run, "--prompt", "the c", "--length", "40"};
  const Outcome a = run_tapedeck(words), b = run_tapedeck(words), other = run_tapedeck(words + Words{"--seed", "2"});
  INFO(a.out << a.err);
  CHECK(a.code == exit_done);
  CHECK(a.out.starts_with("the c"));
  CHECK(a.out.size() == 5 + 40 + 1);
  CHECK(a.out == b.out);
  CHECK(a.out != other.out);
  const Json json = run_tapedeck(words + Words{"--json"}).json();
  CHECK(json["text"].get<std::string>() == a.out.substr(5, 40));
  CHECK(json["tokens"].size() == 40);
  CHECK(run_tapedeck({"generate", t.run, "--length", "3"}).out.front() == '\n');
}

// Fault: a character that is not in the vocabulary ended in a KeyError, or the vocabulary came from another text.
TEST_CASE("a prompt with an unknown character is refused with the character and its place") {
  const Trained t;
  for (const char* command : {"generate", "inspect"}) {
    const Outcome outcome = run_tapedeck({command, t.run, "--prompt", "the dog"});
    CHECK(outcome.code == exit_failed);
    CHECK(contains(outcome.err, "--prompt"));
    CHECK(contains(outcome.err, "\"d\""));
    CHECK(contains(outcome.err, "5"));
    CHECK(outcome.out.empty());
  }
  CHECK(run_tapedeck({"generate", t.run, "--prompt", ""}).code == exit_usage);
}

TEST_CASE("a run does not go on with text that has other characters") {
  const Trained t;
  std::ofstream(t.folder / "text.txt", std::ios::app) << "QUICK!";
  const Outcome outcome = run_tapedeck({"train", "--resume", t.run, "--steps", "80", "--quiet"});
  CHECK(outcome.code == exit_usage);
  CHECK(contains(outcome.err, "the data has changed"));
}

TEST_CASE("inspect shows each head's weights as text, JSON and SVG") {
  const Trained t;
  const Outcome text = run_tapedeck({"inspect", t.run, "--prompt", "the mat", "--svg", t.folder / "heads.svg"});
  CHECK(text.code == exit_done);
  CHECK(contains(text.out, "layer 0 head 1"));
  const std::string svg = read_file(t.folder / "heads.svg");
  CHECK(svg.starts_with("<svg "));
  CHECK(contains(svg, "layer 0 head 1"));
  CHECK(run_tapedeck({"inspect", t.run, "--prompt", "the mat", "--svg", t.folder / "heads.svg"}).code == exit_usage);

  const Json json = run_tapedeck({"inspect", t.run, "--prompt", "the mat", "--json"}).json();
  REQUIRE(json["heads"].size() == 2);
  CHECK(json["tokens"].size() == 7);
  const std::vector<double> weights = json["heads"][0]["weights"];
  REQUIRE(weights.size() == 49);
  for (size_t i = 0; i < 7; ++i) {
    double sum = 0;
    for (size_t j = 0; j < 7; ++j) {
      if (j > i) CHECK(weights[i * 7 + j] == 0);
      sum += weights[i * 7 + j];
    }
    CHECK(sum == doctest::Approx(1));
  }
  CHECK(run_tapedeck({"inspect", t.run, "--prompt", std::string(17, 't')}).code == exit_usage);
}

TEST_CASE("the pictures show weights by shade and escape what XML does") {
  const std::vector<AttentionMap> maps = {{0, 0, {1, 0, 0.26, 0.74}}};
  CHECK(contains(attention_text(maps, {"a", "b"}), "a  #\nb  37\n"));
  const std::string svg = attention_svg(maps, {"<", "&"});
  CHECK(contains(svg, "&lt;"));
  CHECK(contains(svg, "&amp;"));
  CHECK(contains(svg, "fill-opacity=\"0.74\""));
  CHECK_FALSE(contains(svg, "><<"));
}

TEST_CASE("generate and inspect refuse a run that is no gpt's") {
  const TemporaryFolder folder;
  REQUIRE(run_tapedeck({"train", "--data", "blobs", "--steps", "3", "--quiet", "--out", folder / "run"}).code ==
          exit_done);
  const Outcome outcome = run_tapedeck({"generate", folder / "run", "--prompt", "x"});
  CHECK(outcome.code == exit_failed);
  CHECK(contains(outcome.err, "mlp"));
}
