#include "apps/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "apps/files.h"
#include "apps/record.h"
#include "data/checksum.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

constexpr const char* state_file = "state.json";

uint32_t checksum(std::string_view bytes) { return crc32_of(bytes.data(), bytes.size()); }

constexpr std::string_view before_evaluation = "-before-evaluation";

// What a name says, in an order in which later is larger; none for a name of another kind.
std::optional<std::tuple<int64_t, bool, int64_t>> order_of(std::string name) {
  const bool evaluated = !name.ends_with(before_evaluation);
  if (!evaluated) name.resize(name.size() - before_evaluation.size());
  long long steps = 0, batches = 0;
  int end = 0;
  if (std::sscanf(name.c_str(), "step-%lld%n+%lld%n", &steps, &end, &batches, &end) < 1) return std::nullopt;
  if (static_cast<size_t>(end) != name.size()) return std::nullopt;
  return std::tuple<int64_t, bool, int64_t>(steps, evaluated, batches);
}

}  // namespace

std::string checkpoint_name(int64_t steps, int64_t batches_into_next, bool evaluation_to_do) {
  return fmt::format("step-{:08}", steps) + (batches_into_next > 0 ? fmt::format("+{}", batches_into_next) : "") +
         std::string(evaluation_to_do ? before_evaluation : "");
}

std::optional<int64_t> checkpoint_steps(const std::string& name) {
  const auto at = order_of(name);
  return at ? std::optional(std::get<0>(*at)) : std::nullopt;
}

void Checkpoints::save(const Checkpoint& checkpoint) const {
  const fs::path path = folder_ / checkpoint.name;
  if (fs::exists(path / state_file)) return;
  for (const auto& entry : fs::exists(folder_) ? fs::directory_iterator(folder_) : fs::directory_iterator())
    if (entry.path().extension() == unfinished) fs::remove_all(entry.path());  // of a process that was killed

  Json content = {{"state", checkpoint.state}, {"files", Json::object()}};
  for (const auto& [name, bytes] : checkpoint.files)
    content["files"][name] = {{"bytes", bytes.size()}, {"crc32", checksum(bytes)}};
  Json document = {{"format_version", kFormatVersion}, {"crc32", checksum(json_text(content, -1))}};
  document.update(content);
  std::map<std::string, std::string> files = checkpoint.files;
  files[state_file] = json_text(document) + "\n";
  write_folder(path, files);

  const std::vector<fs::path> all = list();
  for (size_t i = 0; i + 2 < all.size(); ++i) remove_folder(all[i]);
}

void Checkpoints::remove_after(const std::string& name) const {
  for (const fs::path& path : list())
    if (order_of(path.filename().string()) > order_of(name)) remove_folder(path);
}

std::vector<fs::path> Checkpoints::list() const {
  std::vector<fs::path> found;
  if (fs::is_directory(folder_))
    for (const auto& entry : fs::directory_iterator(folder_))
      if (order_of(entry.path().filename().string()) && fs::exists(entry.path() / state_file))
        found.push_back(entry.path());
  std::sort(found.begin(), found.end(), [](const fs::path& a, const fs::path& b) {
    return *order_of(a.filename().string()) < *order_of(b.filename().string());
  });
  return found;
}

Checkpoint read_checkpoint(const fs::path& folder) {
  const std::string path = (folder / state_file).string();
  const Json document = Json::parse(read_file(path), nullptr, false);
  CHECK(document.is_object() && document.contains("format_version"), "{}: is not the state of a checkpoint: damaged",
        path);
  const Json& version = document["format_version"];
  CHECK(version.is_number_integer() && version.get<int64_t>() >= 1 && version.get<int64_t>() <= kFormatVersion,
        "{}: has format_version {}, this program reads up to {}; use a newer tapedeck", path, version.dump(),
        kFormatVersion);
  CHECK(document.contains("state") && document.contains("files") && document["files"].is_object() &&
            document["state"].is_object() && document.contains("crc32"),
        "{}: is incomplete: damaged", path);
  const Json content = {{"state", document["state"]}, {"files", document["files"]}};
  CHECK(document["crc32"] == checksum(json_text(content, -1)), "{}: does not match its checksum: damaged", path);

  Checkpoint checkpoint{.name = folder.filename().string(), .state = document["state"], .files = {}};
  for (const auto& [name, entry] : document["files"].items()) {
    std::string bytes = read_file(folder / name);
    CHECK(bytes.size() == entry["bytes"], "{}: has {} bytes, but was saved with {}: damaged", (folder / name).string(),
          bytes.size(), entry["bytes"].dump());
    CHECK(checksum(bytes) == entry["crc32"], "{}: does not match its checksum: damaged", (folder / name).string());
    checkpoint.files[name] = std::move(bytes);
  }
  return checkpoint;
}

std::optional<Checkpoint> Checkpoints::newest(std::vector<std::string>& complaints) const {
  const std::vector<fs::path> all = list();
  for (auto path = all.rbegin(); path != all.rend(); ++path) try {
      return read_checkpoint(*path);
    } catch (const Error& e) {
      complaints.push_back(e.what());
    }
  CHECK(all.empty(), "{}: no checkpoint can be read: {}", folder_.string(), complaints.front());
  return std::nullopt;
}

}  // namespace tapedeck
