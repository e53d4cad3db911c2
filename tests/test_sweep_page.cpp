// The pages of a sweep and of a fit, from made-up documents: whatever is missing, null, hostile or too much, the page
// is whole, its text touches no text, and nothing that ran away stretches an axis.
#include "apps/pages/sweep_page.h"

#include <fmt/format.h>

#include "apps/pages/html.h"
#include "tests/page_trouble.h"
#include "tests/sweep_document.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

const std::vector<int> six_sizes = {4, 16, 64, 256, 1024, 4096};
const Json machine = {{"processor", "a <processor>"}, {"compiler", "g++"}, {"flags", "-O3"},
                      {"libraries", "fmt"},           {"commit", "abc"},   {"threads", 1},
                      {"allowed_cores", 2},           {"gpu", Json()},     {"features", {"avx", "fma"}},
                      {"load", {{"busy", true}}}};

std::string rule(const std::string& page, const std::string& about) {
  const size_t at = page.find("</span>: " + about);
  if (at == page.npos) return "no such rule";
  const size_t from = page.rfind('>', at) + 1;
  return page.substr(from, at - from);
}

}  // namespace

TEST_CASE("sweep page: a complete sweep says, draws and judges everything") {
  const std::string page = sweep_page(made_up(six_sizes), machine);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(pictures(page).size(), 7);  // S, E, T, step time, rates, noise, map
  CHECK_EQ(lacks(page, {"the critical batch size is 64 examples",
                        "B_crit, examples<b>64</b>",
                        "95 % interval 50 to 80; determined",
                        "batch 64",
                        "by the law B* = 80",
                        "perfect scaling",
                        "diminishing returns",
                        "maximal",
                        "95 % band of the law",
                        "perfect scaling from the smallest size",
                        "this &lt;is&gt; a warning",
                        "square-root rule",
                        "are not the same",
                        "Here B_simple/B_crit is 0.516",
                        "6 of 6",
                        "≤ 80 %",
                        "All 78 cells",
                        "B_crit/9",
                        "a &lt;processor&gt;",
                        "The 95 % interval of steps covers 1"}),
           "");
  CHECK_EQ(rule(page, "n and an exact interval"), "holds");
  CHECK_EQ(rule(page, "setup, machine and build"), "holds");
  CHECK_EQ(rule(page, "the whole machine"), "does not hold");
  CHECK_EQ(rule(page, "the machine was quiet"), "does not hold");
  CHECK_EQ(rule(page, "one-time costs"), "holds");
  CHECK_EQ(rule(page, "the same size twice"), "holds");
  CHECK_EQ(rule(page, "failed and diverged"), "does not apply");
  CHECK_EQ(rule(page, "runs that missed"), "holds");
  CHECK_EQ(rule(page, "seeds of tuning"), "holds");
  CHECK_EQ(rule(page, "every size had equally many"), "holds");
  CHECK_EQ(rule(page, "every tuned rate"), "holds");
  CHECK_EQ(rule(page, "cells ran in a shuffled order"), "holds");
  CHECK_EQ(rule(page, "targets are as they were fixed"), "does not hold");  // the hash is made up
  CHECK_EQ(rule(page, "every step saw B"), "holds");
  CHECK_EQ(rule(page, "the sizes bracket"), "holds");
  CHECK_EQ(rule(page, "the sweep is complete"), "holds");
}

TEST_CASE("sweep page: rules can fail") {
  Json summary = made_up({32, 64, 128});  // none at B_crit/4
  summary["status"] = "incomplete", summary["again"]["covers_one"] = false;
  summary["sizes"][0]["n"] = 5, summary["sizes"][1]["edge"] = "high", summary["sizes"][1]["tuned"].erase(0);
  for (Json& cell : summary["cells"])
    if (cell["purpose"] == "tune")
      cell["seed"] = 3;
    else
      cell["began"] = cell["batch"];  // one size after the other
  summary["cells"][8]["examples"] = summary["cells"][8]["steps"].get<double>() * 20;
  summary["cells"][9]["status"] = "diverged";
  summary["cells"][10]["crossings"][0]["seconds"] = 1e6;
  const std::string page = sweep_page(summary, Json());
  CHECK_EQ(page_trouble(page), "");
  for (const char* about : {"n and an exact interval", "setup, machine and build", "one-time costs",
                            "the same size twice", "failed and diverged", "runs that missed", "seeds of tuning",
                            "cells ran in a shuffled order", "every size had equally many", "every tuned rate",
                            "every step saw B", "the sizes bracket", "the sweep is complete"}) {
    CAPTURE(about);
    CHECK_EQ(rule(page, about), "does not hold");
  }
  CHECK_EQ(lacks(page, {"The sweep is incomplete", "does not cover 1", "as little as 62 % of B"}), "");
  summary["cells"].back()["began"] = Json();  // as where the cells of a plan were run by hand
  const std::string by_hand = sweep_page(summary, Json());
  CHECK_EQ(lacks(by_hand, {"when it began is not recorded of 1 run"}), "");
}

TEST_CASE("sweep page: null, missing and hostile fields leave the page whole") {
  for (const Json& nothing : {Json(), Json::object(), Json::array(), Json("text"), Json(3)}) {
    const std::string page = sweep_page(nothing, nothing);
    CHECK_EQ(page_trouble(page), "");
    CHECK_EQ(lacks(page, {"No size has been measured yet"}), "");
    CHECK_EQ(page_trouble(fit_page(nothing)), "");
  }
  std::string first;
  for (Json document : {made_up({8, 64, 512}), made_up_horizons({8, 64, 512})})
    each_null(document, [&] {
      const std::string page = sweep_page(document, machine);
      for (const char* bad : {">nan", "\"nan", " nan"})
        if (const size_t at = page.find(bad); at != page.npos && first.empty()) first = page.substr(at - 60, 120);
      if (!page.ends_with("</html>\n") && first.empty()) first = "no end";
    });
  CHECK_EQ(first, "");

  Json summary = made_up({8, 64, 512});
  const std::string hostile = "<script src=\"http://x\">alert('1')</script>\xff";
  summary["model"] = summary["sentence"] = summary["sizes"][0]["why_no_rate"] = summary["fits"][0]["why_none"] =
      hostile;
  summary["cells"][0]["status"] = "failed", summary["cells"][0]["reason"] = hostile,
  summary["cells"][0]["id"] = hostile;
  summary["targets"]["pilot"] = hostile, summary["fit"]["verdict"] = hostile, summary["fit"]["warnings"] = {hostile};
  const std::string page = sweep_page(summary, {{hostile, hostile}});
  CHECK_EQ(tag_trouble(page), "");
  CHECK(page.find("<script") == page.npos);
}

TEST_CASE("sweep page: a run that diverged or missed stretches no axis") {
  Json summary = made_up(six_sizes);
  const auto heights = [](const Json& document) {  // of the first chart's axis, by its numbers
    std::string out;
    for (const SvgText& text : svg_texts(pictures(sweep_page(document, machine)).front()))
      if (text.text.find_first_not_of("0123456789.e-kM") == text.text.npos) out += text.text + " ";
    return out;
  };
  const std::string before = heights(summary);
  CHECK(before.size() > 10);
  Json& cell = summary["cells"][8];
  cell["status"] = "diverged", cell["reason"] = "the loss is not finite", cell["steps"] = 1, cell["examples"] = 4;
  cell["crossings"][0] = {{"target", 0.2}, {"reached", false}, {"lower", 1e38}, {"upper", Json()}, {"step", Json()}};
  CHECK_EQ(heights(summary), before);
  std::string page = sweep_page(summary, machine);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(lacks(page, {"× diverged", "diverged at step 1", "the loss is not finite"}), "");
  CHECK_EQ(rule(page, "failed and diverged"), "holds");

  // An interval of B_crit without end, and a law without a bend.
  summary["fit"]["b_crit"]["high"] = Json();
  CHECK_EQ(heights(summary), before);
  CHECK_EQ(lacks(sweep_page(summary, machine), {"50 to no end"}), "");
  summary["fit"]["b_crit"] = {{"value", Json()}, {"low", 9000.0}, {"high", Json()}};
  page = sweep_page(summary, machine);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(lacks(page, {"There is no critical size"}), "");
}

TEST_CASE("sweep page: all missed, one size, one size without runs, cells side by side, several targets") {
  Json summary = made_up(six_sizes);
  summary["fit"] = Json(), summary["fits"][0] = {{"target", 0.2}, {"fit", Json()}, {"why_none", "no size reached it"}};
  for (Json& size : summary["sizes"]) {
    size["reached"] = 0, size["missed"] = 6, size["steps"] = {{"median", Json()}, {"low", Json()}, {"high", Json()}};
    size["examples"] = size["seconds"] = size["steps"], size["ert_seconds"] = Json(), size["rate"] = Json();
  }
  for (Json& cell : summary["cells"])
    cell["status"] = "missed",
    cell["crossings"][0] = {{"target", 0.2}, {"reached", false}, {"lower", 9000}, {"upper", Json()}};
  std::string page = sweep_page(summary, machine);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(lacks(page, {"No law: no size reached it", "not reached", "6 missed", "missed by step"}), "");

  page = sweep_page(made_up({32}), machine);
  CHECK_EQ(page_trouble(page), "");
  summary = made_up(six_sizes);
  for (const char* figure : {"steps", "examples", "seconds", "step_ms", "noise_scale"})
    summary["sizes"][2][figure] = Json();
  summary["sizes"][2]["n"] = summary["sizes"][2]["reached"] = 0, summary["sizes"][2]["rate"] = Json();
  summary["sizes"][2]["why_no_rate"] = "no rate reached the target";
  CHECK_EQ(page_trouble(sweep_page(summary, machine)), "");
  CHECK_EQ(lacks(sweep_page(summary, machine), {"Batch 64: no rate reached the target."}), "");

  summary = made_up(six_sizes);
  summary["timed"] = false, summary["fit"]["wall_clock"] = Json();
  page = sweep_page(summary, machine);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(pictures(page).size(), 6);
  CHECK_EQ(lacks(page, {"there is no chart of the time to the target"}), "");
  CHECK_EQ(rule(page, "one-time costs"), "does not apply");

  summary["fits"].insert(summary["fits"].begin(), Json{{"target", 0.4}, {"fit", summary["fit"]}, {"why_none", Json()}});
  summary["fits"].insert(summary["fits"].begin(), Json{{"target", 0.8}, {"fit", Json()}, {"why_none", "too loose"}});
  page = sweep_page(summary, machine);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(lacks(page, {"B_crit by target", "no law: too loose"}), "");
}

TEST_CASE("sweep page: horizons have their intervals, every K that was tried for each target, and what ran twice") {
  Json summary = made_up_horizons(six_sizes);
  std::string page = sweep_page(summary, machine);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(lacks(page, {"fewest steps whose runs pass", "steps, fewest", "(141, 200]", "(70, 100]",
                        "141: 0.22, p 0.9; 200: 0.18, p 1e-05, passes", "B_crit by target",
                        "one of the runs of 200 steps, which pass", "batch 64: 200 pass, 141 do not; 6 runs of a K",
                        "They agree, as they should", "a median loss of 0.25 after 9000 steps, 1.00 of the least"}),
           "");
  CHECK(page.find("missed by step") == page.npos);
  CHECK(page.find("reached the target,") == page.npos);
  CHECK_EQ(rule(page, "n and an exact interval"), "does not apply");
  CHECK_EQ(rule(page, "the same size twice"), "holds");

  Json& twice = summary["again"]["horizons"];
  twice["second"]["failed"] = twice["second"]["passed"], twice["second"]["passed"] = Json();
  twice["agree"] = false, twice["places"] = 1, twice["at_least"] = true;
  page = sweep_page(summary, machine);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(lacks(page, {"and in more than 1700", "by at least 1 place of √2"}), "");
  CHECK_EQ(rule(page, "the same size twice"), "does not hold");
  twice["agree"] = Json();
  page = sweep_page(summary, machine);
  CHECK_EQ(lacks(page, {"the two cannot be compared"}), "");
  CHECK_EQ(rule(page, "the same size twice"), "does not apply");
}

TEST_CASE("sweep page: hundreds of cells, long names, figures of any size") {
  std::vector<int> many;
  for (int i = 0; i < 23; ++i) many.push_back(1 << i);
  Json summary = made_up(many);
  CHECK(summary["cells"].size() > 290);
  CHECK_EQ(page_trouble(sweep_page(summary, machine)), "");
  for (const double factor : {1e-12, 1e12, 1e200}) {
    Json scaled = made_up(six_sizes);
    scaled["fit"]["b_crit"] = {{"value", 64 * factor}, {"low", 50 * factor}, {"high", 80 * factor}};
    for (Json& size : scaled["sizes"]) {
      size["rate"] = size["rate"].get<double>() * factor, size["seconds"] = middle(factor, 6);
      size["noise_scale"]["median"] = factor;
    }
    CAPTURE(factor);
    CHECK_EQ(page_trouble(sweep_page(scaled, machine)), "");
  }
}

TEST_CASE("fit page: the law, its rows and warnings, of steps and of a cost") {
  Json document = {{"command", "fit"}, {"file", "a <file>.csv"}, {"fit", made_up_fit(six_sizes)}};
  std::string page = fit_page(document);
  CHECK_EQ(page_trouble(page), "");
  CHECK_EQ(pictures(page).size(), 3);  // S, E, T
  CHECK_EQ(lacks(page, {"Scaling law of a &lt;file&gt;.csv",
                        "The critical batch size is 64 examples (95 % interval 50 to 80", "this &lt;is&gt; a warning",
                        "+1.0 %", "2000 draws", "steps to the target", "training time, s", "B* 80"}),
           "");
  document["fit"]["unit"] = "cost";
  for (Json& row : document["fit"]["rows"]) row["seconds"] = Json();
  page = fit_page(document);
  CHECK_EQ(page_trouble(page), "");
  CHECK(page.find("steps to the target") == page.npos);
  CHECK_EQ(pictures(page).size(), 2);  // nothing is known of the clock
}
