#include "apps/bench_loader_text.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/bench_report.h"
#include "data/byte_count.h"

namespace tapedeck {
namespace {

double number(const Json& row, const char* key) { return row[key].get<double>(); }

std::string step_line(const Json& row, bool crowded) {
  const bool resident = row["workers"].is_null();
  std::string out = fmt::format(
      "{:<9} {:>6}{} {:>9.3f} {:>8.3f} {:>8.3f} {:>6} {:>8.3f}", row["data"].get<std::string>(),
      resident ? "" : std::to_string(row["workers"].get<int>()), crowded ? "*" : " ", number(row, "median_ms"),
      number(row, "p05"), number(row, "p95"), row["n"].get<int64_t>(), number(row, "mean_ms"));
  if (!resident)
    out += fmt::format(" {:>8.3f} {:>8.3f} {:>6.2f} {:>7.1f}%", number(row, "load_ms"), number(row, "bound_ms"),
                       number(row, "over_bound"), 100 * number(row, "wait_share"));
  return out + unstable_mark(row) + "\n";
}

std::string interval(const Json& row, int digits) {
  if (row["ratio_low"].is_null()) return "   none from one round";
  return fmt::format("   {:.{}f} to {:.{}f}", number(row, "ratio_low"), digits, number(row, "ratio_high"), digits);
}

std::string worker_line(const Json& row) {
  return fmt::format("{:<9} {:>10.3f}{:<22} {} by default\n", row["data"].get<std::string>(), number(row, "ratio"),
                     interval(row, 3), row["default_workers"].get<int>());
}

std::string read_line(const Json& row) {
  return fmt::format("{:<9} {:>10.4f} {:>10.4f} {:>8.1f}{}\n", row["order"].get<std::string>(),
                     number(row, "csv_seconds"), number(row, "shard_seconds"), number(row, "ratio"), interval(row, 1));
}

}  // namespace

std::string bench_loader_text(const Json& document, const Config& config, Device device) {
  const int cores = allowed_cores(), computing = threads();
  std::string hidden;
  for (const int64_t width : config.hidden) hidden += fmt::format("{}-", width);
  std::string out = fmt::format(
      "mlp 784-{}10, {}, {} on {}, batch {}, prefetch {}; {} of {} cores compute (--threads)\n"
      "{} made-up images of 28x28 bytes, 4 of 5 bytes 0: {} bytes as CSV, {} as a shard, both in the page cache\n\n",
      hidden, config.optimizer, config.precision, name(device), config.batch, config.prefetch, computing, cores,
      grouped(document["images"].get<uint64_t>()), grouped(document["csv_bytes"].get<uint64_t>()),
      grouped(document["shard_bytes"].get<uint64_t>()));
  out += fmt::format("{:<9} {:>7} {:>9} {:>8} {:>8} {:>6} {:>8} {:>8} {:>8} {:>6} {:>8}\n", "data", "workers",
                     "median ms", "5 %", "95 %", "n", "mean ms", "t_d ms", "bound", "ratio", "waiting");
  for (const Json& row : document["rows"])
    if (row["name"] == "loader")
      out += step_line(row, !row["workers"].is_null() && computing + row["workers"].get<int>() > cores);
  out += fmt::format(
      "mean: of a round's steps, the median of the rounds; workers that deliver in bursts bend the median of steps\n"
      "t_d: to load a batch alone, on one thread; t_c: a step on the resident batch, {:.3f} ms\n"
      "bound: t_d + t_c without workers, else max(t_d / workers, t_c); ratio: mean / bound\n"
      "The bound of workers holds where each has a core of its own. Where all cores compute, workers take their time\n"
      "from the step; * marks more threads than cores.\n"
      "All eight ways that load trained bitwise the same weights.\n\n",
      number(document, "compute_ms"));
  const Json& parsing = document["parsing"];
  out += fmt::format(
      "parsing text is {:.0f} % of a step that loads its own batch from CSV; t_d + t_c explains {:.0f} % of that step; "
      "the\nshard loads a batch {} times as fast\n\n",
      100 * number(parsing, "share"), 100 / number(parsing, "step_over_parts"), ratio_text(parsing["cut_by_shard"]));
  out += fmt::format("a step with one worker over a step without, by rounds\n{:<9} {:>10}   {:<19} workers\n", "data",
                     "ratio", "95 % interval");
  for (const Json& row : document["rows"])
    if (row["name"] == "worker") out += worker_line(row);
  out += fmt::format(
      "\nall images read once, from a file just opened, in batches; the shard checks its sums meanwhile\n"
      "{:<9} {:>10} {:>10} {:>8}   95 % interval (t, paired logs)\n",
      "order", "csv s", "shard s", "ratio");
  for (const Json& row : document["rows"])
    if (row["name"] == "read") out += read_line(row);
  return out + "Both gave the same numbers.\n";
}

}  // namespace tapedeck
