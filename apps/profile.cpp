// tapedeck profile: where the time of a training step goes. Runs train's loop up to the end of a window of steps,
// traces those, and says what each op and each part of the model took, how far it is from what the machine allows, and
// what there is to win.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/bench_report.h"
#include "apps/commands.h"
#include "apps/data_record.h"
#include "apps/files.h"
#include "apps/interrupt.h"
#include "apps/memory_picture.h"
#include "apps/peaks.h"
#include "apps/profile_graph.h"
#include "apps/profile_overhead.h"
#include "apps/profile_report.h"
#include "apps/profile_session.h"
#include "apps/recompute_plan.h"
#include "apps/record.h"
#include "apps/roofline.h"
#include "apps/trace_file.h"
#include "apps/train_report.h"
#include "apps/what_if.h"
#include "data/byte_count.h"
#include "engine/gpu.h"

namespace tapedeck {
namespace {

void check_long_enough(const ProfileWindow& w, const Config& config, const Problem& problem) {
  const int64_t steps = total_steps(config, problem);
  if (steps < w.end())
    throw UsageError(
        text("--window {}: it ends behind {} steps, skip {} + {} x (wait {} + warmup {} + active {}), and the "
             "run has only {}: use --steps {} or more, or a smaller window",
             to_text(w), w.end(), w.skip, w.repeat, w.wait, w.warmup, w.active, steps, w.end()));
}

// The ceilings that rows are compared with: those of f32 on the CPU. `fastest`: GFLOP/s that a product of the profile
// reached. Where that is more than the machine could when it was measured, something else kept it busy then.
std::optional<Peaks> peaks_for(Device device, DType dtype, double fastest = 0) {
  if (device != Device::cpu || dtype != DType::f32) return {};
  std::optional<Peaks> known = cached_peaks();
  if (known && known->gemm.best >= fastest) return known;
  try {
    return measure_peaks();
  } catch (const OutOfMemory&) {
    std::cerr << "tapedeck profile: the machine's peaks are not measured, which takes 256 MiB\n";
  }
  return known;
}

double fastest_product(const Tracer& tracer) {
  double best = 0;
  for (const Span& span : tracer.spans())
    if (span.kind == Span::Kind::product && tracer.seconds(span) > 0)
      best = std::max(best, span.flops / tracer.seconds(span) / 1e9);
  return best;
}

std::string steps_text(const std::vector<int64_t>& steps) {
  std::string out;
  for (size_t i = 0; i < steps.size(); ++i) {
    size_t last = i;
    while (last + 1 < steps.size() && steps[last + 1] == steps[last] + 1) ++last;
    out += (out.empty() ? "" : ", ") +
           (last == i ? fmt::format("{}", steps[i]) : fmt::format("{} to {}", steps[i], steps[last]));
    i = last;
  }
  return out;
}

std::string header(const Config& config, Device device, const ProfileSession& session, const Profile& profile) {
  const size_t n = session.steps().size();
  return fmt::format(
      "{} on {}, batch {}{}, {} on {}, {} thread{}; step{} {} of the run (from 0), {:.3f} ms each\n"
      "calls: in all {} step{}; the other figures: of a step\n",
      config.model, config.data, config.batch, config.accumulate > 1 ? fmt::format(" x {}", config.accumulate) : "",
      config.precision, name(device), threads(), threads() == 1 ? "" : "s", n == 1 ? "" : "s",
      steps_text(session.steps()), profile.wall / static_cast<double>(n) * 1e3, n, n == 1 ? "" : "s");
}

std::string peaks_text(const std::optional<Peaks>& peaks, Device device) {
  if (peaks)
    return fmt::format(
        "roofs of this machine: {:.1f} GFLOP/s (best product; {}), {:.1f} GB/s (copy; {}). bound by cache: "
        "faster than memory, its numbers stay in the caches\n",
        peaks->gemm.best, peaks->gemm.how, peaks->copy.best, peaks->copy.how);
  if (device == Device::emulated)
    return "times of the emulated device are logical: each kernel, product or copy takes a microsecond; no roofs\n";
  return "no roofs: they are measured in fp32 on the CPU\n";
}

std::string times_text(const ProfileSession& session) {
  if (session.times() == "events")
    return fmt::format("kernel times come from events, which count waits between kernels as the next op's: {}\n",
                       session.why_events());
  if (session.times() != "cupti") return "";
  const std::string lost =
      session.lost() > 0 ? fmt::format("; {} records were lost, and their time is idle here", session.lost()) : "";
  return fmt::format("kernel times come from CUPTI, which slows the step: no speed follows from its length{}\n", lost);
}

// Everything that is known of the profiled steps once they have run.
struct Result {
  const Config& config;
  const Problem& problem;
  Device device;
  const ProfileSession& session;
  Profile profile;
  std::optional<Peaks> peaks;
  std::vector<Chain> chains;
  std::string why_plain = {};  // "": nobody asked for replayed steps, or these are
  std::optional<ProfileOverhead> overhead = {};
};

std::string graph_text(const Result& r) {
  if (!r.why_plain.empty()) return fmt::format("plain steps are profiled: {}\n", r.why_plain);
  if (!r.profile.replayed) return "";
  const int64_t others = steps_not_replayed(r.session.tracer());
  return "steps are replayed as a graph: each kernel is the op's in which its node was captured\n" +
         (others == 0 ? ""
                      : fmt::format("{} of these steps ran plainly or captured a graph, which takes longer: move the "
                                    "window by --window skip=N\n",
                                    others));
}

std::string title_of(const Config& config, const char* what) {
  return fmt::format("{} of a training step: {} on {}, batch {}{}", what, config.model, config.data, config.batch,
                     config.recompute.kind == Recompute::Kind::none ? "" : ", recompute " + to_text(config.recompute));
}

// `failed` is set where one cannot be written: that costs nobody the tables.
std::string write_files(const Result& r, const Learner& learner, bool& failed) {
  std::string said;
  const auto write = [&](const std::string& file, const std::string& bytes, const char* what) {
    try {
      write_file(file, bytes);
      said += fmt::format("{} in {}\n", what, file);
    } catch (const Error& e) {
      std::cerr << fmt::format("tapedeck profile: {}\n", e.what());
      failed = true;
    }
  };
  if (!r.config.trace.empty()) {
    const TraceText trace = trace_text(r.session.tracer(), "training loop");
    write(r.config.trace, trace.json, "trace, for ui.perfetto.dev,");
    if (trace.left_out > 0)
      said += fmt::format("the trace is cut off: {} events are beyond its limit of 256 MiB; profile fewer steps\n",
                          trace.left_out);
    if (r.device == Device::emulated && !r.session.tracer().beside().empty())
      said += "the trace has no line for the threads that load: what they take is no logical time\n";
  }
  if (r.session.full())
    said += fmt::format("the profiler is full: it holds {} spans, those of the first {} steps of the window\n",
                        grouped(r.session.tracer().spans().size()), r.session.steps().size());
  if (!r.config.memory_picture.empty()) {
    const Inputs batch = r.problem.throw_away(r.config.batch);
    const FixedMemory fixed = {.parameters = learner.parameters.value_bytes(),
                               .gradients = learner.parameters.gradients().bytes(),
                               .optimizer = learner.optimizer.state_bytes(),
                               .batch_kept = static_cast<int64_t>(batch.x.bytes() + batch.answer.bytes())};
    write(r.config.memory_picture, memory_svg(memory_timeline(r.session.tracer(), fixed), title_of(r.config, "Memory")),
          "memory of a step");
  }
  if (!r.config.roofline.empty())
    write(r.config.roofline, roofline_svg(r.profile, *r.peaks, title_of(r.config, "Roofline")), "roofline");
  return said;
}

std::string wins_text(const std::vector<Win>& wins) {
  std::string out = "what there is to win, at most:\n";
  for (size_t i = 0; i < wins.size(); ++i) out += fmt::format("{}. {}\n", i + 1, wins[i].text);
  return out;
}

Json overhead_json(const ProfileOverhead& overhead) {
  const auto ratio = [](const std::optional<RatioInterval>& r) {
    return r ? Json{{"ratio", r->ratio}, {"low", r->low}, {"high", r->high}, {"n", r->n}} : Json();
  };
  return {{"profiled_over_plain", ratio(overhead.on)}, {"plain_over_plain", ratio(overhead.control)}};
}

void print(const Result& r, const Load& load, const std::string& said) {
  const std::vector<Win> wins = possible_wins(r.profile, r.chains, r.peaks, backend(r.device).can_capture());
  Json document = bench_document(r.config, load, r.device);
  document["profiled_steps"] = r.session.steps();
  document["device_times"] = r.session.times();
  document["device_times_reason"] = r.session.why_events().empty() ? Json() : Json(r.session.why_events());
  document["steps_replayed"] = r.profile.replayed ? r.profile.steps - steps_not_replayed(r.session.tracer()) : 0;
  document["plain_steps_reason"] = r.why_plain.empty() ? Json() : Json(r.why_plain);
  document.update(profile_json(r.profile, r.peaks));
  document["peaks"] =
      r.peaks ? Json{{"gemm_gflops", r.peaks->gemm.best}, {"copy_gb_per_s", r.peaks->copy.best}} : Json();
  document["overhead"] = r.overhead ? overhead_json(*r.overhead) : Json();
  document["what_if"] = Json::array();
  for (const Win& win : wins)
    document["what_if"].push_back({{"name", win.name}, {"at_most_ms", win.seconds * 1e3}, {"text", win.text}});
  print_report(r.config,
               header(r.config, r.device, r.session, r.profile) + "\n" + op_table(r.profile, r.peaks, r.config.top) +
                   "\n" + range_table(r.profile, r.config.top) + "\n" + peaks_text(r.peaks, r.device) +
                   times_text(r.session) + graph_text(r) + (r.overhead ? overhead_text(*r.overhead) : "") + said +
                   "\n" + wins_text(wins),
               document);
}

void check_files(const Config& config, const std::optional<Peaks>& peaks) {
  std::set<std::string> files;
  for (const std::string* file : {&config.trace, &config.memory_picture, &config.roofline, &config.save}) {
    if (file->empty()) continue;
    if (!files.insert(*file).second)
      throw UsageError(
          fmt::format("{}: two of --trace, --memory, --roofline and --save would write it: name two files", *file));
    check_writable(*file);
  }
  if (!config.roofline.empty() && !peaks)
    throw UsageError(
        "--roofline: the roofs are those of fp32 on the CPU: use --device cpu and --precision fp32, or leave it out");
}

// The run as it is profiled: nothing but steps.
Config stripped(Config config, bool replays) {
  config.graph = replays ? "on" : "off";
  config.target.reset();
  config.eval_every = 1'000'000'000'000'000;
  return config;
}

// "": steps are replayed as a graph. They are where that was asked for and each kernel's op is told all the same.
std::string why_plain_steps(const Config& config, ProfileSession& session, int64_t room) {
  if (config.graph != "on") return "--graph on profiles replayed ones";
  std::string why = session.follow_graphs();
  if (why.empty()) session.postpone(std::clamp<int64_t>(room, 0, steps_before_replays()));
  return why;
}

}  // namespace

int run_profile(const Config& asked) {
  const ToldOutside told(outside_tool());
  const Device device = prepare_machine(asked);
  const ProfileWindow window = parse_window(asked.window);
  const Load load = measure_load();
  if (load.busy && !asked.quiet)
    std::cerr << "this machine is busy with something else: these times will be too long\n";
  const DType dtype = find_precision(asked);
  const Problem problem(asked, device, dtype);
  check_long_enough(window, asked, problem);
  say_what_is_slow(asked);
  std::optional<Peaks> peaks = peaks_for(device, dtype);
  check_files(asked, peaks);
  const Config planned = with_recompute_planned(with_device_named(asked, device), problem, device);
  ProfileSession session(window, device);
  if (device == Device::cuda) {
    std::string why_none;
    std::unique_ptr<KernelRecorder> recorder = kernel_recorder(why_none);
    if (recorder && planned.graph == "on") recorder->follow_graphs();  // CUPTI wants that first; why not, see below
    session.record_kernels(std::move(recorder), why_none);
  }
  const int64_t room = total_steps(asked, problem) - window.end();
  const std::string why_plain = why_plain_steps(planned, session, room);
  if (graph_wanted(planned, device) && !why_plain.empty() && !asked.quiet)
    std::cerr << "plain steps are profiled: " << why_plain << "\n";
  const Config config = stripped(planned, why_plain.empty());

  TrainingClock clock;
  Progress progress(std::cerr, stderr_is_terminal(), config.quiet);
  const Interruption signals(asked.out.empty()
                                 ? "\nstopping: this step is finished; once more leaves at once\n"
                                 : "\nstopping: this step is finished and the run saved; once more leaves at once\n");
  std::optional<RunFolder> folder;
  if (!config.out.empty()) {  // a run like any other, which train may go on with
    Config run = planned;
    run.command = "train";
    folder.emplace(run, device);
    folder->write("data.json", data_json(problem.data()));
  }
  Trainer trainer(config, problem, device, clock, progress, folder ? &*folder : nullptr,
                  [&] { return session.over() || Interruption::asked(); });
  trainer.watch(session);
  try {
    const Summary summary = trainer.run();
    if (folder) folder->write("summary.json", to_json(summary));
  } catch (...) {
    if (folder) folder->abandon();
    throw;
  }
  session.finish();
  progress.finish();
  bool interrupted = Interruption::asked();
  if (session.steps().empty()) {
    std::cerr << fmt::format(
        "tapedeck profile: no step was profiled, and nothing is written: the run ended behind step {}{}\n",
        trainer.state().step, trainer.reason().empty() ? "" : ": " + trainer.reason());
    return interrupted ? exit_interrupted : exit_failed;
  }
  if (!session.over())
    std::cerr << fmt::format("tapedeck profile: the run ended within the window: {} of {} steps are profiled\n",
                             session.steps().size(), window.repeat * window.active);
  if (peaks && !interrupted) peaks = peaks_for(device, dtype, fastest_product(session.tracer()));
  Result result{config, problem, device, session, profile_of(session.tracer(), peaks), peaks, {}};
  if (asked.graph == "on") result.why_plain = why_plain;
  sort_rows(result.profile, config.sort);
  if (peaks) result.chains = memory_bound_chains(session.tracer(), *peaks);
  bool unwritten = false;
  const std::string said = write_files(result, trainer.learner(), unwritten);
  if (device == Device::cpu && !interrupted) try {
      result.overhead = measure_overhead(config, problem, device, dtype, Interruption::asked);
      interrupted = Interruption::asked();
    } catch (const OutOfMemory&) {
      std::cerr << "tapedeck profile: what profiling costs is not measured, which takes a second model\n";
    }
  print(result, load, said);
  return interrupted ? exit_interrupted : session.over() && !unwritten ? exit_done : exit_failed;
}

}  // namespace tapedeck
