// tapedeck sweep: how steps, examples and seconds to a target change with the batch size. Which cell is next:
// sweep_plan.h; what a cell is: train_cells.h; what follows from them: sweep_result.h.
#include <fmt/format.h>

#include <chrono>
#include <iostream>
#include <thread>

#include "apps/commands.h"
#include "apps/data_record.h"
#include "apps/experiment.h"
#include "apps/files.h"
#include "apps/interrupt.h"
#include "apps/pages/sweep_page.h"
#include "apps/progress.h"
#include "apps/shell.h"
#include "apps/sweep/estimate.h"
#include "apps/sweep/extra.h"
#include "apps/sweep/parallel_parts.h"
#include "apps/sweep/pilot.h"
#include "apps/sweep/sweep_folder.h"
#include "apps/sweep/sweep_report.h"
#include "apps/sweep/sweep_settings.h"
#include "apps/sweep/sweep_table.h"
#include "apps/sweep/train_cells.h"
#include "apps/train_report.h"

namespace tapedeck {
namespace {

// One process's work on a sweep: all of it, or a part.
class SweepProcess {
 public:
  enum class End : uint8_t { complete, interrupted, budget_spent };

  SweepProcess(const Config& config, const SweepSettings& settings, const Problem& problem, Device device)
      : config_(config),
        part_(parse_part(config.part)),
        folder_(config, part_, device),
        cells_(config, problem, device, folder_.path()),
        table_(std::cerr, stderr_is_terminal(), config.quiet) {
    state_.settings = settings;
    if (const auto stored = folder_.targets()) {
      if (state_.settings.targets && state_.settings.targets->text() != stored->text())
        throw UsageError(
            fmt::format("--targets {}: the sweep in {} was begun with {}; give these again, or another --out",
                        state_.settings.targets->text(), folder_.path().string(), stored->text()));
      fix_targets(*stored);
    } else if (state_.settings.targets) {
      fix_targets(*state_.settings.targets);
    }
  }

  SweepState& state() { return state_; }
  const SweepFolder& folder() const { return folder_; }
  SweepTable& table() { return table_; }

  // What is to run next, after all that has run elsewhere or before has been taken in.
  std::vector<Cell> needed() {
    for (;;) {
      std::vector<Cell> cells = cells_needed(state_);
      if (state_.targets && !folder_.targets() && !config_.plan) folder_.store(*state_.targets);
      bool more = false;
      for (const Cell& cell : cells)
        if (auto result = cells_.there(cell, targets_of(cell)); result && !planned_anew(*result))
          state_.add(cell, std::move(*result)), more = true;
      if (cells.empty()) take_in_extras();
      if (!more) return cells;
    }
  }

  End work(const Estimate& estimate) {
    for (;;) {
      const std::vector<Cell> cells = needed();
      say_estimate(estimate);
      const std::optional<Cell> next = choose(cells);
      if (Interruption::asked() || orphaned()) return End::interrupted;
      if (!next && cells.empty()) return End::complete;
      if (!next) {
        wait_for_others(cells);
        continue;
      }
      if (config_.budget && spent() >= *config_.budget) return cells.empty() ? End::complete : End::budget_spent;
      table_.begins(state_, *next, pilot_done() ? estimate.remaining(state_) : 0);
      std::optional<CellResult> result;
      try {
        result = cells_.run(*next, targets_of(*next));
      } catch (const Busy&) {  // a part with another number is at it
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        continue;
      }
      if (!result) return End::interrupted;
      state_.add(*next, *result);
      table_.ended(state_, *next, *result);
    }
  }

  void print_commands() {
    for (const Cell& cell : needed()) {
      if (!part_.has(cell)) continue;
      std::string line;
      for (const std::string& word : cells_.command(cell, targets_of(cell)))
        line += (line.empty() ? "" : " ") + shell_word(word);
      std::cout << line << "\n";
    }
  }

  std::optional<double> estimated() const { return estimated_; }

 private:
  void fix_targets(const Targets& targets) { state_.targets = state_.settings.targets = targets; }

  // A sweep forgets the cells that failed as it begins; the list of what it would run has them, and leaves them there.
  bool planned_anew(const CellResult& result) const {
    return config_.plan && part_.all() && result.status == CellResult::Status::failed;
  }

  // The pilot that is to say what the targets are has none; nor has a run whose schedule goes on to its end.
  std::optional<Targets> targets_of(const Cell& cell) const {
    const bool finds = cell.purpose == Cell::Purpose::pilot && state_.targets && state_.targets->source == "pilot";
    return finds || config_.horizon ? std::nullopt : state_.targets;
  }

  bool pilot_done() const { return state_.targets && pilot_cells_needed(state_).empty(); }

  std::optional<Cell> choose(const std::vector<Cell>& cells) {
    for (const Cell& cell : cells)
      if (part_.has(cell)) return cell;
    return cells.empty() && config_.budget && part_.number == 1 ? extra_cell(state_) : std::nullopt;
  }

  // Runs of further seeds, which an earlier process with a --budget has added.
  void take_in_extras() {
    for (const int64_t batch : state_.settings.batches) {
      if (state_.settings.horizon) continue;
      const std::vector<Cell> runs = runs_of(state_, batch, tuning(state_, batch));
      if (runs.empty()) continue;
      Cell cell = runs.back();
      for (++cell.seed;; ++cell.seed) {
        if (state_.find(cell)) continue;
        auto result = cells_.there(cell, targets_of(cell));
        if (!result) break;
        state_.add(cell, std::move(*result));
      }
    }
  }

  void wait_for_others(const std::vector<Cell>& cells) {
    if (!waiting_) table_.message(fmt::format("waiting for {} cells of other parts", cells.size()));
    waiting_ = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }

  double spent() const {
    double sum = 0;
    for (const auto& [name, entry] : state_.results) sum += entry.second.wall_seconds;
    return sum;
  }

  void say_estimate(const Estimate& estimate) {
    if (estimated_ || !pilot_done()) return;
    estimated_ = estimate.remaining(state_);
    table_.message(fmt::format(
        "target: validation {} ({}); about {} for the cells that are left (steps by the pilot, "
        "seconds by three steps of each size)",
        state_.targets->text(), state_.targets->source == "given" ? "given" : "at the knee of the pilot's curve",
        duration_text(*estimated_)));
  }

  const Config& config_;
  const SweepPart part_;
  SweepFolder folder_;
  TrainCells cells_;
  SweepTable table_;
  SweepState state_;
  std::optional<double> estimated_;
  bool waiting_ = false;
};

std::string plan_text(const Config& config, const SweepState& state, const Problem& problem) {
  const SweepSettings& s = state.settings;
  std::string sizes;
  for (const int64_t batch : s.batches) sizes += fmt::format("{}{}", sizes.empty() ? "" : " ", batch);
  const std::string rates =
      !s.tunes()        ? fmt::format("rate {}", s.rates[0])
      : s.rates.empty() ? fmt::format("{} rates or more of each size, {} runs each", s.grid_points + 2, s.tuning_seeds)
                        : fmt::format("{} rates of each size, {} runs each", s.rates.size(), s.tuning_seeds);
  const std::string runs = s.horizon ? fmt::format("{} runs with new seeds of each number of steps", s.seeds)
                                     : fmt::format("{} runs of each size with new seeds", s.seeds);
  return fmt::format("{} on {}, {}: batch sizes {}\n{}; then {}{}: about {} cells", config.model, problem.data().name,
                     config.optimizer, sizes, rates, runs,
                     !s.again    ? ""
                     : s.horizon ? ", once more for the middle size"
                                 : ", of the middle one once more",
                     planned_cells(state));
}

SweepContext context_of(const Config& config, const Problem& problem, Device device) {
  SweepContext out;
  out.model = config.model, out.data = problem.data().name, out.device = name(device);
  out.precision = config.precision, out.optimizer = config.optimizer, out.schedule = config.schedule;
  out.preset = config.preset, out.threads = config.threads;
  out.parameters = Learner(config, problem, 0, device, find_precision(config)).parameters.count();
  out.train_examples = std::ssize(problem.data().train), out.data_hash = hash_text(problem.data());
  return out;
}

int exit_code(const SweepState& state, SweepProcess::End end) {
  if (end == SweepProcess::End::interrupted) return exit_interrupted;
  // A size that does not fit is a result; that none does is none.
  bool memory = false;
  for (const auto& [name, entry] : state.results) {
    if (entry.second.status != CellResult::Status::failed) return exit_done;
    memory |= entry.second.out_of_memory;
  }
  return memory ? exit_out_of_memory : state.results.empty() ? exit_done : exit_failed;
}

}  // namespace

int run_sweep(const Config& asked) {
  const Device device = prepare_machine(asked);
  const Config config = with_device_named(asked, device);
  const Problem problem(config, device, find_precision(config));
  const StepGraph graph(device, graph_wanted(config, device));  // refused where the device has none
  say_what_is_slow(asked);
  SweepProcess process(config, sweep_settings(config, problem), problem, device);
  if (config.plan) {
    process.print_commands();
    return exit_done;
  }
  const Interruption signals("\nstopping: this batch is finished and the cell saved; once more leaves at once\n");
  process.table().message(plan_text(config, process.state(), problem));
  process.table().message("in " + process.folder().path().string());
  const Estimate estimate(config, problem, device, process.state().settings);
  if (config.parallel > 1) run_parts(config, process.folder().path());
  const SweepProcess::End end = process.work(estimate);

  SweepContext context = context_of(config, problem, device);
  context.complete = end == SweepProcess::End::complete;
  context.estimated_seconds = process.estimated();
  context.why_not_timed = why_not_timed(process.state());
  context.timed = context.why_not_timed.empty();
  const SweepResult result = conclude(process.state(), context.timed);
  const Json document = sweep_json(process.state(), result, context);
  process.folder().write("summary.json", document);
  process.folder().write_text("report.html", sweep_page(document, process.folder().machine()));
  const std::string where = process.folder().path().string();
  std::string report = sweep_text(process.state(), result, context);
  if (end == SweepProcess::End::budget_spent)
    report += fmt::format("the budget is spent before all cells have run; a larger --budget goes on\n");
  print_report(
      config,
      report + fmt::format("saved in {}; the page is {}\n", where, (process.folder().path() / "report.html").string()),
      document);
  if (end == SweepProcess::End::interrupted)
    std::cerr << fmt::format("interrupted; the same command goes on (with --out {})", shell_word(where)) << std::endl;
  return exit_code(process.state(), end);
}

}  // namespace tapedeck
