#include "apps/attention_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/svg.h"
#include "data/utf8.h"

namespace tapedeck {
namespace {

// Each weight as one of ten signs: blank below 0.05, then the nearest tenth.
char shade(double weight) {
  constexpr std::string_view shades = " 123456789#";
  return shades[static_cast<size_t>(std::clamp(std::lround(10 * weight), 0L, 10L))];
}

std::vector<std::string> characters(std::string_view utf8) {
  std::vector<std::string> all;
  while (!utf8.empty()) append_character(all.emplace_back(), take_character(utf8).value());
  return all;
}

}  // namespace

std::string attention_text(const std::vector<AttentionMap>& maps, const std::vector<std::string>& tokens) {
  std::vector<std::vector<std::string>> names;
  size_t width = 1;
  for (const std::string& token : tokens) width = std::max(width, names.emplace_back(characters(token)).size());
  std::string head;  // the names of the columns, downwards
  for (size_t line = 0; line < width; ++line) {
    head += std::string(width + 2, ' ');
    for (const auto& name : names) {
      const size_t above = width - name.size();  // all end on the last line
      head += line < above ? " " : name[line - above];
    }
    head += "\n";
  }
  const size_t n = tokens.size();
  std::string out = "a row looks at the columns before it: its weight in tenths, # is 1, blank below 0.05\n";
  for (const AttentionMap& map : maps) {
    out += fmt::format("\nlayer {} head {}\n{}", map.layer, map.head, head);
    for (size_t i = 0; i < n; ++i) {
      out += std::string(width - names[i].size(), ' ') + tokens[i] + "  ";
      for (size_t j = 0; j <= i; ++j) out += shade(map.weights[i * n + j]);
      out += "\n";
    }
  }
  return out;
}

std::string attention_svg(const std::vector<AttentionMap>& maps, const std::vector<std::string>& tokens) {
  const int64_t n = std::ssize(tokens), cell = std::clamp<int64_t>(360 / std::max<int64_t>(n, 1), 4, 16), margin = 28;
  const int64_t side = n * cell, box = side + margin + 12;
  int64_t heads = 1, layers = 1;
  for (const AttentionMap& map : maps) heads = std::max(heads, map.head + 1), layers = std::max(layers, map.layer + 1);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"monospace\" font-size=\"{2}\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
      heads * box + 12, layers * (box + 16) + 8, std::min<int64_t>(cell, 12));
  for (const AttentionMap& map : maps) {
    out += fmt::format(
        "<g transform=\"translate({},{})\">\n<text x=\"{}\" y=\"-14\" font-size=\"12\">layer {} head {}</text>\n",
        map.head * box + margin, map.layer * (box + 16) + margin + 12, 0, map.layer, map.head);
    for (int64_t i = 0; i < n; ++i) {
      const std::string name = xml_text(tokens[static_cast<size_t>(i)]);
      out += fmt::format("<text x=\"-3\" y=\"{}\" text-anchor=\"end\">{}</text>", i * cell + cell * 3 / 4, name);
      out += fmt::format("<text x=\"{}\" y=\"-3\" text-anchor=\"middle\">{}</text>\n", i * cell + cell / 2, name);
      for (int64_t j = 0; j <= i; ++j) {
        const double weight = map.weights[static_cast<size_t>(i * n + j)];
        if (weight >= 0.005)
          out += fmt::format(
              "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#1f4e9c\" fill-opacity=\"{:.2f}\"/>", j * cell,
              i * cell, cell, cell, weight);
      }
      out += "\n";
    }
    out += fmt::format("<rect width=\"{0}\" height=\"{0}\" fill=\"none\" stroke=\"#888\"/>\n</g>\n", side);
  }
  return out + "</svg>\n";
}

}  // namespace tapedeck
