#include "apps/savers.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace tapedeck {

std::string without_numbers(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) out += c;
    if (digit && (out.empty() || out.back() != '*')) out += '*';
  }
  return out;
}

std::string largest_savers(const Tape& tape) {
  std::map<std::string, size_t> bytes;
  for (const Node& node : tape.nodes())
    bytes[std::string(node.op) + (node.where.empty() ? "" : " in " + without_numbers(node.where))] += node.saved_bytes;
  std::vector<std::pair<std::string, size_t>> all(bytes.begin(), bytes.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(2, all.size()) && all[i].second > 0; ++i)
    out += text("{}{} KiB by {}", out.empty() ? "; saved for backward: " : ", ", (all[i].second + 1023) / 1024,
                all[i].first);
  return out;
}

}  // namespace tapedeck
