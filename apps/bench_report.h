// What the reports of `tapedeck bench …` share.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "apps/config.h"
#include "apps/machine.h"
#include "engine/device.h"

namespace tapedeck {

// The load, measured; warns on stderr where the machine is busy. Throws Error where --save cannot be written.
Load load_before_bench(const Config& config);

// {"name": "step", "key": "step batch=128 graph=no", "batch": 128, "graph": false}: how each row begins. By its key
// `bench diff` finds the same row in another document.
Json bench_row(const char* name, const Json& parameters);

// Adds n, the median under this key ("median_ms"), p05 and p95, all but n null where there is no time; and whether they
// are unstable: one in twenty took more than half as long again as the median. `rounds`: a figure for each round in the
// same unit, which are further apart than neighbours; `bench diff` compares these.
void add_times(Json& row, const char* median_key, std::span<const double> times, std::span<const double> rounds);
inline void add_times(Json& row, const char* median_key, std::span<const double> rounds) {  // one time a round
  add_times(row, median_key, rounds, rounds);
}
// "  unstable" behind a line of a table where the row, or what it is about, is; else "".
const char* unstable_mark(const Json& times);
inline const char* unstable_mark(const Json& a, const Json& b) {  // where one of two is
  return unstable_mark(a["unstable"] == true ? a : b);
}

// Adds a / b over the rounds, a pair each, as n, ratio, ratio_low and ratio_high; the 95 % interval from two rounds on.
void add_ratio(Json& row, std::span<const double> a, std::span<const double> b);

std::string ratio_text(
    const Json& ratio);  // of add_ratio: "1.205 [1.119, 1.298]", without the interval where there is none

// {"format_version": 1, "machine": …, "config": …}: how each document begins. config holds each option of the command
// with its value and where that came from.
Json bench_document(const Config& config, const Load& load, Device device);

// While it lives, documents gather here instead of being printed or saved; their texts are printed.
class BenchDocuments {
 public:
  BenchDocuments();
  ~BenchDocuments();
  BenchDocuments(const BenchDocuments&) = delete;
  BenchDocuments& operator=(const BenchDocuments&) = delete;
  std::vector<Json>& taken() { return taken_; }

 private:
  friend void print_bench(const Config& config, const Json& document, const std::string& text);
  std::vector<Json> taken_;
  BenchDocuments* const outer_;
};

// To the file of --save, and to stdout: the document with --json, else the text.
void print_bench(const Config& config, const Json& document, const std::string& text);

}  // namespace tapedeck
