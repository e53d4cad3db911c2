// tapedeck bench diff: what changed between two documents that `bench … --save` wrote. Rows are the same where their
// keys are: the bench's name with its parameters. The two were not measured in turns, so rounds have no partners, and
// what changed on the machine in between is in the ratio and not in its interval.
#include "apps/bench_diff.h"

#include <fmt/format.h>

#include <iostream>
#include <map>
#include <set>

#include "apps/bench_report.h"
#include "apps/commands.h"
#include "apps/files.h"
#include "apps/record.h"
#include "apps/stats.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

struct Timed {
  double median;
  std::string unit;  // "ms"
  std::vector<double> rounds;
};

constexpr const char* units[] = {"ms", "us", "seconds"};

// The times of a row, or of what it compares ("fused"); none where it has no times.
void add_timed(const Json& place, const std::string& key, std::vector<std::pair<std::string, Timed>>& out) {
  if (!place.contains("rounds") || !place["rounds"].is_array() || place["rounds"].empty()) return;
  for (const std::string unit : units)
    if (const auto middle = place.find("median_" + unit); middle != place.end() && middle->is_number())
      out.push_back({key, {*middle, unit, place["rounds"].get<std::vector<double>>()}});
}

std::vector<std::pair<std::string, Timed>> timed_rows(const Json& document) {
  std::vector<std::pair<std::string, Timed>> out;
  for (const Json& row : document["rows"]) {
    const std::string key = row["key"];
    add_timed(row, key, out);
    for (const auto& [name, part] : row.items())
      if (part.is_object()) add_timed(part, key + ", " + name, out);
  }
  return out;
}

const char* verdict(const Json& row) {
  if (row["ratio_low"].is_null()) return "one round: no interval";
  constexpr double rounding = 1e-9;  // counted times differ by it alone
  if (row["ratio_high"] < 1 - rounding) return "faster";
  return row["ratio_low"] > 1 + rounding ? "slower" : "no difference shown";
}

// "threads" of the machine, "precision" of the options: "" where that side says nothing.
std::string said(const Json& document, const char* part, const std::string& what) {
  if (!document.contains(part) || !document[part].contains(what)) return "";
  const Json& found = document[part][what];
  const Json& value = found.is_object() && found.contains("value") ? found["value"] : found;
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

std::string file_named(const std::string& file, const Json& document) {
  const std::string commit = said(document, "machine", "commit");
  return fmt::format("{} ({}{})", file, said(document, "config", "command"),
                     commit.empty() ? "" : ", commit " + commit);
}

// What a document has to compare: 3 timed, such as "step batch=4".
std::string first_row(const Json& document) {
  const auto rows = timed_rows(document);
  return rows.empty() ? "no timed row" : fmt::format("{} timed, such as \"{}\"", rows.size(), rows[0].first);
}

std::string table(const Json& rows) {
  size_t width = 3;
  for (const Json& row : rows) width = std::max(width, row["key"].get<std::string>().size());
  std::string out = fmt::format("{:<{}} {:>13} {:>13} {:>9}  {:<24} {}\n", "row", width, "before", "after", "rounds",
                                "after / before", "verdict");
  for (const Json& row : rows) {
    const auto time = [&](const char* side) {
      return fmt::format("{:.4g} {}", row[side].get<double>(), row["unit"].get<std::string>());
    };
    out += fmt::format("{:<{}} {:>13} {:>13} {:>9}  {:<24} {}\n", row["key"].get<std::string>(), width, time("before"),
                       time("after"), fmt::format("{}, {}", row["n_before"].dump(), row["n_after"].dump()),
                       ratio_text(row), row["verdict"].get<std::string>());
  }
  return out;
}

}  // namespace

Json read_bench(const std::string& file) {
  const Json document = Json::parse(read_file(file), nullptr, false);
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("{}: {}; give files that `tapedeck bench … --save FILE` wrote", file, why));
  };
  if (document.is_discarded()) refuse("is no JSON");
  if (!document.is_object() || !document.contains("format_version") ||
      !document["format_version"].is_number_unsigned() || document["format_version"] == 0u)
    refuse("is no document of a bench");
  if (document["format_version"].get<uint64_t>() > kFormatVersion)
    throw Error(fmt::format("{}: has format_version {}, this program reads up to {}; use a newer tapedeck", file,
                            document["format_version"].dump(), kFormatVersion));
  if (!document.contains("machine") || !document["machine"].is_object() || !document.contains("rows") ||
      !document["rows"].is_array())
    refuse("is no document of a bench: it has no machine or no rows");
  for (const Json& row : document["rows"])
    if (!row.is_object() || !row.contains("key") || !row["key"].is_string())
      refuse("has a row without a key, as older versions wrote");
  try {
    for (const auto& [key, timed] : timed_rows(document))
      for (const double round : timed.rounds)
        if (!(round > 0 && round < 1e15)) refuse(fmt::format("row \"{}\" has a time of {}", key, round));
  } catch (const Json::exception&) {
    refuse("is damaged: a row's rounds are no numbers");
  }
  return document;
}

std::vector<std::string> differences(const Json& before, const Json& after) {
  std::vector<std::string> out;
  const auto compare = [&](const char* part, const std::string& what, const std::string& shown) {
    const std::string a = said(before, part, what), b = said(after, part, what);
    if (a != b) out.push_back(fmt::format("{}: {} -> {}", shown, a.empty() ? "none" : a, b.empty() ? "none" : b));
  };
  for (const char* what : {"processor", "threads", "allowed_cores", "device", "gpu", "driver", "compiler", "flags",
                           "libraries", "version"})
    compare("machine", what, what);
  // The command's own settings. How long it measured and where to changes no time, and the machine's part has said
  // which threads and device `auto` stood for.
  std::set<std::string> options;
  for (const Json* document : {&before, &after})
    if (document->contains("config"))
      for (const auto& [name, value] : (*document)["config"].items()) options.insert(name);
  for (const char* free : {"rounds", "steps", "save", "json", "quiet", "threads", "device", "config", "memory-limit"})
    options.erase(free);
  for (const std::string& name : options) compare("config", name, name == "command" ? "bench" : "--" + name);
  for (const auto& [document, when] : {std::pair(&before, "before"), std::pair(&after, "after")})
    if (const Json& load = (*document)["machine"].contains("load") ? (*document)["machine"]["load"] : Json();
        load.is_object() && load.contains("busy") && load["busy"] == true)
      out.push_back(fmt::format("the machine was busy with something else when \"{}\" was measured", when));
  return out;
}

Json diff_rows(const Json& before, const Json& after) {
  Json out = {{"rows", Json::array()}, {"only_before", Json::array()}, {"only_after", Json::array()}};
  const auto old = timed_rows(before), now = timed_rows(after);
  std::map<std::string, const Timed*> left;
  for (const auto& [key, timed] : now) left[key] = &timed;
  for (const auto& [key, a] : old) {
    const auto found = left.find(key);
    if (found == left.end() || found->second->unit != a.unit) {
      out["only_before"].push_back(key);
      continue;
    }
    const Timed& b = *found->second;
    const std::optional<RatioInterval> ratio = unpaired_ratio(b.rounds, a.rounds);
    Json row = {{"key", key},
                {"n_before", a.rounds.size()},
                {"n_after", b.rounds.size()},
                {"before", a.median},
                {"after", b.median},
                {"unit", a.unit},
                {"ratio", ratio ? ratio->ratio : median(b.rounds) / median(a.rounds)},
                {"ratio_low", ratio ? Json(ratio->low) : Json()},
                {"ratio_high", ratio ? Json(ratio->high) : Json()}};
    row["verdict"] = verdict(row);
    out["rows"].push_back(row);
    left.erase(found);
  }
  for (const auto& [key, timed] : now)
    if (left.contains(key)) out["only_after"].push_back(key);
  return out;
}

int run_bench_diff(const Config& config) {
  const Json before = read_bench(config.side_a), after = read_bench(config.side_b);
  const std::vector<std::string> warnings = differences(before, after);
  Json document = {{"format_version", kFormatVersion}, {"before", config.side_a}, {"after", config.side_b}};
  document["warnings"] = warnings;
  document.update(diff_rows(before, after));
  const Json& rows = document["rows"];
  if (rows.empty())
    throw Error(
        fmt::format("{} and {} have no timed row in common: {} against {}; compare the same bench at the same sizes",
                    config.side_a, config.side_b, first_row(before), first_row(after)));
  std::string text =
      fmt::format("before: {}\nafter:  {}\n", file_named(config.side_a, before), file_named(config.side_b, after));
  for (const std::string& warning : warnings) text += "warning: not alike: " + warning + "\n";
  text += "\n" + table(rows);
  for (const char* only : {"only_before", "only_after"})
    for (const Json& key : document[only]) text += fmt::format("{}: {}\n", only, key.get<std::string>());
  text += fmt::format(
      "ratio and 95 % interval: geometric means of the rounds, Welch's t on their logs. The sides were measured apart, "
      "so "
      "a\nmachine that changed in between shows as a ratio, too; and of {} rows without a difference one in twenty "
      "shows "
      "one.\n",
      rows.size());
  std::cout << (config.json ? json_text(document) + "\n" : text);
  return exit_done;
}

}  // namespace tapedeck
