// tapedeck report: pages of runs, of what diverged and what is damaged, and what stands on stdout.
#include <regex>

#include "apps/files.h"
#include "apps/pages/html.h"
#include "tests/runs.h"
#include "tests/svg_texts.h"

#undef CHECK  // below it is doctest's
#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

namespace fs = std::filesystem;

// A page that needs nothing else, with text that touches no text.
void check_page(const std::string& page) {
  CHECK(tag_trouble(page) == "");
  for (const char* bad : {"http://", "https://", "<script", " src=", "@import", "url(", "nan", "inf,", "1e+38"})
    CHECK_MESSAGE(page.find(bad) == page.npos, bad);
  static const std::regex picture("<svg[^]*?</svg>");
  int pictures = 0;
  for (auto m = std::sregex_iterator(page.begin(), page.end(), picture); m != std::sregex_iterator(); ++m, ++pictures)
    CHECK(text_trouble(m->str()) == "");
  CHECK(pictures > 0);
}

void write(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  write_file(path, text);
}

// A run folder as train writes it, with made-up numbers.
void make_run(const std::string& folder, const std::string& metrics, const std::string& status, int steps) {
  write(folder + "/config.json",
        R"({"format_version": 1, "command": "train", "model": {"value": "mlp", "origin": "default"},
            "data": {"value": "blobs", "origin": "flag"}, "lr": {"value": 30.0, "origin": "flag"},
            "optimizer": {"value": "sgd", "origin": "flag"}, "note": {"value": "<i>x</i> & \"y\"", "origin": "flag"}})");
  write(folder + "/metrics.jsonl", metrics);
  if (!status.empty())
    write(folder + "/summary.json", R"({"format_version": 1, "command": "train", "status": ")" + status +
                                        R"(", "steps": )" + std::to_string(steps) +
                                        R"(, "target": {"metric": "accuracy", "value": 0.9, "reached": false}})");
}

const char* const until_step_7 =
    R"({"step":1,"examples":32,"seconds":0.1,"validation_loss":2.3,"validation_accuracy":0.1}
{"step":2,"examples":64,"seconds":0.2,"validation_loss":3.5,"validation_accuracy":0.2}
{"step":4,"examples":128,"seconds":0.4,"validation_loss":1e20,"validation_accuracy":0.1}
{"step":6,"examples":192,"seconds":0.6,"validation_loss":1e38,"validation_accuracy":0.1}
{"step":7,"examples":224,"seconds":0.7,"train_loss":null,"gradient_norm":null,"lr":30.0,"finite":false}
)";
const char* const until_step_9 =
    R"({"step":1,"examples":32,"seconds":0.1,"validation_loss":2.3,"validation_accuracy":0.1}
{"step":3,"examples":96,"seconds":0.3,"validation_loss":1.2,"validation_accuracy":0.6}
{"step":9,"examples":288,"seconds":0.9,"validation_loss":0.4,"validation_accuracy":0.95}
)";

}  // namespace

TEST_CASE("report: a run's page says what, when and how, and every option with its origin") {
  const TemporaryFolder here;
  const std::string run = here / "a run";
  REQUIRE(run_tapedeck(small + Words{"--out", run, "--epochs", "3", "--target", "loss=1.05", "--note", "<b>&"}).code !=
          2);
  const Outcome done = run_tapedeck({"report", run});
  CHECK(done.code == exit_done);
  CHECK(done.out == "wrote " + run + "/report.html\n");
  const std::string page = read_file(run + "/report.html");
  check_page(page);
  for (const char* said : {"mlp with", "parameters on blobs", "validation loss ≤ 1.05", "training clock",
                           "Loss by steps", "Accuracy by steps", "checkpoint-every", "flag", "Hoefler", "does not hold",
                           "holds", "&lt;b&gt;&amp;", "commit", "The same against examples"})
    CHECK_MESSAGE(contains(page, said), said);
  CHECK(run_tapedeck({"report", run}).code == exit_done);  // a page of ours is replaced
  write(run + "/report.html", "my notes");
  const Outcome refused = run_tapedeck({"report", run});
  CHECK(refused.code == exit_usage);
  CHECK(contains(refused.err, "no page of tapedeck"));
  CHECK(read_file(run + "/report.html") == "my notes");
  CHECK(run_tapedeck({"report", run, "--force"}).code == exit_done);
}

TEST_CASE("report: a run that diverged at step 7 ends there, and others are drawn to their scale") {
  // Fault: one inf in a file, and the viewer shows no run at all, or an axis up to 1e38.
  const TemporaryFolder here;
  make_run(here / "runs/bad", until_step_7, "diverged", 7);
  make_run(here / "runs/good", until_step_9, "done", 9);
  const std::string page_file = here / "page.html";
  REQUIRE(run_tapedeck({"report", here / "runs/bad", here / "runs/good", "--out", page_file}).code == exit_done);
  const std::string page = read_file(page_file);
  check_page(page);
  CHECK(contains(page, "diverged at step 7"));
  const std::string first = page.substr(page.find("<svg"), page.find("</svg>") - page.find("<svg"));
  int numbers = 0;
  for (const SvgText& text : svg_texts(first)) {
    CHECK(text.text.find("e3") == std::string::npos);
    numbers += std::isdigit(static_cast<unsigned char>(text.text[0])) != 0;
  }
  CHECK(numbers > 5);
  CHECK(contains(first, "good, step 9: 0.4"));

  const Outcome alone = run_tapedeck({"report", here / "runs/bad", "--json"});
  CHECK(alone.code == exit_done);
  CHECK(alone.json()["runs"][0]["diverged_at"] == 7);
  CHECK_FALSE(fs::exists(here / "runs/bad/report.html"));  // --json alone writes no page
  REQUIRE(run_tapedeck({"report", here / "runs/bad"}).code == exit_done);
  check_page(read_file(here / "runs/bad/report.html"));
  CHECK(contains(read_file(here / "runs/bad/report.html"), "The run diverged at step 7"));

  make_run(here / "runs/killed", until_step_7, "", 0);  // it could not say so itself
  CHECK(run_tapedeck({"report", here / "runs/killed", "--json"}).json()["runs"][0]["diverged_at"] == 7);
}

TEST_CASE("report: lines that are no strict JSON are left out and counted") {
  const TemporaryFolder here;
  const std::string run = here / "r";
  make_run(run, std::string(until_step_9) + "{\"step\":10,\"validation_loss\":NaN}\n{\"step\":12,\"valid", "done", 12);
  REQUIRE(run_tapedeck({"report", run}).code == exit_done);
  CHECK(contains(read_file(run + "/report.html"), "2 of 5 lines are left out, the first is line 4"));
  for (const char* metrics : {"", "{\"step\":1}\n", "[]\n", "{\"step\":1,\"validation_loss\":\"x\"}\n"}) {
    make_run(run, metrics, "interrupted", 0);
    REQUIRE(run_tapedeck({"report", run}).code == exit_done);
    CHECK(tag_trouble(read_file(run + "/report.html")) == "");
  }
  fs::remove(run + "/metrics.jsonl");
  REQUIRE(run_tapedeck({"report", run}).code == exit_done);
  CHECK(contains(read_file(run + "/report.html"), "there is no metrics.jsonl"));
}

TEST_CASE("report: a repeat shows every seed, k of n, and the interval of the median") {
  const TemporaryFolder here;
  const std::string run = here / "repeat";
  run_tapedeck(small + Words{"--out", run, "--epochs", "2", "--target", "loss=1.3", "--repeat", "6"});
  REQUIRE(run_tapedeck({"report", run}).code == exit_done);
  const std::string page = read_file(run + "/report.html");
  check_page(page);
  for (const char* said : {" of 6 runs reached validation loss ≤ 1.3", "% interval of the median", "n = 6",
                           "xpected running time", "seed 6", "Time to the target"})
    CHECK_MESSAGE(contains(page, said), said);
  // A seed without a summary is named and counts nowhere.
  fs::remove(run + "/seed-3/summary.json");
  REQUIRE(run_tapedeck({"report", run}).code == exit_done);
  CHECK(contains(read_file(run + "/report.html"), "1 of 6 runs have no summary"));
  CHECK(contains(read_file(run + "/report.html"), " of 5 runs reached"));
}

TEST_CASE("report: a folder of runs is a table with links that hold from the page") {
  const TemporaryFolder here;
  make_run(here / "runs/a b#1", until_step_9, "done", 9);
  make_run(here / "runs/broken", until_step_9, "done", 9);
  write(here / "runs/broken/summary.json", R"({"format_version": 99})");
  REQUIRE(run_tapedeck({"report", here / "runs/a b#1"}).code == exit_done);
  REQUIRE(run_tapedeck({"report", here / "runs"}).code == exit_done);
  const std::string page = read_file(here / "runs/report.html");
  CHECK(tag_trouble(page) == "");
  CHECK(contains(page, "href=\"a%20b%231/report.html\""));
  CHECK(contains(page, "has format_version 99"));
  REQUIRE(run_tapedeck({"report", here / "runs", "--out", here / "list.html"}).code == exit_done);
  CHECK(contains(read_file(here / "list.html"), "href=\"runs/a%20b%231/report.html\""));
}

TEST_CASE("report: CSV, markdown and JSON of the same runs") {
  const TemporaryFolder here;
  make_run(here / "a,b", until_step_9, "done", 9);
  make_run(here / "c|d", until_step_7, "diverged", 7);
  const Words both = {"report", here / "a,b", here / "c|d"};
  const std::string csv = here / "t.csv";
  const Outcome table = run_tapedeck(both + Words{"--csv", csv});
  CHECK(table.out == "wrote " + csv + "\n");
  const std::string text = read_file(csv);
  CHECK(text.starts_with("run,folder,status,diverged_at,"));
  CHECK(contains(text, "\n\"a,b\","));
  CHECK(contains(text, "diverged,7,"));
  CHECK(run_tapedeck(both + Words{"--csv", csv}).code == exit_usage);
  const std::string markdown = run_tapedeck(both + Words{"--markdown"}).out;
  CHECK(contains(markdown, "| run |"));
  CHECK(contains(markdown, "c\\|d"));
  CHECK(contains(markdown, "diverged at step 7"));
  const Json json = run_tapedeck(both + Words{"--json"}).json();
  CHECK(json["kind"] == "runs");
  CHECK(json["runs"].size() == 2);
  CHECK(json["runs"][1]["metrics"].size() == 5);
  CHECK(json["checklist"].size() == 16);
  CHECK(run_tapedeck(both + Words{"--json", "--markdown"}).code == exit_usage);
}

TEST_CASE("report: documents of compare, profile and bench") {
  const TemporaryFolder here;
  const auto page_of = [&](const Words& command, const char* name) {
    REQUIRE(run_tapedeck(command + Words{"--quiet", "--save", here / (std::string(name) + ".json")}).code == exit_done);
    const Outcome done = run_tapedeck({"report", here / (std::string(name) + ".json")});
    CHECK(done.out == "wrote " + here / (std::string(name) + ".html") + "\n");
    const std::string page = read_file(here / (std::string(name) + ".html"));
    CHECK(tag_trouble(page) == "");
    CHECK(contains(page, "processor"));
    return page;
  };
  const std::string compared = page_of({"compare", "--a", "--lr 1e-3", "--b", "--lr 1e-2", "--data", "blobs",
                                        "--hidden", "8", "--epochs", "1", "--seeds", "2"},
                                       "compare");
  check_page(compared);
  CHECK(contains(compared, "step time"));
  CHECK(contains(compared, "--lr 1e-2"));
  const std::string profiled =
      page_of({"profile", "--data", "blobs", "--hidden", "8", "--window", "active=2"}, "profile");
  CHECK(contains(profiled, "gemm backward"));
  CHECK(contains(profiled, "class=\"bar\""));
  const std::string bench =
      page_of({"bench", "step", "--batches", "4,8", "--hidden", "8", "--rounds", "1", "--steps", "2"}, "bench");
  check_page(bench);
  CHECK(contains(bench, "Time by batch"));
  CHECK(contains(run_tapedeck({"report", here / "profile.json", "--markdown"}).out, "| op |"));
}

TEST_CASE("report: what is no run is refused in a sentence, and nothing is left half written") {
  const TemporaryFolder here;
  const auto refusal = [](const Words& words, int code) {
    const Outcome outcome = run_tapedeck(words);
    CHECK(outcome.code == code);
    CHECK(outcome.out.empty());
    CHECK(std::count(outcome.err.begin(), outcome.err.end(), '\n') == 1);
    return outcome.err;
  };
  CHECK(mentions(refusal({"report"}, exit_usage), {"path is missing"}));
  CHECK(mentions(refusal({"report", here / "none"}, exit_usage), {"no such file"}));
  fs::create_directories(here / "empty");
  CHECK(mentions(refusal({"report", here / "empty"}, exit_usage), {"no run", "config.json"}));
  write(here / "text.json", "hello");
  CHECK(mentions(refusal({"report", here / "text.json"}, exit_usage), {"no JSON document"}));
  write(here / "other.json", "{\"a\": 1}");
  CHECK(mentions(refusal({"report", here / "other.json"}, exit_usage), {"bench, compare or profile"}));
  write(here / "newer.json", "{\"format_version\": 2, \"rows\": []}");
  CHECK(mentions(refusal({"report", here / "newer.json"}, exit_usage), {"format_version 2", "newer"}));
  make_run(here / "run", until_step_9, "done", 9);
  write(here / "run/config.json", "{\"format_version\": 3}");
  CHECK(mentions(refusal({"report", here / "run"}, exit_usage), {"config.json", "format_version 3"}));
  make_run(here / "run", until_step_9, "done", 9);
  CHECK(mentions(refusal({"report", here / "run", here / "other.json"}, exit_usage), {"give it alone"}));
  for (const char* option : {"--out", "--csv"}) {
    CHECK(mentions(refusal({"report", here / "run", option, here / "none/y"}, exit_usage),
                   {"none/y: cannot be written: No such file or directory; choose another name"}));
    CHECK(
        mentions(refusal({"report", here / "run", option, here / "empty"}, exit_usage), {"is a folder, needs a file"}));
    CHECK(mentions(refusal({"report", here / "run", option, here / "text.json"}, exit_usage), {"--force to replace"}));
  }
  if (fs::exists("/dev/full")) {  // the name is right, and the disk full
    const Outcome full = run_tapedeck({"report", here / "run", "--out", "/dev/full"});
    CHECK(full.code == exit_failed);
    CHECK(mentions(full.err, {"/dev/full: cannot be written: No space left on device"}));
  }
  write(here / "run/summary.json", "{\"format_version\": 1, \"steps\": \"many\"}");
  CHECK(mentions(refusal({"report", here / "run"}, exit_failed), {"steps"}));
  CHECK_FALSE(fs::exists(here / "run/report.html"));
  CHECK(mentions(refusal({"report", here / "run", "--prot"}, exit_usage), {"--prot", "nearest"}));
}
