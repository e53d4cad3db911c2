#include "engine/emulation/race_text.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <vector>

#include "engine/check.h"
#include "engine/emulation/worker.h"

namespace tapedeck::emulation::race {
namespace {

// addr2line's answer for the instruction: its line, then that of the call which was inlined there, and so on.
std::vector<std::string> inlined_lines(uint32_t code) {
  std::vector<std::string> lines;
  const std::string command = text("addr2line -i -e /proc/{}/exe {} 2>/dev/null", getpid(), text("{:#x}", code - 1));
  std::FILE* const answer = popen(command.c_str(), "r");
  if (!answer) return lines;
  char line[1024];  // "path:line", or "path:line (discriminator 2)"
  while (std::fgets(line, sizeof line, answer)) {
    const std::string path = line;
    const size_t colon = path.rfind(':');
    if (colon == std::string::npos || path[0] == '?') continue;
    lines.push_back(place({path.substr(0, colon).c_str(), std::atoi(line + colon + 1)}));
  }
  pclose(answer);
  return lines;
}

}  // namespace

std::string source_line(uint32_t code) {
  const std::vector<std::string> lines = inlined_lines(code);
  if (lines.empty()) return text("{:#x}", code);
  if (lines[0].starts_with("engine/"))
    for (const std::string& line : lines)
      if (!line.starts_with("engine/")) return text("{} (from {})", lines[0], line);
  return lines[0];
}

std::string device_place(const Buffers& buffers, size_t offset) {
  const auto after = buffers.upper_bound(offset);
  if (after == buffers.begin()) return "device memory before every buffer";
  const auto& [begin, buffer] = *std::prev(after);
  const std::string kind = text("a buffer of {} bytes", buffer.bytes);
  if (offset - begin >= buffer.bytes) return text("{} bytes behind {}", offset - begin - buffer.bytes, kind);
  return text("byte {} of {}{}", offset - begin, kind, buffer.live ? "" : ", which has been freed");
}

}  // namespace tapedeck::emulation::race
