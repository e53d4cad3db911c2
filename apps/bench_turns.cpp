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
  try {
    work();
    return true;
  } catch (const UsageError&) {
    throw;
  } catch (const OutOfMemory& e) {
    drop(misfits_, size, "does not fit into memory", e.what());
  } catch (const std::bad_alloc&) {
    drop(misfits_, size, "does not fit into memory", "the system gave no more memory");
  } catch (const Error& e) {
    if (failures_.empty()) diverged_ = dynamic_cast<const Diverged*>(&e) != nullptr;
    drop(failures_, size, "failed", e.what());
  }
  return false;
}

void Turns::drop(Json& from, const std::string& size, const char* reason, const std::string& why) {
  from.push_back({{"size", size}, {"why", why}});
  progress_.message(fmt::format("{} {} and drops out", size, reason));
}

void Turns::add_dropped(Json& document) {
  rows_ = document.contains("rows") ? document["rows"].size() : 0;
  document["does_not_fit"] = misfits_;
  document["failed"] = failures_;
}

void Turns::print(const std::string& text) {
  if (json_) return;
  progress_.clear();
  std::cout << text << std::flush;
}

void Turns::check() const {
  const auto sentence = [this](const char* what, const Json& dropped) {
    std::string sizes;
    for (const Json& one : dropped) sizes += (sizes.empty() ? "" : "; ") + one["size"].get<std::string>();
    return text("{}: {}. {} {}", what, sizes, rows_ > 0 ? "The other rows stand." : "No row is left.",
                dropped.back()["why"].get<std::string>());
  };
  if (diverged_) throw Diverged(sentence("diverged", failures_));
  if (!failures_.empty()) throw Error(sentence("failed", failures_));
  if (!misfits_.empty()) throw OutOfMemory(sentence("does not fit into memory", misfits_));
}

}  // namespace tapedeck
