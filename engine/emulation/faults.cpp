// The words of the block engine's errors.
#include <cstring>
#include <string>
#include <string_view>

#include "engine/check.h"
#include "engine/emulation/worker.h"

namespace tapedeck::emulation {
namespace {

// Lanes in one state, of which the first stands for all.
struct Group {
  int count = 0;
  const Lane* first = nullptr;

  void add(const Lane& lane) {
    if (count++ == 0) first = &lane;
  }
  std::string str() const { return text("{} (first: lane {})", count, first->index); }
};

}  // namespace

bool same(const Site& a, const Site& b) {
  return a.line == b.line && (a.file == b.file || std::strcmp(a.file, b.file) == 0);
}

std::string place(const Site& site) {
  std::string_view file = site.file;  // the folder and the name are enough
  const size_t name = file.rfind('/');
  if (name != std::string_view::npos && name > 0)
    if (const size_t folder = file.rfind('/', name - 1); folder != std::string_view::npos)
      file = file.substr(folder + 1);
  return text("{}:{}", file, site.line);
}

const char* name_of(Operation operation) {
  switch (operation) {
    case Operation::barrier: return "warp barrier";
    case Operation::vote: return "vote";
    case Operation::shuffle: return "shuffle";
    case Operation::shuffle_xor: return "shuffle_xor";
  }
  return "operation";
}

std::string stuck_text(const Worker& w) {
  Group barrier, warp, returned;
  for (const Lane& lane : w.lanes) {
    if (lane.state == State::at_barrier) barrier.add(lane);
    if (lane.state == State::at_warp_operation) warp.add(lane);
    if (lane.state == State::returned) returned.add(lane);
  }
  std::string all;
  auto say = [&](const std::string& part) { all += (all.empty() ? "" : ", ") + part; };
  if (barrier.count > 0) say(text("{} wait at the barrier of {}", barrier, place(barrier.first->site)));
  if (warp.count > 0) {
    const Operation operation = w.warps[warp.first->index / warp_lanes].operation;
    say(text("{} wait at the {} of {}", warp, name_of(operation), place(warp.first->site)));
  }
  if (returned.count > 0) say(text("{} have returned", returned));
  return all + ": every lane must come to a barrier, and all of a warp to its operations";
}

}  // namespace tapedeck::emulation
