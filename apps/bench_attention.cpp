// tapedeck bench attention: the fused form against the composed one, by the number of positions T. Each batch has about
// --tokens positions in all, causal, so that T alone changes what there is to do. The two forms take turns in each
// round, forward and then forward with backward, and the ratio is that of the rounds in pairs. Memory is the arena's
// high-water mark over what the input takes.
#include <fmt/format.h>

#include <array>
#include <memory>

#include "apps/bench_report.h"
#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/device_time.h"
#include "apps/experiment.h"
#include "apps/stats.h"
#include "engine/backend.h"
#include "engine/random.h"
#include "ops/ops.h"

namespace tapedeck {
namespace {

constexpr int64_t warmup_rounds = 2;

struct Form {
  const char* name;
  Tensor (*attend)(const Tensor& qkv, int64_t heads, const AttentionMask& mask);
  std::vector<double> forward = {}, both = {};  // milliseconds of each round
  size_t forward_bytes = 0, both_bytes = 0;
};

class AttentionBench {
 public:
  AttentionBench(const Config& config, int64_t context, Device device, DType dtype)
      : context_(context), batch_(std::max<int64_t>(1, config.tokens / context)), heads_(config.heads) {
    const Shape shape = {batch_, context, 3 * config.width};
    std::vector<float> numbers;
    for (int64_t i = 0; i < shape.count(); ++i)
      numbers.push_back(2 * uniform01(random_bits(1, 0, site_of("bench"), static_cast<uint64_t>(i)).word[0]) - 1);
    qkv_ = cast(Tensor::from(numbers, shape, device), dtype);
    qkv_.require_gradient();
  }

  void round(bool warmup) {
    for (Form& form : forms_) {
      measure([&] { forward(form); }, form.forward, form.forward_bytes, warmup);
      measure([&] { forward_and_backward(form); }, form.both, form.both_bytes, warmup);
    }
  }

  void add_rows(Json& rows) const {
    rows.push_back(row("forward", &Form::forward, &Form::forward_bytes));
    rows.push_back(row("forward and backward", &Form::both, &Form::both_bytes));
  }

 private:
  void forward(const Form& form) const {
    const NoTape inference;
    form.attend(qkv_, heads_, {});
  }
  void forward_and_backward(const Form& form) {
    *qkv_.grad = {};
    Tape tape;
    tape.backward(sum(form.attend(qkv_, heads_, {})));
  }

  template <class F>
  void measure(const F& work, std::vector<double>& times, size_t& bytes, bool warmup) {
    *qkv_.grad = {};
    Arena& arena = backend(qkv_.device()).arena();
    arena.reset_peak();
    const size_t before = arena.use().bytes;
    const double ms = time_work(qkv_.device(), 1, work).front().device * 1e3;
    bytes = arena.use().peak_bytes - before;
    if (!warmup) times.push_back(ms);
  }

  Json row(const char* pass, std::vector<double> Form::*times, size_t Form::*bytes) const {
    Json out = {{"name", "attention"}, {"context", context_}, {"batch", batch_}, {"pass", pass}};
    for (const Form& form : forms_) {
      add_times(out[form.name], "median_ms", form.*times);
      out[form.name]["peak_bytes"] = form.*bytes;
    }
    add_ratio(out["fused_over_composed"], forms_[0].*times, forms_[1].*times);
    return out;
  }

  const int64_t context_, batch_, heads_;
  Tensor qkv_;
  std::array<Form, 2> forms_ = {Form{"fused", attention}, Form{"composed", composed_attention}};
};

std::string line(const Json& row) {
  const Json& ratio = row["fused_over_composed"];
  const auto mib = [&](const char* form) { return row[form]["peak_bytes"].get<double>() / (1 << 20); };
  std::string out = fmt::format(
      "{:>6} {:>6}  {:<21} {:>10.3f} {:>10.3f} {:>9.1f} {:>9.1f}   {:.3f}", row["context"].get<int64_t>(),
      row["batch"].get<int64_t>(), row["pass"].get<std::string>(), row["fused"]["median_ms"].get<double>(),
      row["composed"]["median_ms"].get<double>(), mib("fused"), mib("composed"), ratio["ratio"].get<double>());
  if (!ratio["ratio_low"].is_null())
    out += fmt::format(" [{:.3f}, {:.3f}]", ratio["ratio_low"].get<double>(), ratio["ratio_high"].get<double>());
  return out + "\n";
}

std::string table(const Json& document, const Config& config, Device device) {
  const Json& rows = document["rows"];
  std::string out = fmt::format(
      "causal attention, {} heads of {} numbers, {} on {}, {} thread{}; n = {} rounds, {} warm-up rounds left out\n",
      config.heads, config.width / config.heads, config.precision, name(device), threads(), threads() == 1 ? "" : "s",
      config.rounds, warmup_rounds);
  out += fmt::format("{:>6} {:>6}  {:<21} {:>10} {:>10} {:>9} {:>9}   {}\n", "", "", "", "fused", "composed", "fused",
                     "composed", "");
  out += fmt::format("{:>6} {:>6}  {:<21} {:>10} {:>10} {:>9} {:>9}   {}\n", "T", "batch", "pass", "median ms",
                     "median ms", "peak MiB", "peak MiB", "fused / composed");
  for (const Json& row : rows) out += line(row);
  return out;
}

}  // namespace

int run_bench_attention(const Config& config) {
  if (config.width % config.heads != 0)
    throw UsageError(text("--width {} is no multiple of --heads {}: each head has width / heads numbers", config.width,
                          config.heads));
  const Device device = prepare_machine(config);
  say_why_on_cpu(config);
  Json document = bench_document(load_before_bench(config), device);

  std::vector<std::unique_ptr<AttentionBench>> benches;
  for (const int64_t context : config.contexts)
    benches.push_back(std::make_unique<AttentionBench>(config, context, device, find_precision(config)));
  for (int64_t round = -warmup_rounds; round < config.rounds; ++round)
    for (const auto& bench : benches) bench->round(round < 0);

  document["device"] = name(device);
  document["heads"] = config.heads;
  document["width"] = config.width;
  document["warmup_rounds"] = warmup_rounds;
  document["rows"] = Json::array();
  for (const auto& bench : benches) bench->add_rows(document["rows"]);
  print_bench(config, document, table(document, config, device));
  return exit_done;
}

}  // namespace tapedeck
