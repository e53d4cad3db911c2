// The one table of options. Flags, keys of a --config file, config.json, --help and --dry-run are all read off it.
// To add an option: a member in Config and a row in options.cpp.
#pragma once
#include <limits>
#include <span>
#include <variant>

#include "apps/config.h"

namespace tapedeck {

enum CommandBit : unsigned {
  kTrain = 1,
  kEvaluate = 2,
  kGradcheck = 4,
  kGraph = 8,
  kInfo = 16,
  kDataList = 32,
  kDataInfo = 64,
  kBenchStep = 128,
  kBenchLoader = 256,
  kExport = 512,
  kDataConvert = 1024,
  kDataFetch = 2048,
  kBenchLaunch = 4096,
  kGenerate = 8192,
  kInspect = 16384,
  kBenchAttention = 32768,
  kCompare = 65536,
  kBenchPrecision = 131072,
  kBenchRecompute = 262144,
  kProfile = 524288,
  kBenchBatch = 1048576,
  kBenchMatmul = 2097152,
  kBenchPeaks = 4194304,
  kBenchFusion = 8388608,
  kBenchThreads = 16777216,
  kBenchTransfer = 33554432,
  kBenchDiff = 67108864,
  kBenchAll = 134217728,
  kFit = 268435456,
  kReport = 536870912,
  kSweep = 1073741824
};
unsigned command_bit(std::string_view command);  // "data info" -> kDataInfo; 0 for a command that takes no option

using Member =
    std::variant<bool Config::*, int64_t Config::*, double Config::*, std::string Config::*,
                 std::vector<int64_t> Config::*, std::optional<int64_t> Config::*, std::optional<double> Config::*,
                 std::optional<Target> Config::*, Recompute Config::*, std::vector<double> Config::*,
                 std::vector<Target> Config::*, std::vector<std::string> Config::*>;

struct Range {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;  // the bound itself is refused
};

struct Option {
  // word: positional, may be missing; list: positional, several; size: bytes, written 512MiB; time: seconds, written
  // 90s, 10min or 2h
  enum class Form { plain, positional, word, list, size, time };
  // A resumed run takes the option from its folder, and given again it must be the same, unless --force is given; where
  // the saved weights would not fit another value (shape), in spite of it. What says when the run ends may differ
  // (length), and so may what touches no result (free). Or it belongs to the process alone (own).
  enum class OnResume { same, shape, length, free, own };

  const char* name;  // "weight-decay": the flag without its dashes, and the key in files
  Member member;
  unsigned commands;               // which take it
  const char* help;                // one line
  std::string_view choices = {};   // "relu|gelu": the only values; empty: any
  Range range = {};                // of a number, or of each number in a list
  const char* fallback = nullptr;  // --help's words for a default that depends on other options
  std::string_view synonyms = {};  // "learning-rate": names that others use, for "did you mean"
  Form form = Form::plain;
  OnResume resume = OnResume::same;
  bool of_one_run = false;  // not taken over when a run's config.json serves as --config (out, force, …)

  bool is_positional() const { return form == Form::positional || form == Form::word || form == Form::list; }
  bool is_flag() const { return std::holds_alternative<bool Config::*>(member); }
};

std::span<const Option> all_options();
const Option* find_option(std::string_view name, unsigned command);   // dashes and underscores are the same; null: none
std::string nearest_option(std::string_view name, unsigned command);  // by edit distance, synonyms included

// options_value.cpp: between text and members. `where` begins the message: "--batch", "settings.json: batch".
void set_value(Config& config, const Option& option, std::string_view text, std::string_view where);
std::string allowed_values(const Option& option);                    // "a whole number from 1 to 2147483647"
std::string value_text(const Config& config, const Option& option);  // what set_value reads back; "" where unset
Json value_json(const Config& config, const Option& option);         // null where unset

}  // namespace tapedeck
