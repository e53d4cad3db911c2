#include "apps/resume.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "apps/data_record.h"
#include "apps/experiment.h"
#include "apps/machine.h"
#include "apps/options.h"
#include "apps/run_state.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

std::string shown(const Config& config, const Option& option) {
  const std::string value = value_text(config, option);
  return value.empty() ? "none" : value;
}

bool must_agree(const Option& option) {
  return option.resume == Option::OnResume::same || option.resume == Option::OnResume::shape;
}
bool shapes_weights(std::string_view option) { return find_option(option, kTrain)->resume == Option::OnResume::shape; }

[[noreturn]] void refuse(const Change& change, const std::string& run) {
  const std::string else_do = shapes_weights(change.option)
                                  ? fmt::format("begin a new run with {}, whose weights have another shape", change.now)
                                  : fmt::format("--force to go on with {}", change.now);
  throw UsageError(fmt::format("--{0} {1}: the run in {2} was made with {3}; leave --{0} away, or {4}", change.option,
                               change.now, run, change.before, else_do));
}

}  // namespace

std::vector<Change> changes_on_resume(const Config& now, const Config& recorded) {
  std::vector<Change> changes;
  for (const Option& option : all_options()) {
    if (!(option.commands & kTrain) || option.of_one_run || option.resume == Option::OnResume::own) continue;
    const Change change{option.name, shown(recorded, option), shown(now, option)};
    if (change.before == change.now) continue;
    if (must_agree(option) && !now.force) refuse(change, now.resume);
    changes.push_back(change);
  }
  return changes;
}

Json kept_options(const Config& config) {
  Json out = Json::object();
  for (const Option& option : all_options())
    if ((option.commands & kTrain) && !option.of_one_run && must_agree(option))
      out[option.name] = shown(config, option);
  return out;
}

std::optional<Summary> finished_summary(const fs::path& run) {
  const fs::path file = run / "summary.json";
  if (!fs::exists(file)) return std::nullopt;
  const Json json = Json::parse(read_file(file), nullptr, false);
  if (!json.is_object() || json.value("format_version", Json()) != kFormatVersion)
    throw Error(fmt::format(
        "{}: is no summary of this version: damaged, or of a newer tapedeck; remove it to go on from the checkpoint",
        file.string()));
  Summary summary;
  try {
    summary = summary_from_json(json);
    CHECK(!summary.status.empty(), "says no status");
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}; remove it to go on from the checkpoint", file.string(), e.what()));
  }
  return summary.status == "interrupted" ? std::nullopt : std::optional(summary);
}

std::string ended_report(const std::string& run, const Summary& end) {
  return fmt::format("{}: this run has ended ({} at step {}); {} would go on with it\n", run, end.status,
                     end.steps.value_or(0),
                     end.status == "diverged" ? "a lower --lr with --force" : "a larger --steps or --epochs");
}

Earlier look_at_run(const Config& config) {
  const fs::path path = config.resume;
  Earlier run{RunFolder::reopen(path), changes_on_resume(config, run_config(path)), {}, {}};
  if (config.repeat > 1) return run;  // its seeds have folders of their own
  run.finished = finished_summary(path);
  const bool ended = run.finished.has_value();
  if (std::any_of(run.changes.begin(), run.changes.end(), [](const Change& change) {
        return find_option(change.option, kTrain)->resume != Option::OnResume::free;
      }))
    run.finished.reset();
  if (run.finished) return run;

  std::vector<std::string> complaints;
  run.from = Checkpoints(path).newest(complaints);
  for (const std::string& complaint : complaints) std::cerr << complaint << "; the one before it is used\n";
  if (run.from)  // there are weights to go on with
    for (const Change& change : run.changes)
      if (shapes_weights(change.option)) refuse(change, config.resume);
  if (run.from && !config.force) {
    const Json now = kept_options(config), then = run.from->state.value("options", Json::object());
    for (const auto& [name, value] : then.items())
      if (now.contains(name) && now[name] != value)
        throw UsageError(fmt::format("{}: config.json says --{} {}, but {} was made with {}; put it back{}",
                                     path.string(), name, now[name].get<std::string>(), run.from->name, value.dump(),
                                     shapes_weights(name) ? "" : ", or --force to go on with it"));
  }
  if (!run.from && !config.force && (ended || fs::exists(path / "model.safetensors")))
    throw UsageError(
        fmt::format("{}: has no checkpoint any more to go on from; begin a new run, or --force to begin this "
                    "one anew",
                    path.string()));
  return run;
}

void check_goes_on(const Earlier& earlier, const Config& config, const Problem& problem) {
  const fs::path path = config.resume;
  const bool known = fs::exists(path / "data.json");
  if (config.force ? earlier.from && known : earlier.from || known) check_same_data(path, problem.data(), config.force);
  const int64_t step = earlier.from ? run_state(earlier.from->state.at("run")).step : 0;
  if (const int64_t last = total_steps(config, problem); last < step)
    throw UsageError(fmt::format("{}: is at step {} already, but --steps and --epochs end it at step {}; ask for more",
                                 path.string(), step, last));
}

void record_changes(const fs::path& run, const Config& config, const std::vector<Change>& changes) {
  fs::remove(run / "summary.json");  // first: beside the new options it would say that the longer run has ended
  Json recorded = Json::parse(read_file(run / "config.json"));
  const Json now = to_json(config);
  for (const Change& change : changes) recorded[change.option] = now[change.option];
  if (!changes.empty()) write_file(run / "config.json", json_text(recorded) + "\n");
}

void record_resumption(const Earlier& earlier, const Config& config, const Dataset& data, Device device) {
  const fs::path run = config.resume;
  Json line = {{"format_version", kFormatVersion},
               {"from", earlier.from ? Json(earlier.from->name) : Json()},
               {"changes", Json::object()},
               {"data", hash_text(data)},
               {"machine", machine_json(this_machine(), measure_load(), config.threads, device)}};
  for (const Change& change : earlier.changes)
    line["changes"][change.option] = {{"before", change.before}, {"now", change.now}};
  const fs::path file = run / "resumes.jsonl";
  write_file(file, (fs::exists(file) ? read_file(file) : "") + json_text(line, -1) + "\n");
  write_json(run / "data.json", data_json(data));
  record_changes(run, config, earlier.changes);
  if (earlier.from) Checkpoints(run).remove_after(earlier.from->name);
}

}  // namespace tapedeck
