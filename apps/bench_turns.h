// Several sizes of a bench take turns, a round each. This says on stderr whose turn it is, and lets a size that does
// not fit into memory, or whose work fails, drop out while the others go on.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/config.h"
#include "apps/progress.h"

namespace tapedeck {

class Turns {
 public:
  explicit Turns(const Config& config);

  // Before a turn: "round 2 of 5: batch 128". Rounds count from 0; those below warm up.
  void say(int64_t round, const std::string& size);
  // Does the work. False where memory did not suffice or an Error ended it; check() says so at the end. A UsageError
  // passes.
  bool fit(const std::string& size, const std::function<void()>& work);
  // A part of the table on stdout, at once. With --json there is none.
  void print(const std::string& text);

  // Adds "does_not_fit" and "failed": [{"size": "batch 8192", "why": "arena cpu: wanted …"}].
  void add_dropped(Json& document);
  // Throws Diverged, Error or OutOfMemory naming those that failed or did not fit, and whether rows are left.
  void check() const;

 private:
  const int64_t rounds_;
  const bool json_;
  Progress progress_;
  void drop(Json& from, const std::string& size, const char* reason, const std::string& why);
  Json misfits_ = Json::array(), failures_ = Json::array();
  bool diverged_ = false;  // as the first of the failures did
  size_t rows_ = 0;        // of the document
};

}  // namespace tapedeck
