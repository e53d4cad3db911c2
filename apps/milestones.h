// When a run had learned its training examples by heart, and when it had understood what they have in common.
#pragma once
#include <filesystem>
#include <string>

namespace tapedeck {

inline constexpr double by_heart = 0.99, understood = 0.95;  // exact match on training and on validation examples

// A sentence from the lines of metrics.jsonl that hold a train_accuracy; "" where there are none.
std::string milestones(const std::filesystem::path& metrics);

}  // namespace tapedeck
