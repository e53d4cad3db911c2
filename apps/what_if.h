// What there is to win at most, in words: waiting for data that loading ahead would hide, chains of ops bound by memory
// that one pass could do, and time between ops that a captured step has not.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "apps/peaks.h"
#include "apps/profile_rows.h"

namespace tapedeck {

struct Win {
  std::string name;    // "prefetch", "fusion", "graph"
  double seconds = 0;  // of a step, at most
  std::string text;    // one sentence with its bound
};

struct Chain {      // ops one behind the other, all bound by memory
  std::string ops;  // "dropout, add, layer_norm"
  std::string where;
  double seconds = 0, longest = 0;  // of all of them, and of the one that takes longest
  double win() const { return seconds - longest; }
};
// Of all steps. Chains of the same ops in places that differ in a number alone are one, and `seconds` their sum.
std::vector<Chain> memory_bound_chains(const Tracer& tracer, const Peaks& peaks);

// The largest first. Without peaks nothing is known about fusion.
std::vector<Win> possible_wins(const Profile& profile, const std::vector<Chain>& chains,
                               const std::optional<Peaks>& peaks, bool has_graphs);

}  // namespace tapedeck
