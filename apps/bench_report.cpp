#include "apps/bench_report.h"

#include <fmt/format.h>

#include <iostream>
#include <utility>

#include "apps/files.h"
#include "apps/record.h"
#include "apps/stats.h"

namespace tapedeck {
namespace {

BenchDocuments* gathering = nullptr;

}  // namespace

BenchDocuments::BenchDocuments() : outer_(std::exchange(gathering, this)) {}
BenchDocuments::~BenchDocuments() { gathering = outer_; }

Load load_before_bench(const Config& config) {
  if (!config.save.empty()) check_writable(config.save);
  const Load load = measure_load();
  if (load.busy && !config.quiet)
    std::cerr << "this machine is busy with something else: these times will be too long\n";
  return load;
}

Json bench_row(const char* name, const Json& parameters) {
  std::string key = name;
  for (const auto& [parameter, value] : parameters.items())
    key += fmt::format(" {}={}", parameter,
                       value.is_string()    ? value.get<std::string>()
                       : value.is_boolean() ? value.get<bool>() ? "yes" : "no"
                                            : value.dump());
  Json row = {{"name", name}, {"key", key}};
  row.update(parameters);
  return row;
}

void add_times(Json& row, const char* median_key, std::span<const double> times, std::span<const double> rounds) {
  const auto at = [&](double p) { return times.empty() ? Json() : Json(quantile(times, p)); };
  row["n"] = times.size();
  row[median_key] = at(0.5);
  row["p05"] = at(0.05);
  row["p95"] = at(0.95);
  row["unstable"] = !times.empty() && quantile(times, 0.95) > 1.5 * median(times);
  row["rounds"] = rounds;
}

const char* unstable_mark(const Json& times) { return times["unstable"] == true ? "  unstable" : ""; }

void add_ratio(Json& row, std::span<const double> a, std::span<const double> b) {
  const auto interval = paired_ratio(a, b);
  row["n"] = a.size();
  row["ratio"] = interval ? interval->ratio : a[0] / b[0];
  row["ratio_low"] = interval ? Json(interval->low) : Json();
  row["ratio_high"] = interval ? Json(interval->high) : Json();
}

std::string ratio_text(const Json& ratio) {
  std::string out = fmt::format("{:.3f}", ratio["ratio"].get<double>());
  if (!ratio["ratio_low"].is_null())
    out += fmt::format(" [{:.3f}, {:.3f}]", ratio["ratio_low"].get<double>(), ratio["ratio_high"].get<double>());
  return out;
}

Json bench_document(const Config& config, const Load& load, Device device) {
  Json options = to_json(config);
  options.erase("format_version");
  return {{"format_version", kFormatVersion},
          {"machine", machine_json(this_machine(), load, threads(), device)},
          {"config", options}};
}

void print_bench(const Config& config, const Json& document, const std::string& text) {
  if (gathering) {
    gathering->taken_.push_back(document);
    if (!config.json) std::cout << text;
    return;
  }
  std::cout << (config.json ? json_text(document) + "\n" : text) << std::flush;  // first: a full disk loses no table
  if (!config.save.empty()) write_file(config.save, json_text(document));
}

}  // namespace tapedeck
