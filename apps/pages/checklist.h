// The twelve rules of Hoefler & Belli, "Scientific Benchmarking of Parallel Computing Systems" (SC 2015), and three of
// our own, each judged by the program from what the runs recorded: it holds, does not, or does not apply, and why.
#pragma once
#include <string>
#include <vector>

#include "apps/pages/run_charts.h"

namespace tapedeck {

struct Judged {
  enum class Verdict : uint8_t { holds, fails, other };  // other: does not apply
  std::string rule;                                      // "5", or "" for one of ours
  std::string text;
  Verdict verdict;
  std::string why;
};
std::vector<Judged> checklist(const Groups& groups);
const char* verdict_text(Judged::Verdict verdict);  // "holds", "does not hold", "does not apply"
std::string checklist_html(const std::vector<Judged>& rules);

}  // namespace tapedeck
