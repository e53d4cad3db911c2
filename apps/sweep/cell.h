// A cell of a sweep: one run of one batch size, rate and seed, and what it came to.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/config.h"
#include "apps/meter.h"

namespace tapedeck {

struct Cell {
  enum class Purpose : uint8_t {
    pilot,  // which rates are of use at the reference batch, and how many steps a run takes
    tune,   // a rate at a batch size
    run,    // the tuned rate, with seeds that no tuning has seen: what the report counts
    again   // the same size twice: once more, with other seeds, to see what equal things differ by
  };
  Purpose purpose;
  int64_t batch;  // examples a step
  double rate;
  int64_t seed;
  int64_t steps;  // the cap
};
const char* name(Cell::Purpose purpose);

// "tune-b64-lr0.001414-seed1000001-cap900": cells are the same when their names are.
std::string cell_name(const Cell& cell);
std::string rate_text(double rate);  // 4 digits, as in a cell's name
double rounded_rate(double rate);    // to these, so that a rate is what its name says

struct EvaluationPoint {
  int64_t step = 0, examples = 0;
  double seconds = 0;  // on the training clock
  double loss = 0;     // NaN where it was not finite
  std::optional<double> accuracy;
};

struct NoiseFigure {  // the gradient noise scale over a run
  std::optional<double> value, low, high;
  int64_t samples = 0;
  std::string state;  // "resolved", "not resolved", "not available: …"
};

struct CellResult {
  // reached: the tightest target. missed: the cap came first. diverged: not finite, or at the end of more than twice
  // the loss that it began with, or most steps were skipped. failed: something else went wrong, and says nothing of the
  // optimisation: it counts nowhere, but is listed.
  enum class Status : uint8_t { reached, missed, diverged, failed };
  Status status = Status::missed;
  std::string reason;  // of diverged and failed
  bool out_of_memory = false;
  int64_t steps = 0, examples = 0;
  double train_seconds = 0, eval_seconds = 0, wall_seconds = 0;
  std::optional<double> began;  // Unix time; none where no sweep ran the cell but a line of --plan
  bool side_by_side = false;    // other cells ran on its machine meanwhile (--parallel)
  std::string machine;          // "PROCESSOR, 2 threads"
  std::optional<StepTimeSummary> step_ms;
  std::optional<NoiseFigure> noise;
  std::vector<EvaluationPoint> curve;

  double best_loss() const;  // the lowest of the curve; infinite where there is none
};
const char* name(CellResult::Status status);

// Where a run crossed a target: at the first evaluation that holds it and is confirmed by the next one. The crossing
// lies in (lower, upper] steps; upper is infinite where it was not reached, and lower the last step then, or the cap
// of a run that diverged.
struct Crossing {
  bool reached = false;
  double lower = 0, upper = 0;
  std::optional<int64_t> first_touch;  // first evaluation that held the target, confirmed or not
  int64_t examples = 0;
  double seconds = 0;  // on the training clock
};
Crossing crossing(const CellResult& result, const Target& target, int64_t cap);

// The targets of a sweep, of one metric, fixed before the runs that they judge.
struct Targets {
  std::string metric;          // "loss", "accuracy"
  std::vector<double> values;  // the tightest last
  std::string source;          // "given", or "pilot": at the knee of its curve
  std::string pilot;           // the name of that cell

  Target tightest() const { return {metric, values.back()}; }
  std::string text() const;  // "loss=0.4,loss=0.2"
  std::string hash() const;  // of the text, 16 digits: to see that nobody changed them
  bool operator==(const Targets&) const = default;
};
// In order, the tightest last. Throws UsageError for two metrics or a value twice.
Targets given_targets(const std::vector<Target>& targets);

std::string hash_text(std::string_view text);  // FNV-1a, 16 hexadecimal digits

}  // namespace tapedeck
