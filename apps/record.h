// The run folder: config.json, machine.json, metrics.jsonl and summary.json, all strict JSON with a format version.
// Whole files appear at once (temporary name, then rename); metrics.jsonl grows by a line at a time.
#pragma once
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "apps/config.h"

namespace tapedeck {

// Strict JSON text: numbers that are not finite become null, bytes that are not UTF-8 the replacement character.
std::string json_text(const Json& document, int indent = 2);

// Replaces or creates a file so that a reader sees the old or the new one, never half. What is not a plain file
// (/dev/stdout) is written in place. Throws Error with path and cause.
void write_file(const std::filesystem::path& path, std::string_view text);

// One JSON object a line, each handed to the system at once. Throws Error with path and cause.
class JsonLines {
 public:
  explicit JsonLines(const std::filesystem::path& path);  // starts the file anew
  // Adds "finite": false to a line that holds a number which is not finite (written as null).
  void append(Json line);

 private:
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

class RunFolder {
 public:
  // Makes config.out, or the first free runs/MODEL-DATA-NNN, with missing parents, and writes config.json and
  // machine.json into it. Throws UsageError when it cannot be written or holds a run already (--force replaces that).
  explicit RunFolder(const Config& config);

  const std::filesystem::path& path() const { return path_; }
  void append(Json metrics);                                // a line of metrics.jsonl
  void write(std::string_view file, const Json& document);  // adds format_version
  void abandon();  // takes away what a run left that failed before its first line of metrics

 private:
  std::filesystem::path path_;
  std::unique_ptr<JsonLines> metrics_;
};

}  // namespace tapedeck
