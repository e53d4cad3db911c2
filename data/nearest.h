// The known name that somebody who wrote an unknown one probably meant.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tapedeck {

// Insertions, deletions, replacements and swaps of neighbours that make one of the other, so that "minst" is one slip
// away from "mnist": the optimal string alignment distance [Damerau 1964].
size_t edit_distance(std::string_view a, std::string_view b);

// The name with the least edit distance to what was written, the first of several; empty when there are no names.
std::string nearest(std::string_view name, std::span<const std::string> names);

}  // namespace tapedeck
