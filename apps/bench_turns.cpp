#include "apps/bench_turns.h"

#include <fmt/format.h>

#include <iostream>
#include <new>

#include "apps/meter.h"
#include "engine/check.h"

namespace tapedeck {

Turns::Turns(const Config& config)
    : rounds_(config.rounds), json_(config.json), progress_(std::cerr, stderr_is_terminal(), config.quiet) {}

void Turns::say(int64_t round, const std::string& size) {
  const std::string which = round < 0 ? "warm-up" : fmt::format("round {} of {}", round + 1, rounds_);
  const bool at_interval = round % std::max<int64_t>(1, rounds_ / 10) == 0;  // a file gets about ten of many rounds
  progress_.show(which + ": " + size, steady_seconds(), at_interval);
}

bool Turns::fit(const std::string& size, const std::function<void()>& work) {
  std::string why;
  try {
    work();
    return true;
  } catch (const OutOfMemory& e) {
    why = e.what();
  } catch (const std::bad_alloc&) {
    why = "the system gave no more memory";
  }
  misfits_.push_back({{"size", size}, {"why", why}});
  progress_.message(size + " does not fit into memory and drops out");
  return false;
}

void Turns::print(const std::string& text) {
  if (json_) return;
  progress_.clear();
  std::cout << text << std::flush;
}

void Turns::check() const {
  if (misfits_.empty()) return;
  std::string sizes;
  for (const Json& misfit : misfits_) sizes += (sizes.empty() ? "" : "; ") + misfit["size"].get<std::string>();
  throw OutOfMemory(
      text("does not fit into memory: {}. The other rows stand. {}", sizes, misfits_.back()["why"].get<std::string>()));
}

}  // namespace tapedeck
