// tapedeck bench attention: the fused form against the composed one, by the number of positions T. Each batch has about
// --tokens positions in all, so that T alone changes what there is to do. The two forms take turns in each round,
// forward and then forward with backward, and the ratio is that of the rounds in pairs. Memory is the arena's
// high-water mark over what the input takes. A pass of a form that does not fit into memory leaves its column empty.
#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "apps/bench_report.h"
#include "apps/bench_turns.h"
#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/device_time.h"
#include "apps/experiment.h"
#include "apps/made_up.h"
#include "apps/stats.h"
#include "engine/backend.h"
#include "ops/ops.h"

namespace tapedeck {
namespace {

constexpr int64_t warmup_rounds = 2;

struct Pass {
  const char* name;
  std::vector<double> ms = {};  // of each round
  size_t peak_bytes = 0;
  bool fits = true;  // into memory
};

struct Form {
  const char* name;
  Tensor (*attend)(const Tensor& qkv, int64_t heads, const AttentionMask& mask);
  std::array<Pass, 2> passes = {Pass{"forward"}, Pass{"forward and backward"}};
};

class AttentionBench {
 public:
  AttentionBench(const Config& config, int64_t context, bool causal)
      : context_(context),
        batch_(std::max<int64_t>(1, config.tokens / context)),
        heads_(config.heads),
        causal_(causal) {}

  // Takes the memory of its input, too, so that one which does not fit leaves the others theirs.
  void round(int64_t round, Turns& turns, const Config& config, Device device) {
    const std::string size = fmt::format("{} positions, {}", context_, mask());
    if (!fits_) return;
    turns.say(round, size);
    if (!qkv_) fits_ = turns.fit(size, [&] { make_input(config, device); });
    if (!fits_) return;
    for (Form& form : forms_)
      for (Pass& pass : form.passes)
        pass.fits = pass.fits && turns.fit(fmt::format("{}, {}, {}", size, form.name, pass.name),
                                           [&] { measure(form, pass, round < 0); });
  }

  // A row for each pass that a form had the memory for.
  std::vector<Json> rows() const {
    std::vector<Json> out;
    for (size_t i = 0; fits_ && i < 2; ++i)
      if (forms_[0].passes[i].fits || forms_[1].passes[i].fits) out.push_back(row(i));
    return out;
  }

 private:
  const char* mask() const { return causal_ ? "causal" : "full"; }

  void make_input(const Config& config, Device device) {
    const Shape shape = {batch_, context_, 3 * config.width};
    Tensor qkv = made_up("bench", shape, device, find_precision(config));
    qkv.require_gradient();
    qkv_ = qkv;
  }

  void measure(const Form& form, Pass& pass, bool warmup) {
    const bool backward = &pass == &form.passes[1];
    *qkv_.grad = {};
    Arena& arena = backend(qkv_.device()).arena();
    arena.reset_peak();
    const size_t before = arena.use().bytes;
    const auto work = [&] { backward ? forward_and_backward(form) : forward(form); };
    const double ms = time_work(qkv_.device(), 1, work).front().device * 1e3;
    pass.peak_bytes = arena.use().peak_bytes - before;
    if (!warmup) pass.ms.push_back(ms);
  }
  void forward(const Form& form) const {
    const NoTape inference;
    form.attend(qkv_, heads_, {causal_});
  }
  void forward_and_backward(const Form& form) const {
    *qkv_.grad = {};
    Tape tape;
    tape.backward(sum(form.attend(qkv_, heads_, {causal_})));
  }

  Json row(size_t i) const {
    Json out = bench_row(
        "attention", {{"context", context_}, {"batch", batch_}, {"mask", mask()}, {"pass", forms_[0].passes[i].name}});
    for (const Form& form : forms_) {
      const Pass& pass = form.passes[i];
      add_times(out[form.name], "median_ms", pass.fits ? pass.ms : std::vector<double>());
      out[form.name]["peak_bytes"] = pass.fits ? Json(pass.peak_bytes) : Json();
    }
    const Pass &fused = forms_[0].passes[i], &composed = forms_[1].passes[i];
    Json& ratio = out["fused_over_composed"];
    if (fused.fits && composed.fits) add_ratio(ratio, fused.ms, composed.ms);
    return out;
  }

  const int64_t context_, batch_, heads_;
  const bool causal_;
  bool fits_ = true;
  Tensor qkv_;
  std::array<Form, 2> forms_ = {Form{"fused", attention}, Form{"composed", composed_attention}};
};

std::string line(const Json& row) {
  const auto cell = [&](const char* form, const char* key, int width, int digits, double unit) {
    const Json& value = row[form][key];
    const std::string shown = value.is_null() ? "-" : fmt::format("{:.{}f}", value.get<double>() / unit, digits);
    return fmt::format("{:>{}}", shown, width);
  };
  std::string out =
      fmt::format("{:>6} {:>6} {:<7} {:<21} {} {} {} {}", row["context"].get<int64_t>(), row["batch"].get<int64_t>(),
                  row["mask"].get<std::string>(), row["pass"].get<std::string>(), cell("fused", "median_ms", 10, 3, 1),
                  cell("composed", "median_ms", 10, 3, 1), cell("fused", "peak_bytes", 9, 1, 1 << 20),
                  cell("composed", "peak_bytes", 9, 1, 1 << 20));
  const Json& ratio = row["fused_over_composed"];
  out += ratio.is_null() ? "" : "   " + ratio_text(ratio);
  return out + unstable_mark(row["fused"], row["composed"]) + "\n";
}

std::string header(const Config& config, Device device) {
  std::string out = fmt::format(
      "attention, {} heads of {} numbers, {} on {}, {} thread{}; n = {} rounds, {} warm-up rounds left out\n",
      config.heads, config.width / config.heads, config.precision, name(device), threads(), threads() == 1 ? "" : "s",
      config.rounds, warmup_rounds);
  const auto columns = [&](auto... words) {
    out += fmt::format("{:>6} {:>6} {:<7} {:<21} {:>10} {:>10} {:>9} {:>9}   {}\n", words...);
  };
  columns("", "", "", "", "fused", "composed", "fused", "composed", "");
  columns("T", "batch", "mask", "pass", "median ms", "median ms", "peak MiB", "peak MiB", "fused / composed");
  return out;
}

}  // namespace

int run_bench_attention(const Config& config) {
  if (config.width % config.heads != 0)
    throw UsageError(text("--width {} is no multiple of --heads {}: each head has width / heads numbers", config.width,
                          config.heads));
  const Device device = prepare_machine(config);
  say_what_is_slow(config);
  Json document = bench_document(config, load_before_bench(config), device);

  document["device"] = name(device);
  document["heads"] = config.heads;
  document["width"] = config.width;
  document["warmup_rounds"] = warmup_rounds;

  Turns turns(config);
  turns.print(header(config, device));
  std::vector<AttentionBench> benches;
  for (const int64_t context : config.contexts)
    for (const bool causal : {true, false})
      if (config.mask == "both" || causal == (config.mask == "causal")) benches.emplace_back(config, context, causal);
  document["rows"] = Json::array();
  for (int64_t round = -warmup_rounds; round < config.rounds; ++round)
    for (AttentionBench& bench : benches) {
      bench.round(round, turns, config, device);
      if (round + 1 < config.rounds) continue;
      for (const Json& row : bench.rows()) {
        document["rows"].push_back(row);
        turns.print(line(row));
      }
    }
  turns.add_dropped(document);
  print_bench(config, document, "");
  turns.check();
  return exit_done;
}

}  // namespace tapedeck
