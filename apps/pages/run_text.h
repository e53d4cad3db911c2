// What is said of a run in words and in rows.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "apps/pages/html.h"
#include "apps/pages/run_record.h"

namespace tapedeck {

// "mlp with 26,122 parameters on digits (1,078 training examples), fp32 on cpu, 2 threads, batch 32, adam at 0.001"
std::string what_was_trained(const RunRecord& run);
// Whether and when it reached its target, or how it ended, with what the clock counts.
std::string how_it_went(const RunRecord& run);
// The same of several seeds: k of n reached, median with its exact interval, expected running time.
std::vector<std::string> how_all_went(const RunGroup& group);

std::string accuracy_name(const RunRecord& run);  // "accuracy"; of sequences "token accuracy" or "exact match"
std::string grouped(int64_t number);              // 26,122
std::string bytes_text(int64_t bytes);            // "1.5 MiB"

using Facts = std::vector<std::pair<std::string, std::string>>;
Facts summary_facts(const RunRecord& run);
Facts machine_facts(const Json& machine);  // of machine.json
Facts data_facts(const RunRecord& run);
std::string options_html(const Json& config);  // each option with its origin, those that were chosen first

}  // namespace tapedeck
