// Sweeps laid over each other: what is compared and by how much, what is not and why, and that the page is whole
// whatever their documents hold.
#include "apps/pages/sweeps_page.h"

#include "apps/files.h"
#include "tests/page_trouble.h"
#include "tests/runs.h"
#include "tests/sweep_document.h"

#undef CHECK  // below it is doctest's
#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

namespace fs = std::filesystem;
const std::vector<int> six_sizes = {4, 16, 64, 256, 1024, 4096};

SweepRecord record(const std::string& name) {
  return {.path = "runs/" + name,
          .name = name,
          .summary = made_up(six_sizes),
          .settings = {{"format_version", 1},
                       {"optimizer", {{"value", name}, {"origin", "flag"}}},
                       {"out", {{"value", "runs/" + name}, {"origin", "flag"}}},
                       {"lr", {{"value", 0.1}, {"origin", "default"}}}},
          .machine = {{"processor", "a"}, {"threads", 1}}};
}

// B_crit twice as large: half the Smin at the same Emin.
SweepRecord twice(const std::string& name) {
  SweepRecord out = record(name);
  for (Json* fit : {&out.summary["fit"], &out.summary["fits"][0]["fit"]}) {
    (*fit)["b_crit"] = {{"value", 128.0}, {"low", 102.4}, {"high", 160.0}};
    (*fit)["smin"] = 50.0;
    for (Json& row : (*fit)["rows"]) row["median"] = 50 + 6400 / row["batch"].get<double>();
  }
  for (Json& cell : out.summary["cells"])
    for (Json& at : cell["crossings"]) at["step"] = at["step"].get<double>() / 2;
  return out;
}

}  // namespace

TEST_CASE("sweeps page: B_crit of one over that of the other, with an interval of both") {
  const Sweeps sweeps = {record("sgd"), twice("momentum")};
  const std::string page = sweeps_page(sweeps);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(pictures(page).size(), 4);  // S, E, T, rates
  // In logs 128 lies 0.2231 above 102 and 64 lies 0.2231 below 80, together 0.3156; upwards 0.2231 and 0.2469: 0.3328.
  CHECK_EQ(
      lacks(page, {"The critical batch size of momentum is 2 [1.46, 2.79] times that of sgd at a validation loss of "
                   "0.2 (128 [102, 160] against 64 [50, 80] examples, 95 % intervals; 36 of 36 at 6 "
                   "sizes and 36 of 36 at 6 sizes reached): it is larger.",
                   "B_crit 64 sgd", "B_crit 128 momentum", "perfect scaling from the smallest size", ">0.5 [",
                   "momentum over sgd", "Options that differ", ">optimizer<", "Setting of momentum"}),
      "");
  CHECK(page.find(">out<") == page.npos);
  CHECK(page.find(">lr<") == page.npos);  // it is the same
  CHECK(page.find("these differ") == page.npos);
  const Table table = sweeps_table(sweeps);
  REQUIRE_EQ(table.rows.size(), 2);
  CHECK_EQ(table.rows[0][3].text, "1");
  CHECK_EQ(table.rows[1][3].text, "2 [1.46, 2.79]");
  const Json document = sweeps_json(sweeps);
  CHECK_EQ(document["ratios"][0]["b_crit"], 2.0);
  CHECK_EQ(document["ratios"][0]["over"], "sgd");
  CHECK(mentions(sweeps_sentences({record("one"), record("two")})[0], {"is 1 [", "no difference shown"}));
  CHECK(mentions(sweeps_sentences({twice("one"), record("two")})[0], {"is 0.5 [", "it is smaller"}));
  Sweeps poor = {record("one"), record("two")};
  poor[1].summary["fits"][0]["fit"]["verdict"] = "extrapolated";
  CHECK(mentions(sweeps_sentences(poor)[0], {"Beware: that of two is extrapolated."}));
  poor[1].summary["fits"][0]["fit"]["b_crit"] = Json();
  CHECK(mentions(sweeps_sentences(poor)[0], {"two has no B_crit with an interval"}));
}

TEST_CASE("sweeps page: what is not alike is said, and not compared") {
  Sweeps sweeps = {record("a"), twice("a")};
  sweeps[1].path = "others/a";
  CHECK_EQ(sweep_name(sweeps, 1), "others/a");
  sweeps[1].machine["processor"] = "b", sweeps[1].summary["status"] = "incomplete";
  sweeps[1].summary["timed"] = false, sweeps[1].summary["why_not_timed"] = "3 cells ran side by side";
  std::string page = sweeps_page(sweeps);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(lacks(page, {"these differ: processor", "others/a is incomplete", ", 6 of 6<",
                        "The seconds of others/a stand in no chart: 3 cells ran side by side."}),
           "");

  // A run that missed: no ratio at its size.
  for (Json& cell : sweeps[1].summary["cells"])
    if (cell["purpose"] == "run" && cell["batch"] == 64 && cell["seed"] == 3) cell["crossings"][0]["reached"] = false;
  CHECK(steps_by_size(sweeps[1], 0.2).contains(16));
  CHECK_FALSE(steps_by_size(sweeps[1], 0.2).contains(64));
  CHECK_EQ(page_trouble(sweeps_page(sweeps)), "");

  const auto says = [&](const char* key, const Json& value, const char* words) {
    Sweeps others = {record("a"), twice("b")};
    others[1].summary[key] = value;
    const std::string whole = sweeps_page(others);
    CHECK_EQ(page_trouble(whole), "");
    CHECK_EQ(lacks(whole, {words, "Nothing is compared"}), "");
    CHECK_EQ(pictures(whole).size(), 0);
    CHECK_EQ(sweeps_table(others).rows.size(), 0);
  };
  says("data", "mnist", "different data");
  says("data_hash", "another", "different data");
  says("kind", "fixed horizon", "fixed horizons");
  says("targets", {{"metric", "accuracy"}, {"values", {0.2}}}, "different metrics");
  says("targets", {{"metric", "loss"}, {"values", {0.3}}}, "no target in common");
}

TEST_CASE("sweeps page: the tightest target that all have, and B_crit by target") {
  Sweeps sweeps = {record("a"), twice("b"), record("c")};
  for (SweepRecord& sweep : sweeps) {  // 0.8 stands in all, 0.1 in the first alone
    sweep.summary["targets"]["values"] = {0.8, 0.2};
    Json loose = sweep.summary["fits"][0];
    loose["target"] = 0.8;
    sweep.summary["fits"].insert(sweep.summary["fits"].begin(), loose);
  }
  sweeps[0].summary["targets"]["values"].push_back(0.1);
  CHECK_EQ(common_targets(sweeps).values, std::vector<double>{0.8, 0.2});
  const std::string page = sweeps_page(sweeps);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(pictures(page).size(), 5);
  CHECK_EQ(lacks(page, {"At a validation loss of 0.2", "B_crit by target",
                        "The rates of a were tuned for 0.1, its tightest target, not for 0.2."}),
           "");
  CHECK(page.find("The rates of b") == page.npos);
  CHECK_EQ(sweeps_table(sweeps).rows.size(), 6);
}

TEST_CASE("sweeps page: with horizons a size has an interval of K, and no ratio") {
  const Sweeps sweeps = {{"a", "a", made_up_horizons(six_sizes), Json(), Json()},
                         {"b", "b", made_up_horizons(six_sizes), Json(), Json()}};
  const std::string page = sweeps_page(sweeps);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(
      lacks(page, {"the fewest steps K whose runs pass together", "no interval of a ratio", "no difference shown"}),
      "");
  CHECK(page.find("medians with exact") == page.npos);
  CHECK(page.find("b over a") == page.npos);
  const Middle at = steps_at(sweeps[0], common_targets(sweeps).values.back()).at(64);
  CHECK(at.low < at.median);
  CHECK(at.high == at.median);
}

TEST_CASE("sweeps page: null, missing and hostile fields leave the page whole") {
  for (const Json& nothing : {Json(), Json::object(), Json::array(), Json("text"), Json(3)}) {
    const SweepRecord empty = {"x", "<x>", nothing, nothing, nothing};
    CHECK_EQ(page_trouble(sweeps_page({empty, empty})), "");
    CHECK_EQ(page_trouble(sweeps_page({record("a"), empty})), "");
    CHECK_EQ(page_trouble(sweeps_page({empty, record("a")})), "");
  }
  Sweeps sweeps = {record("a"), {"y", "b", made_up({8, 64, 512}), Json(), Json()}};
  std::string first;
  each_null(sweeps[1].summary, [&] {
    const std::string page = sweeps_page(sweeps);
    for (const char* bad : {">nan", "\"nan", " nan", "[nan"})
      if (const size_t at = page.find(bad); at != page.npos && first.empty()) first = page.substr(at - 60, 120);
    if (!page.ends_with("</html>\n") && first.empty()) first = "no end";
  });
  CHECK_EQ(first, "");
}

TEST_CASE("report: sweeps are laid over each other, listed, and not mixed with runs") {
  const TemporaryFolder here;
  const auto make = [&](const SweepRecord& sweep) {
    const std::string folder = here / ("all/" + sweep.name);
    fs::create_directories(folder);
    write_file(folder + "/summary.json", sweep.summary.dump());
    write_file(folder + "/sweep.json", sweep.settings.dump());
    write_file(folder + "/machine.json", sweep.machine.dump());
    return folder;
  };
  const std::string sgd = make(record("sgd")), momentum = make(twice("momentum"));
  const Outcome both = run_tapedeck({"report", sgd, momentum, "--out", here / "both.html"});
  CHECK(both.code == exit_done);
  CHECK(read_file(here / "both.html") == sweeps_page({read_sweep(sgd), read_sweep(momentum)}));
  CHECK(mentions(run_tapedeck({"report", sgd, momentum, "--markdown"}).out, {"2 [1.46, 2.79]", "| target |"}));
  const Json document = Json::parse(run_tapedeck({"report", sgd, momentum, "--json"}).out);
  CHECK(document["kind"] == "sweeps");
  CHECK(document["sweeps"][1]["name"] == "momentum");

  fs::create_directories(here / "all/early");
  write_file(here / "all/early/sweep.json", "{}");
  const Outcome list = run_tapedeck({"report", here / "all", "--out", here / "list.html"});
  CHECK(list.code == exit_done);
  const std::string page = read_file(here / "list.html");
  CHECK_EQ(lacks(page, {"2 sweeps", "href=\"all/momentum/\"", "128 [102, 160]", "without a summary.json yet"}), "");
  CHECK(mentions(run_tapedeck({"report", here / "all", "--markdown"}).out, {"| sweep |", "momentum"}));

  fs::create_directories(here / "run");
  write_file(here / "run/config.json", "{\"format_version\": 1}");
  const Outcome mixed = run_tapedeck({"report", here / "run", sgd, "--out", here / "mixed.html"});
  CHECK(mixed.code == exit_usage);
  CHECK(mentions(mixed.err, {"is a sweep", "give the runs apart"}));
  CHECK(run_tapedeck({"report", sgd, here / "all/early"}).code == exit_usage);
  const Outcome twice_given = run_tapedeck({"report", sgd, here / "all/../all/sgd", "--out", here / "twice.html"});
  CHECK(twice_given.code == exit_usage);
  CHECK(mentions(twice_given.err, {"is the same sweep as"}));
  const Outcome one_place = run_tapedeck({"report", sgd, momentum, "--out", here / "x.html", "--csv", here / "x.html"});
  CHECK(one_place.code == exit_usage);
  CHECK(mentions(one_place.err, {"is where the page goes"}));
  CHECK_FALSE(fs::exists(here / "x.html"));
}
