#include "apps/sweep/train_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>

#include "apps/checkpoint.h"
#include "apps/experiment.h"
#include "apps/files.h"
#include "apps/interrupt.h"
#include "apps/options.h"
#include "apps/resume.h"
#include "apps/run_in_folder.h"
#include "apps/sweep/parallel_parts.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

// Options of train that each cell says for itself, or that a cell's process has its own of.
constexpr std::string_view kOwn[] = {"batch",    "accumulate", "lr",  "seed",   "steps",  "epochs", "eval-every",
                                     "schedule", "warmup",     "out", "config", "device", "json",   "quiet"};

bool shared(const Option& option) {
  return (option.commands & kTrain) && (option.commands & kSweep) &&
         std::find(std::begin(kOwn), std::end(kOwn), option.name) == std::end(kOwn);
}

// With a target evaluations are at the steps 1.05^k. A pilot is to have them too, and to run to its cap: its target is
// one that nothing reaches.
const Target unreachable{"loss", 1e-300};

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

CellResult failed_result(const std::string& reason, bool out_of_memory) {
  CellResult result;
  result.status = CellResult::Status::failed, result.reason = reason, result.out_of_memory = out_of_memory;
  return result;
}

// Makes the folder of a cell that is about to run, and notes when it began, and whether others run beside it: of a cell
// that goes on, when it first did, and whether others ever have. What a process left that was killed as it made the
// folder, or as it saved the weights of a run that diverged, is nothing to go on with.
void begin_or_go_on(const fs::path& run) {
  fs::create_directories(run);
  const FolderLock alone(run);
  const fs::path config = run / "config.json", file = run / "cell.json";
  const bool weights_alone =
      fs::exists(run / "model.safetensors") && Checkpoints(run).list().empty() && !fs::exists(run / "summary.json");
  const bool goes_on = fs::exists(config) && Json::accept(read_file(config)) && !weights_alone;
  if (!goes_on)
    for (const auto& entry : fs::directory_iterator(run)) fs::remove_all(entry.path());
  Json note = fs::exists(file) ? Json::parse(read_file(file), nullptr, false) : Json();
  if (!note.is_object()) note = {{"began", goes_on ? Json() : Json(unix_seconds())}, {"side_by_side", false}};
  if (is_part_of_parallel()) note["side_by_side"] = true;
  write_json(file, note);
}

// Weights are no part of a result; a sweep would keep hundreds.
void remove_weights(const fs::path& run) {
  std::error_code left;  // does no harm
  for (const char* file : {"model.safetensors", "best.safetensors", "checkpoint"}) fs::remove_all(run / file, left);
}

}  // namespace

TrainCells::TrainCells(const Config& sweep, const Problem& problem, Device device, fs::path folder)
    : sweep_(sweep), problem_(problem), device_(device), folder_(std::move(folder)) {}

std::vector<Setting> TrainCells::settings(const Cell& cell, const std::optional<Targets>& targets) const {
  std::vector<Setting> out;
  for (const Option& option : all_options())
    if (shared(option) && sweep_.origin(option.name) >= Origin::file)
      if (std::string value = value_text(sweep_, option); !value.empty())
        out.push_back({option.name, std::move(value)});
  const auto add = [&](const char* option, std::string value) { out.push_back({option, std::move(value)}); };
  add("device", sweep_.device);
  add("batch", fmt::format("{}", cell.batch / sweep_.accumulate));
  if (sweep_.accumulate > 1) add("accumulate", fmt::format("{}", sweep_.accumulate));
  add("lr", rate_text(cell.rate));
  add("seed", fmt::format("{}", cell.seed));
  add("steps", fmt::format("{}", cell.steps));
  add("target", to_text(targets ? targets->tightest() : unreachable));
  add("schedule", sweep_.schedule);
  // Counted in examples: as many at every size.
  const auto reference = static_cast<double>(sweep_.batch * sweep_.accumulate);
  add("warmup", fmt::format("{:.0f}", std::ceil(static_cast<double>(sweep_.warmup) * reference /
                                                static_cast<double>(cell.batch))));
  if (sweep_.eval_every) add("eval-every", fmt::format("{}", *sweep_.eval_every));
  add("drop-last", "true");  // a short step is one of another size
  add("noise-scale", "true");
  return out;
}

Config TrainCells::config(const Cell& cell, const std::optional<Targets>& targets) const {
  Config out = configure("train", settings(cell, targets));
  out.quiet = true;
  Json identity = kept_options(out);
  for (const char* option : {"target", "eval-every"}) identity[option] = value_text(out, *find_option(option, kTrain));
  const std::string hash = hash_text(identity.dump());
  out.out = (folder_ / "cells" / fmt::format("{}-{}", cell_name(cell), hash.substr(0, 8))).string();
  return out;
}

fs::path TrainCells::path(const Cell& cell, const std::optional<Targets>& targets) const {
  return config(cell, targets).out;
}

std::vector<std::string> TrainCells::command(const Cell& cell, const std::optional<Targets>& targets) const {
  std::vector<std::string> words = {"tapedeck", "train"};
  for (const Setting& setting : settings(cell, targets)) {
    const Option& option = *find_option(setting.option, kTrain);
    words.push_back("--" + setting.option);
    if (!option.is_flag()) words.push_back(setting.value);
  }
  words.push_back("--out");
  words.push_back(path(cell, targets).string());
  return words;
}

std::optional<CellResult> TrainCells::there(const Cell& cell, const std::optional<Targets>& targets) const {
  const fs::path run = path(cell, targets), failure = run / "failure.json";
  if (!fs::exists(failure)) return read_result(run);
  const Json json = Json::parse(read_file(failure), nullptr, false);
  if (!json.is_object() || !json.value("reason", Json()).is_string())
    throw Error(
        fmt::format("{}: does not say why a cell failed: remove it, and the cell runs again", failure.string()));
  return failed_result(json["reason"], json.value("out_of_memory", Json()) == true);
}

std::optional<CellResult> TrainCells::run(const Cell& cell, const std::optional<Targets>& targets) const {
  Config one = config(cell, targets);
  const fs::path run = one.out;
  const auto failed = [&](const std::string& reason, bool out_of_memory) {
    try {
      fs::create_directories(run);
      write_json(run / "failure.json", {{"reason", reason}, {"out_of_memory", out_of_memory}});
    } catch (const std::exception&) {
      throw Error(reason);  // a full disk: what was met first says so
    }
    return failed_result(reason, out_of_memory);
  };
  try {
    begin_or_go_on(run);
    if (fs::exists(run / "config.json")) one.resume = one.out;
    const Ending end = train_or_go_on(one, problem_, device_);
    if (end.summary.status == "interrupted") return std::nullopt;
  } catch (const Busy&) {
    throw;
  } catch (const OutOfMemory& error) {
    return failed(error.what(), true);
  } catch (const std::bad_alloc&) {
    return failed("out of memory: the system gave no more", true);
  } catch (const Error& error) {
    return failed(error.what(), false);
  }
  remove_weights(run);
  return read_result(run);
}

}  // namespace tapedeck
