// What the reports of `tapedeck bench …` share.
#pragma once
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "apps/config.h"
#include "apps/machine.h"
#include "engine/device.h"

namespace tapedeck {

// The load, measured; warns on stderr where the machine is busy. Throws Error where --save cannot be written.
Load load_before_bench(const Config& config);

// Adds n, the median under this key ("median_ms"), p05 and p95, all but n null where there is no time; and whether they
// are unstable: one in twenty took more than half as long again as the median.
void add_times(Json& row, const char* median_key, std::span<const double> times);

// Adds a / b over the rounds, a pair each, as n, ratio, ratio_low and ratio_high; the 95 % interval from two rounds on.
void add_ratio(Json& row, std::span<const double> a, std::span<const double> b);

std::string ratio_text(
    const Json& ratio);  // of add_ratio: "1.205 [1.119, 1.298]", without the interval where there is none

// {"format_version": 1, "machine": …}: how each document begins.
Json bench_document(const Load& load, Device device);

// To the file of --save, and to stdout: the document with --json, else the text.
void print_bench(const Config& config, const Json& document, const std::string& text);

}  // namespace tapedeck
