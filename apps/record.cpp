#include "apps/record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
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

[[noreturn]] void write_failed(const fs::path& path) {
  throw Error(fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
}

bool all_finite(const Json& value) {
  if (value.is_number_float()) return std::isfinite(value.get<double>());
  return !value.is_structured() || std::all_of(value.begin(), value.end(), all_finite);
}

// What a run folder may hold, "checkpoint" is a folder. --force removes these, also of a repeat's seeds, and nothing
// else.
constexpr const char* kRunFiles[] = {"config.json",      "machine.json",  "data.json",
                                     "metrics.jsonl",    "summary.json",  "model.safetensors",
                                     "best.safetensors", "resumes.jsonl", "checkpoint"};

bool holds_run(const fs::path& folder) {
  for (const char* file : kRunFiles)
    if (fs::exists(folder / file)) return true;
  return false;
}

constexpr const char* kReplaced = ".replaced";  // of a run folder: the run that a new one is about to replace

std::vector<fs::path> seeds_of(const fs::path& folder) {
  std::vector<fs::path> seeds;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory() && is_seed(entry.path()) && holds_run(entry.path())) seeds.push_back(entry.path());
  return seeds;
}

void remove_run(const fs::path& folder) {
  for (const char* file : kRunFiles) fs::remove_all(folder / file);
  for (const fs::path& seed : seeds_of(folder)) {
    remove_run(seed);
    if (fs::is_empty(seed)) fs::remove(seed);
  }
}

void move_run(const fs::path& from, const fs::path& to) {
  fs::create_directories(to);
  for (const char* file : kRunFiles)
    if (fs::exists(from / file)) fs::rename(from / file, to / file);
  for (const fs::path& seed : seeds_of(from)) {
    move_run(seed, to / seed.filename());
    if (fs::is_empty(seed)) fs::remove(seed);
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
  fs::create_directories(path);
  return path;
} catch (const fs::filesystem_error& e) {
  throw UsageError(fmt::format("--out {}: cannot be made: {}; choose another", e.path1().string(), e.code().message()));
}

// With the lock held: nobody else can begin a run here meanwhile.
void clear_folder(const fs::path& path, bool force) try {
  if (!holds_run(path) && !fs::exists(path / kReplaced)) return;
  if (!force)
    throw UsageError(
        fmt::format("--out {0}: holds a run already; choose another, --resume {0} to go on with it, or --force "
                    "to replace it",
                    path.string()));
  if (fs::exists(path / kReplaced))
    remove_run(path);  // of a process that was killed before its run stood
  else
    move_run(path, path / kReplaced);
} catch (const fs::filesystem_error& e) {
  throw UsageError(
      fmt::format("--out {}: cannot be cleared: {}; choose another", e.path1().string(), e.code().message()));
}

}  // namespace

bool is_seed(const fs::path& folder) {
  const std::string name = folder.filename().string();
  return name.starts_with("seed-") && name.size() > 5 && name.find_first_not_of("0123456789", 5) == name.npos;
}

std::string json_text(const Json& document, int indent) {
  return document.dump(indent, ' ', false, Json::error_handler_t::replace);  // writes what is not finite as null
}

void write_json(const fs::path& path, const Json& document) {
  Json out = {{"format_version", kFormatVersion}};
  out.update(document);
  write_file(path, json_text(out) + "\n");
}

JsonLines::JsonLines(const fs::path& path, int64_t keep)
    : path_(path), file_(std::fopen(path.c_str(), keep > 0 ? "ab" : "wb"), std::fclose) {
  if (!file_ || (keep > 0 && ftruncate(fileno(file_.get()), keep) != 0)) write_failed(path);
}

int64_t JsonLines::sync() {
  const int descriptor = fileno(file_.get());
  struct stat about;  // ftell would give the length from before a cut until the next write
  if (!force_to_disk(descriptor) || fstat(descriptor, &about) != 0) write_failed(path_);
  return about.st_size;
}

void JsonLines::append(Json line) {
  if (!all_finite(line)) line["finite"] = false;
  const std::string text = json_text(line, -1) + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0)
    write_failed(path_);
}

FolderLock::FolderLock(const fs::path& folder) : descriptor_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  const bool held = descriptor_ >= 0 && flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
  if (held || (descriptor_ >= 0 && errno != EWOULDBLOCK)) return;  // some network file systems know no locks
  const int cause = errno;
  const bool busy = descriptor_ >= 0;
  if (busy) close(descriptor_);
  if (busy)
    throw Busy(fmt::format("{}: another process is writing a run here; wait for it, or choose another folder",
                           folder.string()));
  throw UsageError(fmt::format("{}: cannot be opened: {}", folder.string(), std::strerror(cause)));
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) close(descriptor_);
}

RunFolder::RunFolder(const Config& config, Device device) : path_(make_folder(config)), lock_(path_) {
  clear_folder(path_, config.force);
  begun_here_ = true, stands_ = false;
  try {
    write("config.json", to_json(config));
    write("machine.json", machine_json(this_machine(), measure_load(), config.threads, device));
    keep_metrics(0);
  } catch (const Error& e) {  // at the start it is the choice of the folder that was wrong
    abandon();
    throw UsageError(fmt::format("--out {}; choose another folder", e.what()));
  }
}

RunFolder::RunFolder(const fs::path& path) : path_(path), lock_(path) {}

void RunFolder::keep_metrics(int64_t bytes) {
  const fs::path file = path_ / "metrics.jsonl";
  std::error_code none;
  const auto there = fs::file_size(file, none);
  if (bytes > 0 && (none || there < static_cast<std::uintmax_t>(bytes)))
    throw Error(fmt::format(
        "{}: has {} bytes, but the checkpoint was saved with {}: lines are lost; put the file back, or begin a new run",
        file.string(), none ? 0 : there, bytes));
  metrics_ = std::make_unique<JsonLines>(file, bytes);
}

bool RunFolder::has_checkpoint() const {
  std::error_code none;
  return fs::exists(path_ / "checkpoint", none);
}

void RunFolder::abandon() noexcept try {
  const fs::path metrics = path_ / "metrics.jsonl";
  if (!begun_here_ || has_checkpoint() || (fs::exists(metrics) && fs::file_size(metrics) > 0)) return;
  if (!seeds_of(path_).empty()) return stands();  // a repeat goes on from them
  for (const char* file : kRunFiles) fs::remove_all(path_ / file);
  if (fs::exists(path_ / kReplaced)) move_run(path_ / kReplaced, path_), fs::remove(path_ / kReplaced);
  if (fs::is_empty(path_)) fs::remove(path_);
} catch (const fs::filesystem_error&) {
  // there is an error to report already
}

void RunFolder::stands() {
  if (std::exchange(stands_, true)) return;
  std::error_code left;  // what cannot be removed does no harm
  fs::remove_all(path_ / kReplaced, left);
}

void RunFolder::append(Json metrics) {
  stands();
  CHECK(metrics_, "{}: its metrics are not open yet", path_.string());
  metrics_->append(std::move(metrics));
}

int64_t RunFolder::sync_metrics() {
  CHECK(metrics_, "{}: its metrics are not open yet", path_.string());
  return metrics_->sync();
}

}  // namespace tapedeck
