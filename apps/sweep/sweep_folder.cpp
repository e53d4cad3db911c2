#include "apps/sweep/sweep_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "apps/config_file.h"
#include "apps/machine.h"
#include "apps/options.h"
#include "data/catalog.h"
#include "data/checksum.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

namespace fs = std::filesystem;

// What a sweep that goes on may be told anew: how much is run, and how.
constexpr std::string_view kMayChange[] = {"batches", "seeds", "rates", "budget", "parallel", "part",
                                           "preset",  "again", "plan",  "targets"};  // targets: targets.json holds them

bool is_base(const Option& option) {
  const bool result = option.resume != Option::OnResume::free && option.resume != Option::OnResume::own;
  return (option.commands & kSweep) && result && !option.of_one_run &&
         std::find(std::begin(kMayChange), std::end(kMayChange), option.name) == std::end(kMayChange);
}

std::string shown(const Config& config, const Option& option) {
  const std::string value = value_text(config, option);
  return value.empty() ? "none" : value;
}

void refuse_other_settings(const Config& now, const fs::path& folder) {
  Config then;
  then.command = "sweep";
  read_config_file(then, folder / "sweep.json");
  for (const Option& option : all_options())
    if (is_base(option) && shown(then, option) != shown(now, option))
      throw UsageError(
          fmt::format("--{} {}: the sweep in {} was begun with {}; give that again, or another --out for another sweep",
                      option.name, shown(now, option), folder.string(), shown(then, option)));
}

// The parts of a sweep write the same small files; a lock makes them take turns.
FolderLock my_turn(const fs::path& folder) {
  for (int tries = 0;; ++tries) try {
      return FolderLock(folder / "cells");
    } catch (const Busy&) {
      if (tries == 500) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
}

}  // namespace

bool SweepPart::has(const Cell& cell) const {
  const std::string name = cell_name(cell);
  return fnv1a(name.data(), name.size()) % static_cast<uint64_t>(of) == static_cast<uint64_t>(number - 1);
}

SweepPart parse_part(const std::string& text) {
  if (text.empty()) return {};
  SweepPart part{0, 0};
  const char *begin = text.data(), *end = begin + text.size();
  const auto [slash, wrong] = std::from_chars(begin, end, part.number);
  bool good = wrong == std::errc() && slash != end && *slash == '/';
  if (good) {
    const auto [last, also_wrong] = std::from_chars(slash + 1, end, part.of);
    good = also_wrong == std::errc() && last == end && 1 <= part.number && part.number <= part.of && part.of <= 10000;
  }
  if (!good)
    throw UsageError(
        fmt::format("--part got \"{}\", needs I/N with I from 1 to N, such as 2/4 for the second of four", text));
  return part;
}

fs::path SweepFolder::place(const Config& config) {
  if (!config.out.empty()) return config.out;
  std::string base;
  for (const Option& option : all_options())
    if (is_base(option)) base += fmt::format("{} {}\n", option.name, shown(config, option));
  for (const Target& target : config.targets) base += to_text(target) + "\n";
  return fs::path("runs") /
         fmt::format("sweep-{}-{}-{}", config.model, parse_data(config.data).label(), hash_text(base).substr(0, 8));
}

SweepFolder::SweepFolder(const Config& config, const SweepPart& part, Device device) : path_(place(config)) {
  try {
    if (fs::exists(path_) && !fs::is_directory(path_))
      throw UsageError(fmt::format("--out {}: is a file, needs a folder; choose another name", path_.string()));
    if (fs::exists(path_ / "config.json"))
      throw UsageError(fmt::format("--out {}: holds a run, and no sweep; choose another folder", path_.string()));
    if (config.plan) {
      if (fs::exists(path_ / "sweep.json")) refuse_other_settings(config, path_);
      return;
    }
    fs::create_directories(path_ / "cells");
    fs::path locked = path_;
    if (!part.all()) fs::create_directories(locked = path_ / "parts" / fmt::format("{}-of-{}", part.number, part.of));
    lock_.emplace(locked);
  } catch (const fs::filesystem_error& e) {
    throw UsageError(
        fmt::format("--out {}: cannot be made: {}; choose another", e.path1().string(), e.code().message()));
  }
  if (part.all() && fs::exists(path_ / "cells"))  // what failed is tried again
    for (const auto& cell : fs::directory_iterator(path_ / "cells")) fs::remove(cell.path() / "failure.json");
  if (fs::exists(path_ / "sweep.json")) {
    refuse_other_settings(config, path_);
  } else {
    write("machine.json", machine_json(this_machine(), measure_load(), config.threads, device));
  }
  write("sweep.json", to_json(config));
}

void SweepFolder::write(std::string_view file, const Json& document) const {
  const FolderLock turn = my_turn(path_);
  write_json(path_ / file, document);
}

void SweepFolder::write_text(std::string_view file, std::string_view text) const {
  const FolderLock turn = my_turn(path_);
  write_file(path_ / file, text);
}

std::optional<Targets> SweepFolder::targets() const {
  const fs::path file = path_ / "targets.json";
  if (!fs::exists(file)) return std::nullopt;
  const Json json = Json::parse(read_file(file), nullptr, false);
  if (!json.is_object() || json.value("format_version", Json()) != kFormatVersion)
    throw Error(
        fmt::format("{}: does not hold targets of this version: damaged, or of a newer tapedeck", file.string()));
  try {
    Targets out{json.at("metric"), json.at("values"), json.at("source"), ""};
    if (json.at("pilot").is_string()) out.pilot = json.at("pilot");
    if (out.values.empty() || out.hash() != json.at("hash").get<std::string>())
      throw Error(
          fmt::format("{}: does not fit its hash: targets are fixed before the runs that they judge; put it back, or "
                      "begin another sweep with --targets",
                      file.string()));
    return out;
  } catch (const Json::exception&) {
    throw Error(fmt::format("{}: lacks a field of targets: put it back", file.string()));
  }
}

Json SweepFolder::machine() const {
  if (!fs::exists(path_ / "machine.json")) return {};
  const Json json = Json::parse(read_file(path_ / "machine.json"), nullptr, false);
  return json.is_discarded() ? Json() : json;
}

void SweepFolder::store(const Targets& targets) const {
  write("targets.json", {{"metric", targets.metric},
                         {"values", targets.values},
                         {"source", targets.source},
                         {"pilot", targets.pilot.empty() ? Json() : Json(targets.pilot)},
                         {"hash", targets.hash()}});
}

}  // namespace tapedeck
