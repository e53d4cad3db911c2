// The known name that somebody who wrote an unknown one probably meant.
#pragma once
#include <span>
#include <string>
#include <string_view>

namespace tapedeck {

// The name with the least edit distance to what was written, the first of several; empty when there are no names.
// Counted are insertions, deletions, replacements and swaps of neighbours ("minst" is one slip away from "mnist"): the
// optimal string alignment distance [Damerau 1964].
std::string nearest(std::string_view name, std::span<const std::string> names);

}  // namespace tapedeck
