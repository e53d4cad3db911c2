#include "apps/pages/sweep_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "apps/pages/axis.h"
#include "apps/pages/run_record.h"
#include "engine/check.h"

namespace tapedeck {

namespace fs = std::filesystem;

namespace {

Json optional_file(const fs::path& file) { return fs::exists(file) ? read_document(file) : Json(); }

std::string plain(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "none" : value.dump();
}

// Whether all sweeps say the same of this part of a document.
bool alike(const Sweeps& sweeps, Json SweepRecord::*document, const char* key) {
  return std::all_of(sweeps.begin(), sweeps.end(), [&](const SweepRecord& s) {
    return part_of(s.*document, {key}) == part_of(sweeps.front().*document, {key});
  });
}

}  // namespace

bool is_sweep(const fs::path& folder) { return fs::exists(folder / "sweep.json"); }

SweepRecord read_sweep(const fs::path& folder) {
  if (!is_sweep(folder)) throw UsageError(fmt::format("{}: is no sweep, it has no sweep.json", folder.string()));
  if (!fs::exists(folder / "summary.json"))
    throw UsageError(
        fmt::format("{}: is a sweep without a summary.json yet; run it again to go on with it", folder.string()));
  SweepRecord out{folder, fs::absolute(folder / "").lexically_normal().parent_path().filename().string(), {}, {}, {}};
  out.summary = read_document(folder / "summary.json");
  out.settings = read_document(folder / "sweep.json");
  out.machine = optional_file(folder / "machine.json");
  return out;
}

std::string sweep_name(const Sweeps& sweeps, size_t which) {
  for (size_t i = 0; i < sweeps.size(); ++i)
    if (i != which && sweeps[i].name == sweeps[which].name) return sweeps[which].path.string();
  return sweeps[which].name;
}

CommonTargets common_targets(const Sweeps& sweeps) {
  CommonTargets out;
  const Json& first = sweeps.front().summary;
  out.metric = text_in(first, {"targets", "metric"});
  const auto all = [&](auto&& same) { return std::all_of(sweeps.begin(), sweeps.end(), same); };
  if (!alike(sweeps, &SweepRecord::summary, "data") || !alike(sweeps, &SweepRecord::summary, "train_examples") ||
      !alike(sweeps, &SweepRecord::summary, "data_hash"))
    out.why_none = "They trained on different data, so that their targets are not the same.";
  else if (!all([&](const SweepRecord& s) { return text_in(s.summary, {"targets", "metric"}) == out.metric; }))
    out.why_none = "Their targets are of different metrics.";
  else if (!alike(sweeps, &SweepRecord::summary, "kind"))
    out.why_none = "Some count the first passage of a target, others fixed horizons, which are not the same steps.";
  if (!out.why_none.empty()) return out;
  for (const Json& value : list_in(first, {"targets", "values"}))
    if (value.is_number() && all([&](const SweepRecord& s) {
          const Json& values = list_in(s.summary, {"targets", "values"});
          return std::find(values.begin(), values.end(), value) != values.end();
        }))
      out.values.push_back(value.get<double>());
  if (out.values.empty()) out.why_none = "They have no target in common; give all of them the same --targets.";
  return out;
}

const Json& fit_at(const SweepRecord& sweep, double target) {
  for (const Json& entry : list_in(sweep.summary, {"fits"}))
    if (number_in(entry, {"target"}) == target) return part_of(entry, {"fit"});
  static const Json nothing;
  return nothing;
}

std::map<double, Middle> steps_at(const SweepRecord& sweep, double target) {
  std::map<double, Middle> out;
  if (!is_horizon(sweep.summary))
    for (const Json& row : list_in(fit_at(sweep, target), {"rows"}))
      if (const double batch = number_in(row, {"batch"}); batch > 0) out[batch] = middle_in(row);
  if (is_horizon(sweep.summary))
    for (const Json& size : list_in(sweep.summary, {"sizes"})) {
      const HorizonRange range = range_at(size, target);
      if (const double batch = number_in(size, {"batch"}); batch > 0 && !std::isnan(range.failed))
        out[batch] = {std::isnan(range.passed) ? INFINITY : range.passed, range.failed, range.passed};
    }
  return out;
}

std::optional<IntervalEstimate> b_crit_of(const Json& fit) {
  const LawFigures law(fit);
  if (std::isnan(law.b_crit) || std::isnan(law.low) || !(law.low <= law.b_crit && law.b_crit <= law.high)) return {};
  return IntervalEstimate{law.b_crit, law.low, law.high};
}

std::map<double, std::vector<double>> steps_by_size(const SweepRecord& sweep, double target) {
  std::map<double, std::vector<double>> out;
  std::set<double> incomplete;
  if (is_horizon(sweep.summary)) return out;  // all runs of a size take one K: there is no spread to compare
  for (const CountedRun& run : counted_runs(sweep.summary, target))
    if (run.end == CountedRun::End::reached && run.steps > 0)
      out[run.batch].push_back(run.steps);
    else
      incomplete.insert(run.batch);
  for (const double batch : incomplete) out.erase(batch);
  return out;
}

std::vector<std::string> sweep_differences(const Sweeps& sweeps) {
  std::vector<std::string> out;
  for (size_t i = 0; i < sweeps.size(); ++i) {
    if (text_in(sweeps[i].summary, {"status"}) != "complete")
      out.push_back(sweep_name(sweeps, i) + " is incomplete: its figures may change.");
    if (!is_true(sweeps[i].summary, {"timed"}))
      out.push_back(fmt::format("The seconds of {} stand in no chart: {}.", sweep_name(sweeps, i),
                                why_untimed(sweeps[i].summary)));
  }
  if (const std::vector<double> common = common_targets(sweeps).values; !common.empty())
    for (size_t i = 0; i < sweeps.size(); ++i) {
      const Json& values = list_in(sweeps[i].summary, {"targets", "values"});
      if (values.back() != common.back())
        out.push_back(fmt::format("The rates of {} were tuned for {}, its tightest target, not for {}.",
                                  sweep_name(sweeps, i), short_number(values.back()), short_number(common.back())));
    }
  std::string differ;
  for (const char* key : {"processor", "threads", "allowed_cores", "gpu", "compiler", "flags", "commit"})
    if (!alike(sweeps, &SweepRecord::machine, key)) differ += (differ.empty() ? "" : ", ") + std::string(key);
  for (const char* key : {"device", "precision"})
    if (!alike(sweeps, &SweepRecord::summary, key)) differ += (differ.empty() ? "" : ", ") + std::string(key);
  if (!differ.empty())
    out.push_back("Of the machines and builds these differ: " + differ +
                  ". Seconds are comparable only as far as that does not matter; steps and examples are.");
  return out;
}

Table differing_settings(const Sweeps& sweeps) {
  static const std::set<std::string> of_no_matter = {"out",      "json",     "quiet", "config", "format_version",
                                                     "command",  "parallel", "part",  "plan",   "note",
                                                     "data-dir", "log-every"};
  Table out{{"option"}, {}};
  for (size_t i = 0; i < sweeps.size(); ++i) out.columns.push_back(sweep_name(sweeps, i));
  if (!sweeps.front().settings.is_object()) return out;
  for (const auto& [name, entry] : sweeps.front().settings.items()) {
    std::vector<TableCell> row = {{name}};
    bool same = true;
    for (const SweepRecord& sweep : sweeps) {
      const Json& value = part_of(sweep.settings, {name.c_str(), "value"});
      row.push_back({plain(value)});
      same &= row.back().text == row[1].text;
    }
    if (!same && !of_no_matter.contains(name)) out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace tapedeck
