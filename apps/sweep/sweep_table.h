// A sweep's progress on stderr. A terminal has a table, a line a size, that is written anew as cells end; a file or
// pipe gets a line a cell.
#pragma once
#include <iosfwd>
#include <string>

#include "apps/sweep/sweep_plan.h"

namespace tapedeck {

class SweepTable {
 public:
  SweepTable(std::ostream& stream, bool terminal, bool quiet) : stream_(stream), terminal_(terminal), quiet_(quiet) {}

  void message(const std::string& line);
  void begins(const SweepState& state, const Cell& cell, double seconds_left);
  void ended(const SweepState& state, const Cell& cell, const CellResult& result);

 private:
  void wipe();  // the table that stands there
  std::ostream& stream_;
  bool terminal_, quiet_;
  size_t lines_ = 0;
};

std::string progress_table(const SweepState& state);  // a line a size
std::string cell_line(const SweepState& state, const Cell& cell, const CellResult& result);

}  // namespace tapedeck
