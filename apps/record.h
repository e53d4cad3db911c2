// The run folder, all strict JSON with a format version: config.json, machine.json, data.json, metrics.jsonl,
// summary.json and resumes.jsonl. Weights and checkpoints stand beside them.
// Whole files appear at once (temporary name, then rename); metrics.jsonl grows by a line at a time.
#pragma once
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "apps/config.h"
#include "apps/files.h"
#include "engine/check.h"
#include "engine/device.h"

namespace tapedeck {

// Strict JSON text: numbers that are not finite become null, bytes that are not UTF-8 the replacement character.
std::string json_text(const Json& document, int indent = 2);

void write_json(const std::filesystem::path& path, const Json& document);  // adds format_version; see write_file

// One JSON object a line, each handed to the system at once. Throws Error with path and cause.
class JsonLines {
 public:
  // Keeps the first `keep` bytes of the file, whole lines, and goes on after them; 0 starts it anew.
  explicit JsonLines(const std::filesystem::path& path, int64_t keep = 0);
  // Adds "finite": false to a line that holds a number which is not finite (written as null).
  void append(Json line);
  int64_t sync();  // forces the lines to the disk; returns their bytes

 private:
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

struct Busy : UsageError {  // another process writes there
  using UsageError::UsageError;
};

// One process at a time writes to a folder. The lock ends with the process, however that ends.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);  // throws Busy when another process has it
  ~FolderLock();
  FolderLock(FolderLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

// The runs of a --repeat stand in folders seed-NUMBER of its folder.
bool is_seed(const std::filesystem::path& folder);

class RunFolder {
 public:
  // Makes config.out, or the first free runs/MODEL-DATA-NNN, with missing parents, and writes config.json and
  // machine.json into it. Throws UsageError when it cannot be written or holds a run already (--force replaces that,
  // once the new run stands).
  explicit RunFolder(const Config& config, Device device = Device::cpu);

  // Goes on in a folder that holds a run. Nothing can be appended before keep_metrics says how much of them stays.
  static RunFolder reopen(const std::filesystem::path& path) { return RunFolder(path); }
  void keep_metrics(int64_t bytes);
  bool has_checkpoint() const;

  const std::filesystem::path& path() const { return path_; }
  void append(Json metrics);  // a line of metrics.jsonl
  int64_t sync_metrics();     // see JsonLines
  void write(std::string_view file, const Json& document) { write_json(path_ / file, document); }
  // A run that began in this process stands from its first line of metrics or checkpoint on: what it replaces is gone
  // then. One that fails before leaves nothing, and what it was to replace is there again.
  void stands();
  void abandon() noexcept;

 private:
  explicit RunFolder(const std::filesystem::path& path);
  std::filesystem::path path_;
  FolderLock lock_;
  bool begun_here_ = false, stands_ = true;
  std::unique_ptr<JsonLines> metrics_;  // null until keep_metrics
};

}  // namespace tapedeck
