#include "apps/scaling_runs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "data/csv_reader.h"
#include "data/nearest.h"
#include "data/utf8.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array<const char*, 7> kNames = {"batch", "steps", "cost", "reached", "lower", "upper", "seconds"};
constexpr size_t kBatch = 0, kSteps = 1, kCost = 2, kReached = 3, kLower = 4, kUpper = 5, kSeconds = 6;

// Which field of a line holds which column.
struct Columns {
  std::string file;
  size_t fields = 0;
  std::array<std::optional<size_t>, kNames.size()> at;
};

Columns read_header(CsvReader& reader) {
  if (!reader.next())
    throw UsageError(
        text("{}: has no lines; wants a line of names such as batch,steps and a run a line below", reader.file()));
  Columns columns{.file = reader.file(), .fields = reader.fields().size(), .at = {}};
  const std::vector<std::string> known(kNames.begin(), kNames.end());
  for (size_t i = 0; i < columns.fields; ++i) {
    const std::string name(trimmed(reader.fields()[i]));
    if (csv_number(name))
      throw UsageError(
          text("{}: line {}: begins with numbers; the first line must name the columns, such as batch,steps",
               columns.file, reader.line()));
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end())
      throw UsageError(
          text("{}: line {}, column {}: \"{}\" is no column of runs, did you mean {}? Known are batch, steps or cost, "
               "and, if wanted, reached, lower, upper, seconds; leave others out",
               columns.file, reader.line(), i + 1, printable(name), nearest(name, known)));
    std::optional<size_t>& place = columns.at[static_cast<size_t>(found - known.begin())];
    if (place)
      throw UsageError(text("{}: line {}: columns {} and {} are both called \"{}\"", columns.file, reader.line(),
                            *place + 1, i + 1, name));
    place = i;
  }
  if (!columns.at[kBatch])
    throw UsageError(text("{}: line {}: has no column \"batch\", the examples of a step", columns.file, reader.line()));
  if (!columns.at[kSteps] && !columns.at[kCost])
    throw UsageError(text("{}: line {}: has no column \"steps\" or \"cost\", what each run took to reach its target",
                          columns.file, reader.line()));
  if (columns.at[kSteps] && columns.at[kCost])
    throw UsageError(text("{}: line {}: has both \"steps\" and \"cost\", which say the same; leave one out",
                          columns.file, reader.line()));
  return columns;
}

// One line, its fields found by the columns' names.
class Line {
 public:
  Line(const Columns& columns, const CsvReader& reader) : columns_(columns), reader_(reader) {
    const size_t fields = reader.fields().size();
    if (fields != columns.fields)
      throw UsageError(tapedeck::text("{}: line {} has {} fields, but the first line names {} columns: a comma too {}?",
                                      columns.file, reader.line(), fields, columns.fields,
                                      fields < columns.fields ? "few" : "many"));
  }

  std::string_view text(size_t column) const {
    return columns_.at[column] ? trimmed(reader_.fields()[*columns_.at[column]]) : std::string_view();
  }
  bool empty(size_t column) const { return text(column).empty(); }

  [[noreturn]] void refuse(size_t column, const char* wanted) const {
    const std::string got = empty(column) ? "is empty" : "\"" + printable(text(column)) + "\"";
    throw UsageError(tapedeck::text("{}: line {}, column \"{}\": {}, wants {}", columns_.file, reader_.line(),
                                    kNames[column], got, wanted));
  }

  double above_zero(size_t column, const char* wanted) const {
    const std::optional<double> value = csv_number(text(column));
    if (!value || !(*value > 0) || std::isinf(*value)) refuse(column, wanted);
    if (*value < 1e-12 || *value > 1e18) refuse(column, "a number from 1e-12 to 1e18: take another unit");
    return *value;
  }

  std::optional<bool> reached() const {
    if (!columns_.at[kReached]) return std::nullopt;
    std::string word(text(kReached));  // pandas writes True, R TRUE
    for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    for (const char* yes : {"1", "yes", "true"})
      if (word == yes) return true;
    for (const char* no : {"0", "no", "false"})
      if (word == no) return false;
    refuse(kReached, "yes or no (1 or 0, true or false)");
  }

 private:
  const Columns& columns_;
  const CsvReader& reader_;
};

ScalingRun read_run(const Line& line, bool cost) {
  const size_t took = cost ? kCost : kSteps;
  ScalingRun run = {};
  run.batch = line.above_zero(kBatch, "the examples of a step, a whole number of at least 1");
  if (run.batch != std::floor(run.batch) || run.batch > 0x1p53)
    line.refuse(kBatch, "the examples of a step, a whole number of at least 1");
  run.steps = line.above_zero(took, cost ? "a number above 0: what the run took, or spent where it missed"
                                         : "a number above 0: the steps to the target, or the cap where it missed");
  std::optional<bool> reached = line.reached();

  const double upper = csv_number(line.text(kUpper)).value_or(std::nan(""));
  const bool endless = std::isinf(upper) && upper > 0;
  if (endless && reached == true) line.refuse(kUpper, "a number, because this run reached its target");
  if (!line.empty(kUpper) && !endless && reached == false)
    line.refuse(kUpper, "nothing or inf, because this run missed its target");
  if (endless) reached = false;
  const bool missed = reached == false;

  run.upper = missed ? kInfinity : run.steps;
  if (!line.empty(kUpper) && !endless) {
    run.upper = line.above_zero(kUpper, "a number above 0, or inf where the run missed");
    if (run.upper < run.steps) line.refuse(kUpper, cost ? "no less than cost" : "no less than steps");
  }
  run.lower = run.steps;
  if (!line.empty(kLower)) {
    const std::optional<double> lower = csv_number(line.text(kLower));
    if (!lower || !(*lower >= 0) || std::isinf(*lower)) line.refuse(kLower, "a number of at least 0");
    if (*lower > run.steps) line.refuse(kLower, cost ? "no more than cost" : "no more than steps");
    run.lower = *lower;
  }
  if (!line.empty(kSeconds)) run.seconds = line.above_zero(kSeconds, "a number above 0, or nothing");
  if (cost) run.steps /= run.batch, run.lower /= run.batch, run.upper /= run.batch;
  return run;
}

}  // namespace

ScalingRuns read_scaling_runs(const std::string& path) try {
  CsvReader reader(path);
  const Columns columns = read_header(reader);
  ScalingRuns out;
  out.cost = columns.at[kCost].has_value();
  while (reader.next()) {
    out.runs.push_back(read_run(Line(columns, reader), out.cost));
    out.has_seconds = out.has_seconds || out.runs.back().seconds > 0;
  }
  if (out.runs.empty()) throw UsageError(text("{}: names its columns and has no runs below", columns.file));
  return out;
} catch (const Error& e) {  // also what the reader says is of the file that was named
  throw UsageError(e.what());
}

}  // namespace tapedeck
