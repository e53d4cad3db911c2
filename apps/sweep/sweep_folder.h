// The folder of a sweep: sweep.json (what was asked for), machine.json, targets.json, cells/, and at the end of each
// process summary.json and report.html. It may be shared by the parts of a sweep on several machines.
#pragma once
#include <filesystem>
#include <optional>

#include "apps/record.h"
#include "apps/sweep/cell.h"

namespace tapedeck {

// --part "2/4"; 1/1 where it is not given. Throws UsageError.
struct SweepPart {
  int64_t number = 1, of = 1;
  bool has(const Cell& cell) const;  // by its name, so that every part agrees
  bool all() const { return of == 1; }
};
SweepPart parse_part(const std::string& text);

class SweepFolder {
 public:
  // Makes it, or opens it to go on. Throws UsageError where another process works on this part, or where it was begun
  // with other settings, naming the first with both values. More sizes, seeds, rates or time are no other settings.
  // Cells that failed are forgotten, so that they are tried again, but by a part, which may be late and whose others go
  // by them. With --plan the folder is only looked at: nothing is made, removed, written or locked.
  SweepFolder(const Config& config, const SweepPart& part, Device device);

  const std::filesystem::path& path() const { return path_; }
  std::optional<Targets> targets() const;  // as stored. Throws Error where somebody has changed them
  void store(const Targets& targets) const;
  Json machine() const;  // machine.json; null where it cannot be read
  // Other parts may be about to write the same file.
  void write(std::string_view file, const Json& document) const;
  void write_text(std::string_view file, std::string_view text) const;

  // Where a sweep with these settings lies, if nobody says so: runs/sweep-MODEL-DATA-HASH. Settings that may change
  // have no part in it, so that the same command comes back to it.
  static std::filesystem::path place(const Config& config);

 private:
  std::filesystem::path path_;
  std::optional<FolderLock> lock_;
};

}  // namespace tapedeck
