// Charts of pages: honest ticks, limits that nothing stretches, and text that touches no text.
#include "apps/pages/chart.h"

#include <cmath>
#include <limits>

#include "apps/pages/html.h"
#include "tests/svg_texts.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

std::vector<std::string> tick_texts(const Axis& axis, std::vector<double> values, double pixels = 400) {
  std::vector<std::string> out;
  for (const Tick& tick : Ruler(axis, values, 0, pixels).ticks(11))
    if (!tick.text.empty()) out.push_back(tick.text);
  return out;
}
using Texts = std::vector<std::string>;

Series curve(const std::string& name, std::vector<double> ys) {
  Series s{.name = name};
  for (size_t i = 0; i < ys.size(); ++i) s.points.push_back({.x = static_cast<double>(i + 1), .y = ys[i]});
  return s;
}
const double inf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("axis: ticks are 1, 2 or 5 times a power of ten, decades, or powers of two") {
  CHECK(tick_texts({}, {0, 1}) == Texts{"0", "0.2", "0.4", "0.6", "0.8", "1.0"});
  CHECK(tick_texts({}, {0, 302}) == Texts{"0", "50", "100", "150", "200", "250", "300"});
  CHECK(tick_texts({.whole = true}, {1, 3}) == Texts{"1", "2", "3"});
  CHECK(tick_texts({.whole = true}, {7}) == Texts{"7"});
  CHECK(tick_texts({}, {0, 48000}) == Texts{"0", "10k", "20k", "30k", "40k"});
  CHECK(tick_texts({.scale = Scale::log}, {1, 300}) == Texts{"1", "2", "5", "10", "20", "50", "100", "200"});
  CHECK(tick_texts({.scale = Scale::log}, {1e-6, 1e6}).front() == "1e-6");
  CHECK(tick_texts({.scale = Scale::log2}, {1, 2048}, 600) ==
        Texts{"1", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024", "2048"});
  CHECK(tick_texts({.scale = Scale::log2}, {1, 2048}, 120).size() < 7);  // thinned, still powers of two
}

TEST_CASE("axis: every extreme has ends, and ticks within them that differ") {
  const std::vector<std::vector<double>> all = {{},
                                                {0},
                                                {5},
                                                {-3, -3},
                                                {1e308, -1e308},
                                                {1e-310},
                                                {1e38, 1},
                                                {1e-9, 2e-9},
                                                {0.97, 0.971},
                                                {-1e-30, 1e-30},
                                                {1e6, 1e6 + 1},
                                                {123456789, 123456790},
                                                {NAN, inf, 2},
                                                {0, 1e15}};
  for (const Scale scale : {Scale::linear, Scale::log, Scale::log2})
    for (const std::vector<double>& values : all)
      for (const double pixels : {60.0, 240.0, 600.0}) {
        const Ruler ruler({.scale = scale}, values, 0, pixels);
        CAPTURE(values.size());
        CAPTURE(ruler.low());
        CAPTURE(ruler.high());
        CHECK(std::isfinite(ruler.low()));
        CHECK(std::isfinite(ruler.high()));
        CHECK(ruler.low() < ruler.high());
        for (const Tick& tick : ruler.ticks(11)) {
          const double at = ruler.at(tick.value);
          CHECK(at >= -0.01);
          CHECK(at <= pixels + 0.01);
        }
      }
}

TEST_CASE("chart: a run that diverged stretches no axis, is cut, and says so") {
  // Fault: one loss of 1e38 makes a flat line of all others.
  Chart chart{.title = "loss", .x = {.title = "steps"}, .y = {.title = "loss", .robust = true}};
  chart.series.push_back(curve("good", {2.3, 1.9, 1.4, 1.0, 0.8, 0.6, 0.5, 0.4}));
  Series bad = curve("bad", {2.3, 2.4, 9, 1e5, 1e20, 1e38, NAN});
  bad.colour = 1, bad.diverged = true, bad.note = "diverged at step 7";
  chart.series.push_back(bad);
  const std::string svg = chart_svg(chart);
  CHECK(text_trouble(svg) == "");
  CHECK(tag_trouble(svg) == "");
  CHECK(svg.find("diverged at step 7") != svg.npos);
  CHECK(svg.find("4 of the points lie beyond the axis") != svg.npos);
  for (const SvgText& text : svg_texts(svg)) CHECK(text.text.find("e38") == std::string::npos);
  CHECK(svg.find("nan") == svg.npos);
  CHECK(svg.find("inf") == svg.npos);

  // Not flagged, as of a process that was killed: the end alone tells.
  chart.series.back().diverged = false;
  for (const SvgText& text : svg_texts(chart_svg(chart))) CHECK(text.text.find("1e") == std::string::npos);
  // Without the other there is a chart, too.
  chart.series = {bad};
  CHECK(text_trouble(chart_svg(chart)) == "");
  chart.series = {curve("nothing finite", {NAN, NAN})};
  CHECK(text_trouble(chart_svg(chart)) == "");
}

TEST_CASE("chart: gaps, misses, intervals without end, bands and regions") {
  Chart chart{.title = "steps",
              .x = {.title = "batch size", .scale = Scale::log2},
              .y = {.title = "steps", .scale = Scale::log}};
  Series s{.name = "measured", .line = false, .markers = true};
  s.points = {{.x = 1, .y = 900, .low = 800, .high = 990},
              {.x = 2, .y = 500, .low = 450, .high = inf},
              {.x = 4, .y = inf, .missed = true},
              {.x = 8, .y = 2000, .missed = true},
              {.x = 16, .y = 0}};  // cannot be shown on this axis
  chart.series = {s};
  chart.bands = {{.name = "95 % of the fit", .edges = {{1, 700, 1000}, {8, 100, 200}, {16, 0, inf}}}};
  chart.regions = {{-inf, 2, "perfect scaling"}, {8, inf, "no use"}};
  chart.guides = {{4, true, "B_crit 4"}, {600, false, "half"}};
  const std::string svg = chart_svg(chart);
  CHECK(text_trouble(svg) == "");
  CHECK(tag_trouble(svg) == "");
  CHECK(svg.find("1 of the points lie beyond the axis") != svg.npos);
  for (const char* said : {"perfect scaling", "no use", "B_crit 4", "half", "95 % of the fit", "measured: 1, 900"})
    CHECK(svg.find(said) != svg.npos);
  CHECK(svg.find("open s0") != svg.npos);
  CHECK(svg.find("inf") == svg.npos);
}

TEST_CASE("chart: no text touches another, whatever it says") {
  const std::string longest(200, 'W');
  Texts words = {"", "a", "diverged at step 7", longest, "<b>&\"'", "日本語のラベル日本語のラベル", "\xff\xfe broken"};
  unsigned random = 7;
  const auto draw = [&](unsigned n) { return (random = random * 1664525u + 1013904223u) >> 16 & 0x7fff % (n ? n : 1); };
  for (int round = 0; round < 60; ++round) {
    Chart chart{.title = words[draw(7)], .note = words[draw(7)]};
    chart.x = {.title = words[draw(7)], .scale = static_cast<Scale>(round % 3)};
    chart.y = {.title = words[draw(7)], .scale = static_cast<Scale>(round / 3 % 3), .robust = round % 2 == 0};
    chart.large = round % 5 == 0;
    for (unsigned i = 0; i < draw(14); ++i) {
      Series s = curve(words[draw(7)], {});
      s.colour = static_cast<int>(i), s.note = words[draw(7)], s.markers = draw(2), s.line = draw(2),
      s.diverged = draw(2);
      for (unsigned k = 0; k < draw(30); ++k)
        s.points.push_back({.x = std::pow(10.0, draw(9) - 2.0) * draw(9),
                            .y = std::pow(10.0, draw(80) - 40.0),
                            .missed = draw(9) == 0});
      chart.series.push_back(s);
    }
    for (unsigned i = 0; i < draw(5); ++i)
      chart.guides.push_back({std::pow(10.0, draw(6)), draw(2) == 0, words[draw(7)]});
    for (unsigned i = 0; i < draw(4); ++i) chart.regions.push_back({1.0 * draw(50), 50.0 + draw(500), words[draw(7)]});
    const std::string svg = chart_svg(chart);
    CAPTURE(round);
    CHECK(text_trouble(svg) == "");
    CHECK(tag_trouble(svg) == "");
  }
}

TEST_CASE("heat map: cells, framed best, names that fit") {
  HeatMap map{.title = "steps by rate", .x_title = "batch size", .y_title = "rate", .log = true};
  for (int c = 0; c < 30; ++c) map.columns.push_back(std::to_string(1 << (c % 20)));
  for (int r = 0; r < 9; ++r) {
    map.rows.push_back(std::string(static_cast<size_t>(r) * 8, 'm') + "0.01");
    map.cells.emplace_back();
    for (int c = 0; c < 30 - r; ++c)
      map.cells.back().push_back({.value = c == 3 ? NAN : 10.0 + r * c,
                                  .text = c == 3 ? "diverged" : "12345",
                                  .title = "<steps>",
                                  .best = c == 2});
  }
  for (const size_t columns : {30u, 12u, 3u, 1u, 0u}) {
    map.columns.resize(columns);
    const std::string svg = heat_map_svg(map);
    CHECK(text_trouble(svg) == "");
    CHECK(tag_trouble(svg) == "");
  }
  map.columns = {"1", "2", "4", "8"};
  const std::string svg = heat_map_figure(map);
  CHECK(svg.find("class=\"best\"") != svg.npos);
  CHECK(svg.find("&lt;steps&gt;") != svg.npos);
  CHECK(svg.find(">diverged<") != svg.npos);
  CHECK(tag_trouble(svg) == "");
}

TEST_CASE("html: text is escaped, tags are closed, and nothing is loaded from anywhere") {
  CHECK(html_text("a<b> & \"c\" 'd'\x01\xff") == "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(html_text("日本") == "日本");
  Table table{{"name", "steps"}, {{{.text = "<x>", .link = "a\"b/"}, {.text = "3", .number = true, .bar = 0.5}}}};
  const std::string page = html_page(
      "<title>", heading(1, "a & b") + paragraph("<p>", "lead") + html_table(table, "c<d") + facts({{"k<", "v>"}}) +
                     details("s<", "<p>x</p>\n") + beside({chart_figure({.title = "t<"})}));
  CHECK(tag_trouble(page) == "");
  for (const char* bad : {"http://", "https://", "<script", "src=", "@import", "url(", "<x>", "<title><title>"})
    CHECK(page.find(bad) == page.npos);
  CHECK(page.find("prefers-color-scheme: dark") != page.npos);
  CHECK(page.find("@media print") != page.npos);
}
