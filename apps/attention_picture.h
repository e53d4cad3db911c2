// Attention weights as pictures: one square a head, a row for each token that looks, a column for each it looks at.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck {

struct AttentionMap {
  int64_t layer, head;
  std::vector<double> weights;  // [T, T], rows sum to 1
};

// Weights in tenths, or as shades of a colour. Tokens are printable names in UTF-8, and all columns of the text have a
// head of one character's width.
std::string attention_text(const std::vector<AttentionMap>& maps, const std::vector<std::string>& tokens);
std::string attention_svg(const std::vector<AttentionMap>& maps, const std::vector<std::string>& tokens);

}  // namespace tapedeck
