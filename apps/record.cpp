#include "apps/record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "apps/machine.h"
#include "data/catalog.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

[[noreturn]] void write_failed(const fs::path& path) {
  const std::string cause = std::strerror(errno);
  throw Error(fmt::format("{}: cannot be written: {}", path.string(), cause));
}

File open_for_writing(const fs::path& path, const fs::path& wanted) {  // `wanted` is the one to name in a message
  File file(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!file) write_failed(wanted);
  return file;
}

bool all_finite(const Json& value) {
  if (value.is_number_float()) return std::isfinite(value.get<double>());
  return !value.is_structured() || std::all_of(value.begin(), value.end(), all_finite);
}

// Files that a run folder may hold. --force removes these, also of a repeat's seeds, and nothing else.
constexpr const char* kRunFiles[] = {"config.json",  "machine.json",      "metrics.jsonl",
                                     "summary.json", "model.safetensors", "best.safetensors"};

bool holds_run(const fs::path& folder) {
  for (const char* file : kRunFiles)
    if (fs::exists(folder / file)) return true;
  return false;
}

// The runs of an earlier --repeat stand in folders seed-NUMBER.
bool is_seed(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.starts_with("seed-") && name.size() > 5 && name.find_first_not_of("0123456789", 5) == name.npos;
}

void remove_run(const fs::path& folder) {
  for (const char* file : kRunFiles) fs::remove(folder / file);
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && is_seed(entry.path()) && holds_run(entry.path())) {
      remove_run(entry.path());
      if (fs::is_empty(entry.path())) fs::remove(entry.path());
    }
}

fs::path first_free(const Config& config) {
  fs::create_directories("runs");
  for (int number = 1;; ++number) {
    const fs::path path =
        fs::path("runs") / fmt::format("{}-{}-{:03}", config.model, parse_data(config.data).label(), number);
    if (fs::create_directory(path)) return path;  // false: someone has it
  }
}

fs::path make_folder(const Config& config) try {
  if (config.out.empty()) return first_free(config);
  const fs::path path = config.out;
  if (fs::exists(path) && !fs::is_directory(path))
    throw UsageError(fmt::format("--out {}: is a file, needs a folder; choose another name", config.out));
  const auto refuse = [&] {
    throw UsageError(
        fmt::format("--out {}: holds a run already; choose another, or --force to replace it", config.out));
  };
  if (fs::exists(path) && holds_run(path)) {
    if (!config.force) refuse();
    remove_run(path);
  }
  fs::create_directories(path);
  const File claim(std::fopen((path / "config.json").c_str(), "wbx"), std::fclose);  // x: one process alone succeeds
  if (!claim && errno == EEXIST) refuse();
  return path;
} catch (const fs::filesystem_error& e) {
  throw UsageError(fmt::format("--out {}: cannot be made: {}; choose another", e.path1().string(), e.code().message()));
}

}  // namespace

std::string json_text(const Json& document, int indent) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace);  // writes what is not finite as null
}

void write_file(const fs::path& path, std::string_view text) {
  std::error_code none;
  const fs::file_status there = fs::symlink_status(path, none);  // a device, pipe or link must not be renamed over
  const bool in_place = fs::exists(there) && !fs::is_regular_file(there);
  const fs::path target = in_place ? path : fs::path(path.string() + ".tmp");
  {
    File file = open_for_writing(target, path);
    const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                         std::fflush(file.get()) == 0 && (in_place || fsync(fileno(file.get())) == 0);
    if (!written) {
      const int cause = errno;
      if (!in_place) std::remove(target.c_str());
      errno = cause;
      write_failed(path);
    }
  }
  if (!in_place && std::rename(target.c_str(), path.c_str()) != 0) write_failed(path);
}

JsonLines::JsonLines(const fs::path& path) : path_(path), file_(open_for_writing(path, path)) {}

void JsonLines::append(Json line) {
  if (!all_finite(line)) line["finite"] = false;
  const std::string text = json_text(line, -1) + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0)
    write_failed(path_);
}

RunFolder::RunFolder(const Config& config) : path_(make_folder(config)) {
  try {
    write("config.json", to_json(config));
    write("machine.json", machine_json(this_machine(), measure_load(), config.threads));
    metrics_ = std::make_unique<JsonLines>(path_ / "metrics.jsonl");
  } catch (const Error& e) {  // at the start it is the choice of the folder that was wrong
    abandon();
    throw UsageError(fmt::format("--out {}; choose another folder", e.what()));
  }
}

void RunFolder::abandon() {
  std::error_code ignored;  // there is an error to report already
  const std::uintmax_t size = fs::file_size(path_ / "metrics.jsonl", ignored);
  if (!ignored && size > 0) return;
  for (const char* file : kRunFiles) fs::remove(path_ / file, ignored);
  fs::remove(path_, ignored);  // stays when something else is in it
}

void RunFolder::append(Json metrics) { metrics_->append(std::move(metrics)); }

void RunFolder::write(std::string_view file, const Json& document) {
  Json out = {{"format_version", kFormatVersion}};
  out.update(document);
  write_file(path_ / file, json_text(out) + "\n");
}

}  // namespace tapedeck
