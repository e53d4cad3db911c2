// Who keeps the memory of a step: what its tape saves for backward, for the message when memory is out.
#pragma once
#include <string>

#include "engine/tape.h"

namespace tapedeck {

// The layer with a star for its numbers: "gpt.block12.mix" -> "gpt.block*.mix".
std::string without_numbers(const std::string& path);

// "; saved for backward: 5120 KiB by linear in gpt.block*.grow, 2048 KiB by attention in gpt.block*": the two largest,
// with layers that differ in a number alone as one. "" where nothing is saved.
std::string largest_savers(const Tape& tape);

}  // namespace tapedeck
