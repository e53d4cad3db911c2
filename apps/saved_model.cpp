#include "apps/saved_model.h"

#include <fmt/format.h>

#include "apps/checkpoint.h"
#include "apps/files.h"
#include "apps/record.h"
#include "apps/resume.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

constexpr const char* model_file = "model.safetensors";
constexpr const char* checkpoint_weights = "weights.safetensors";

fs::path run_of(const fs::path& file) {
  fs::path folder = fs::absolute(file).lexically_normal().parent_path();
  for (int level = 0; level < 3; ++level, folder = folder.parent_path())
    if (fs::exists(folder / "config.json")) return folder.lexically_proximate(fs::current_path());
  return {};
}

// A file in a checkpoint's folder tells its step by that name, the model of a finished run by the summary.
std::optional<int64_t> step_of(const fs::path& file, const fs::path& run) {
  if (const auto at = checkpoint_steps(fs::absolute(file).parent_path().filename().string())) return at;
  if (file.filename() != model_file || run.empty()) return std::nullopt;
  const std::optional<Summary> summary = finished_summary(run);
  return summary ? summary->steps : std::nullopt;
}

SavedModel from_file(const fs::path& file) {
  SavedModel model{.run = run_of(file), .source = file.string(), .bytes = read_file(file), .step = {}, .note = {}};
  model.step = step_of(file, model.run);
  return model;
}

SavedModel from_checkpoint(const fs::path& run) {
  std::vector<std::string> complaints;
  std::optional<Checkpoint> newest = Checkpoints(run).newest(complaints);
  for (const auto& entry : fs::directory_iterator(run))
    if (!newest && is_seed(entry.path()))
      throw Error(fmt::format("{}: holds the runs of several seeds; name one, such as {}", run.string(),
                              entry.path().string()));
  if (!newest) {
    const std::optional<Summary> end = finished_summary(run);
    throw Error(fmt::format("{}: holds no {} and no checkpoint: it {}", run.string(), model_file,
                            end && end->status == "diverged"
                                ? "diverged, and its weights were not finite: train again with a lower --lr"
                                : "was stopped before its first, or is still running"));
  }
  const fs::path file = run / "checkpoint" / newest->name / checkpoint_weights;
  if (!newest->files.contains(checkpoint_weights)) throw Error(fmt::format("{}: is missing", file.string()));
  std::string note = fmt::format("{}: not finished, so this is its checkpoint {}\n", run.string(), newest->name);
  for (const std::string& complaint : complaints) note += complaint + "\n";
  return {run, file.string(), std::move(newest->files.at(checkpoint_weights)), checkpoint_steps(newest->name), note};
}

}  // namespace

Config saved_config(const fs::path& run) {
  try {
    return run_config(run);
  } catch (const UsageError& e) {
    throw Error(e.what());
  }
}

SavedModel find_saved_model(const std::string& named) {
  const fs::path path = named;
  if (fs::exists(path) && !fs::is_directory(path)) return from_file(path);
  if (!fs::exists(path / "config.json")) throw Error(fmt::format("{}: holds no run (there is no config.json)", named));
  // A run that goes on after its end keeps the earlier model until it has the next; its checkpoints are newer.
  const bool stands = fs::exists(path / model_file) && (finished_summary(path) || Checkpoints(path).list().empty());
  if (!stands) return from_checkpoint(path);
  SavedModel model = from_file(path / model_file);
  model.run = path;
  return model;
}

}  // namespace tapedeck
