// `generate` and `inspect` on saved runs.
#include <algorithm>
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
    CHECK(outcome.code == exit_usage);
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
  CHECK(contains(outcome.err, "or begin a new run"));
  CHECK(run_tapedeck({"train", "--resume", t.run, "--steps", "80", "--quiet", "--force"}).err == outcome.err);

  // Fault: with --force and as many other characters, each token came to mean another one.
  std::string other = read_file(t.folder / "text.txt").substr(0, 7200);
  std::replace(other.begin(), other.end(), 'c', 'q');
  std::ofstream(t.folder / "text.txt") << other;
  const Outcome forced = run_tapedeck({"train", "--resume", t.run, "--steps", "80", "--quiet", "--force"});
  CHECK(forced.code == exit_usage);
  CHECK(contains(forced.err, "or begin a new run"));
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

  const Words line_end = {"inspect", t.run, "--prompt", "mat.\nthe"};  // Fault: was a "?", in JSON too
  CHECK(run_tapedeck(line_end + Words{"--json"}).json()["tokens"][4] == "\n");
  CHECK(contains(run_tapedeck(line_end).out, "\n\\n  "));  // a row's name
}

TEST_CASE("the pictures show weights by shade and escape what XML does") {
  const std::vector<AttentionMap> maps = {{0, 0, {1, 0, 0.26, 0.74}}};
  CHECK(contains(attention_text(maps, {"a", "b"}), "   ab\na  #\nb  37\n"));
  CHECK(contains(attention_text(maps, {"é", "\\n"}), "layer 0 head 0\n     \\\n    én\n é  #\n\\n  37\n"));
  const std::string svg = attention_svg(maps, {"<", "&"});
  CHECK(contains(svg, "&lt;"));
  CHECK(contains(svg, "&amp;"));
  CHECK(contains(svg, "fill-opacity=\"0.74\""));
  CHECK_FALSE(contains(svg, "><<"));
}

// Fault: a question without its "=" was answered with whatever the model made of it.
TEST_CASE("generate answers a question of its task, and says what one looks like") {
  const TemporaryFolder folder;
  REQUIRE(run_tapedeck({"train", "--data", "task:addition", "--layers", "1", "--width", "16", "--steps", "3", "--quiet",
                        "--out", folder / "run"})
              .code == exit_done);
  const auto ask = [&](const char* prompt) { return run_tapedeck({"generate", folder / "run", "--prompt", prompt}); };
  CHECK(ask("123+989=").out.size() == 8 + 4 + 1);
  CHECK(ask("123+989=21").out.size() == 8 + 4 + 1);  // the answer has begun
  for (const char* prompt : {"123+989", "123+989==", "12+989=3", "123+989=2111", "1", "=", "123+9=89"}) {
    CAPTURE(prompt);
    const Outcome outcome = ask(prompt);
    CHECK(outcome.code == exit_usage);
    CHECK(contains(outcome.err, "--prompt \"" + std::string(prompt) + "\" is no question of task:addition"));
    CHECK(contains(outcome.err, "which is 3 digits, +, 3 digits and =, such as \""));
    CHECK(outcome.out.empty());
  }
  CHECK(contains(run_tapedeck({"generate", folder / "run"}).err, "tapedeck generate: needs --prompt, a question of"));
}

// Fault: "try a smaller --batch", from commands that have none, and where --memory-limit was what ended them.
TEST_CASE("out of memory names options that its command has") {
  const Trained t;
  for (const Words& words : {Words{"generate", t.run, "--prompt", "the"}, Words{"inspect", t.run, "--prompt", "the"},
                             Words{"evaluate", t.run}}) {
    const Outcome outcome = run_tapedeck(words + Words{"--memory-limit", "4KiB"});
    INFO(outcome.err);
    CHECK(outcome.code == exit_out_of_memory);
    CHECK(outcome.err.ends_with(": try a --memory-limit above 4096 bytes\n"));
  }
  const auto train = [&](const Words& options) {
    return run_tapedeck(Words{"train", "--memory-limit", "4KiB", "--out", t.folder / "none"} + options).err;
  };
  CHECK(train({"--data", "text:" + (t.folder / "text.txt")})
            .ends_with(": try a smaller --batch with a larger --accumulate, --context, --width, --layers, --recompute "
                       "blocks or a "
                       "--memory-limit above "
                       "4096 bytes\n"));
  CHECK(train({"--data", "task:sort"})
            .ends_with(": try a smaller --batch with a larger --accumulate, --width, --layers, --recompute blocks or a "
                       "--memory-limit above "
                       "4096 bytes\n"));
  CHECK(train({"--data", "digits"})
            .ends_with(": try a smaller --batch with a larger --accumulate, --hidden or a --memory-limit above 4096 "
                       "bytes\n"));
  CHECK(run_tapedeck({"bench", "attention", "--memory-limit", "4KiB"})
            .err.ends_with(": try a smaller --tokens, --contexts, --width or a --memory-limit above 4096 bytes\n"));
}

// Fault: a model of sequences was said to have other class names than data with features.
TEST_CASE("evaluate refuses data that another kind of model reads") {
  const Trained t;
  const Outcome gpt = run_tapedeck({"evaluate", t.run, "--data", "digits"});
  CHECK(gpt.code == exit_usage);
  CHECK(contains(gpt.err,
                 "--data digits: holds features, but the run in " + t.run + " is of gpt, which reads sequences"));
  REQUIRE(run_tapedeck({"train", "--data", "blobs", "--steps", "3", "--quiet", "--out", t.folder / "mlp"}).code ==
          exit_done);
  const Outcome mlp = run_tapedeck({"evaluate", t.folder / "mlp", "--data", "text:" + (t.folder / "text.txt")});
  CHECK(mlp.code == exit_usage);
  CHECK(contains(mlp.err, "is of mlp, which reads features"));
  const Outcome task = run_tapedeck({"evaluate", t.run, "--data", "task:sort"});
  CHECK(contains(task.err, "sort: its tokens are 0, 1,"));
}

TEST_CASE("generate and inspect refuse a run that is no gpt's") {
  const TemporaryFolder folder;
  REQUIRE(run_tapedeck({"train", "--data", "blobs", "--steps", "3", "--quiet", "--out", folder / "run"}).code ==
          exit_done);
  const Outcome outcome = run_tapedeck({"generate", folder / "run", "--prompt", "x"});
  CHECK(outcome.code == exit_failed);
  CHECK(contains(outcome.err, "mlp"));
}
