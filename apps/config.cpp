#include "apps/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "apps/config_file.h"
#include "apps/options.h"
#include "data/catalog.h"
#include "engine/check.h"
#include "engine/device.h"
#include "ops/loss_scaler.h"

namespace tapedeck {
namespace {

bool is_default(const Config& config, std::string_view option) { return config.origin(option) == Origin::fallback; }

// What kind of data the command is about; null for `data info FILE`, which finds out what the file is.
const DataKind* data_kind(const Config& c) {
  return c.command == "data info" && is_bare_file(c.data) ? nullptr : parse_data(c.data).kind;
}

bool has_momentum(const Config& c) { return c.optimizer == "momentum" || c.optimizer == "lars"; }

double decay_of(std::string_view optimizer) {
  if (optimizer == "adamw" || optimizer == "lamb") return 0.01;
  return optimizer == "lars" ? 1e-4 : 0;
}

// A first passage is judged with a rate that does not know the end.
void fill_sweep_defaults(Config& c) {
  if (c.preset.empty()) c.preset = "quick";
  const bool publication = c.preset == "publication", quick = c.preset == "quick";
  // Small data is the noisiest, and cheap: quick has more seeds than standard.
  if (is_default(c, "seeds")) c.seeds = publication ? 20 : quick ? 10 : 7;
  if (is_default(c, "batches")) {
    c.batches.clear();
    for (int64_t batch = publication ? 1 : quick ? 8 : 16; batch <= (quick ? 1024 : 8192); batch *= 2)
      c.batches.push_back(batch);
  }
  if (!c.steps && !c.epochs) c.model == "gpt" ? c.steps = 2000 : c.epochs = 20;
  if (is_default(c, "schedule")) c.schedule = c.horizon ? "cosine" : "constant";
}

// Defaults that depend on other options.
void fill_defaults(Config& c) {
  const bool is_train = c.command == "train" || c.command == "profile";
  const auto unless_set = [&](const char* option, auto& member, auto value) {
    if (is_default(c, option)) member = value;
  };
  if (c.command == "bench batch") {
    unless_set("hidden", c.hidden, std::vector<int64_t>{128, 128});
    unless_set("batches", c.batches, std::vector<int64_t>{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096});
  }
  if (c.command.starts_with("bench") && c.command != "bench batch")
    unless_set("hidden", c.hidden, std::vector<int64_t>{512, 512});
  if (c.command == "bench attention") {
    unless_set("heads", c.heads, 6);
    unless_set("width", c.width, 384);
  }
  if (c.command == "bench recompute") {
    c.data = "task:copy:length=64,symbols=26";
    unless_set("layers", c.layers, 12);
    unless_set("width", c.width, 128);
  }
  if (c.command == "bench launch") unless_set("rounds", c.rounds, 100);
  const bool emulated = c.device == "emulated";  // takes a lane at a time
  const auto sizes = [&](const char* command, std::vector<int64_t> usual, std::vector<int64_t> small) {
    if (c.command == command) unless_set("sizes", c.sizes, emulated ? small : usual);
  };
  sizes("bench matmul", c.sizes, {32, 64, 128});
  sizes("bench fusion", {64, 16384}, {64});
  sizes("bench transfer", {64, 1024, 16384, 262144}, {64});
  for (std::vector<int64_t>* list : {&c.batches, &c.contexts, &c.sizes}) {  // a size measured twice is one row too many
    std::vector<int64_t> once;
    for (const int64_t size : *list)
      if (std::find(once.begin(), once.end(), size) == once.end()) once.push_back(size);
    *list = once;
  }
  if (c.command == "bench threads") unless_set("batches", c.batches, std::vector<int64_t>{128});
  if (c.command == "gradcheck") unless_set("precision", c.precision, "fp64");
  const DataKind* const kind = data_kind(c);
  if (kind && kind->sequences) unless_set("model", c.model, std::string("gpt"));
  const bool gpt = c.model == "gpt";
  if (gpt) unless_set("optimizer", c.optimizer, std::string("adamw"));
  if (gpt) unless_set("warmup", c.warmup, 100);
  const bool large = c.data == "mnist" || c.command == "bench loader";
  const bool text = kind && kind->name == "text";
  unless_set("batch", c.batch,
             c.command == "gradcheck" || c.command == "bench recompute" ? 8
             : large                                                    ? 128
             : text                                                     ? 12
                                                                        : 32);
  unless_set("threads", c.threads, allowed_cores());
  unless_set("weight-decay", c.weight_decay, decay_of(c.optimizer));
  if (has_momentum(c) && !c.momentum) c.momentum = 0.9;
  if (kind && !kind->fixed_split) {
    if (!c.validation) c.validation = 0.1;
    if (!c.test && !kind->by_place) c.test = 0.1;
  }
  if (c.command == "sweep") fill_sweep_defaults(c);
  if (!is_train) return;
  const bool nothing_asked = is_default(c, "data") && is_default(c, "epochs") && is_default(c, "steps");
  if (nothing_asked && c.loss == "cross_entropy") unless_set("target", c.target, Target{"accuracy", 0.97});
  if (!c.steps && !c.epochs) gpt ? c.steps = 2000 : c.epochs = 20;
  if (gpt && !c.target && !c.eval_every) c.eval_every = 250;
  unless_set("schedule", c.schedule, c.target ? "constant" : "cosine");
}

// An option that its companion's value rules out. It is dropped when only the companion was changed (a flag over a
// --config file), and refused when it was asked for at least as strongly.
void exclude(Config& c, const char* option, std::optional<double>& member, const char* companion, const char* reason) {
  if (!member) return;
  if (c.origin(option) >= c.origin(companion)) throw UsageError(fmt::format("--{} {}: {}", option, *member, reason));
  member.reset();
}

// Options of one kind of model beside the other's name.
void check_model_options(const Config& c) {
  const auto refuse = [&](const char* other, std::initializer_list<const char*> options) {
    for (const char* option : options)
      if (c.origin(option) == Origin::flag)  // a run's config.json holds them all
        throw UsageError(fmt::format("--{}: --model {} has none, it is {}'s; leave it out, or use --model {}", option,
                                     c.model, other, other));
  };
  if (c.model == "gpt") refuse("mlp", {"hidden", "activation"});
  if (c.model == "mlp" && c.command != "bench attention")
    refuse("gpt", {"layers", "heads", "width", "untied", "attention"});
  if (c.model == "gpt" && c.width % c.heads != 0)
    throw UsageError(
        fmt::format("--width {} --heads {}: heads share the width, so it must be a multiple of them; try "
                    "--width {}",
                    c.width, c.heads, (c.width / c.heads + 1) * c.heads));
}

void check_precision(const Config& c) {
  const bool half = c.precision == "fp16" || c.precision == "bf16";
  if (half && c.command == "gradcheck")
    throw UsageError(fmt::format(
        "--precision {}: the gradients of 16-bit numbers are too coarse to check by differences; use fp32 or "
        "fp64, and `tapedeck compare` for what 16 bits change",
        c.precision));
  for (const char* option : {"loss-scale", "loss-scale-floor"})
    if (c.precision != "fp16" && c.origin(option) == Origin::flag)
      throw UsageError(
          fmt::format("--{}: belongs to --precision fp16, whose small gradients would be 0 without a scale; {} has the "
                      "range that it "
                      "needs; leave it out",
                      option, c.precision));
  scaler_rule(c);  // throws where the scale is none
}

void check_together(Config& c) {
  check_model_options(c);
  check_precision(c);
  constexpr int64_t most_steps = 1'000'000;  // each has its time kept
  if (c.command.starts_with("bench") && c.steps > most_steps)
    throw UsageError(
        fmt::format("--steps {}: a bench keeps the time of each; use {} or fewer a round, and more --rounds", *c.steps,
                    most_steps));
  if (c.command.starts_with("bench") && c.recompute.kind == Recompute::Kind::budget)
    throw UsageError(fmt::format("--recompute {}: {} measures several batches: use none, blocks or every=K",
                                 to_text(c.recompute), c.command));
  if (!has_momentum(c))
    exclude(
        c, "momentum", c.momentum, "optimizer",
        fmt::format("--optimizer {} has none; use --optimizer momentum or lars, or leave it out", c.optimizer).c_str());
  const DataKind* kind = data_kind(c);
  for (const char* option : {"context", "bytes"})
    if (kind && kind->name != "text" && c.origin(option) >= Origin::flag)
      throw UsageError(fmt::format(
          "--{}: belongs to text, and {} has sequences of its own length or none; leave it out", option, c.data));
  const bool data_known = kind && (c.command != "evaluate" || c.origin("data") == Origin::flag);  // or it is the run's
  if (data_known && !kind->needs_folder && c.command != "data fetch" && c.origin("data-dir") == Origin::flag)
    throw UsageError(fmt::format("--data-dir {}: {} needs no folder of files; leave it out", c.data_dir, c.data));
  const char* const data_option = find_option("name", command_bit(c.command)) ? "name" : "data";
  if (kind && kind->fixed_split)
    for (auto [option, member] : {std::pair{"validation", &c.validation}, std::pair{"test", &c.test}})
      exclude(c, option, *member, data_option, fmt::format("{} has a fixed split; leave it out", c.data).c_str());
  if (c.log_underflow && c.repeat > 1)
    throw UsageError(fmt::format(
        "--log-underflow --repeat {}: it reports on the one model that a run ends with; leave one of them out",
        c.repeat));
  if (c.validation.value_or(0) + c.test.value_or(0) >= 1)
    throw UsageError(fmt::format("--validation {} and --test {} leave nothing to train on; make their sum less than 1",
                                 *c.validation, *c.test));
  if (c.target && c.target->metric == "accuracy" && c.loss == "mse")
    throw UsageError(fmt::format("--target {}: --loss mse has no accuracy; use loss=NUMBER", to_text(*c.target)));
  const bool reads_data =
      command_bit(c.command) & (kTrain | kSweep | kProfile | kDataInfo | kDataConvert | kGradcheck | kGraph);
  if (reads_data && c.resume.empty() && kind && kind->needs_folder && c.data_dir.empty())
    throw UsageError(fmt::format("{}{} needs --data-dir, the folder of its files",
                                 std::string_view(data_option) == "data" ? "--data " : "", c.data));
  if ((command_bit(c.command) & (kDataConvert | kExport)) && c.to.empty())
    throw UsageError("needs --to FILE, the file to write");
}

void apply_flags(Config& config, const std::vector<Setting>& flags, unsigned command) {
  for (const auto& [name, value] : flags) {
    const Option* option = find_option(name, command);
    if (!option)
      throw UsageError(fmt::format("unknown option --{}; the nearest is --{}", name, nearest_option(name, command)));
    const bool positional = option->is_positional();
    if (config.origin(option->name) == Origin::flag && option->form != Option::Form::list)
      throw UsageError(fmt::format("--{} is given twice, the second time with \"{}\"; give it once", name, value));
    set_value(config, *option, value, (positional ? "" : "--") + std::string(option->name));
    config.origins[option->name] = Origin::flag;
  }
}

void refuse_beside_resume(const Config& flags) {
  for (const char* option : {"config", "out", "dry-run"})
    if (flags.origin(option) == Origin::flag)
      throw UsageError(
          fmt::format("--{} and --resume {} exclude each other: a resumed run stays in its folder and keeps "
                      "its options",
                      option, flags.resume));
}

}  // namespace

ScalerRule scaler_rule(const Config& c) {
  if (c.precision != "fp16") return {};
  if (c.loss_scale == "dynamic") return {.kind = ScalerRule::Kind::dynamic, .floor = c.loss_scale_floor};
  double scale = 0;
  const char* const end = c.loss_scale.data() + c.loss_scale.size();
  const auto [last, error] = std::from_chars(c.loss_scale.data(), end, scale);
  // In f32, where the scale is kept: neither 0 nor subnormal, and with room to divide by.
  if (error != std::errc() || last != end || !(scale >= 0x1p-126 && scale <= 0x1p120))
    throw UsageError(fmt::format(
        "--loss-scale got \"{}\", needs dynamic, or a number from 1.2e-38 to 1.3e36 such as 1024", c.loss_scale));
  return {.kind = ScalerRule::Kind::fixed, .initial = scale};
}

std::string to_text(const Target& target) { return fmt::format("{}={}", target.metric, target.value); }

std::string to_text(const Recompute& recompute) {
  switch (recompute.kind) {
    case Recompute::Kind::none: return "none";
    case Recompute::Kind::blocks: return "blocks";
    case Recompute::Kind::every: return fmt::format("every={}", recompute.amount);
    case Recompute::Kind::budget: return fmt::format("budget={}", recompute.amount);
  }
  return "";
}

const char* name(Origin origin) {
  constexpr const char* kNames[] = {"default", "file", "environment", "flag"};
  return kNames[static_cast<int>(origin)];
}

Origin Config::origin(std::string_view option) const {
  const auto found = origins.find(option);
  return found == origins.end() ? Origin::fallback : found->second;
}

Config configure(std::string_view command, const std::vector<Setting>& flags, const char* omp_num_threads) {
  const unsigned bit = command_bit(command);
  Config from_flags;
  apply_flags(from_flags, flags, bit);  // first, so that a wrong flag is found whatever the file holds

  Config config;
  config.command = command;
  const bool resumes = !from_flags.resume.empty();  // then the run's folder says everything that no flag says
  if (resumes) refuse_beside_resume(from_flags);
  if (resumes) config = run_config(from_flags.resume), config.json = config.quiet = false;
  if (!from_flags.config_file.empty()) read_config_file(config, from_flags.config_file);
  if (omp_num_threads && *omp_num_threads && !resumes)
    if (const Option* threads = find_option("threads", bit)) {
      const std::string_view list = omp_num_threads;  // "4,2": one number a nesting level; we have one
      set_value(config, *threads, list.substr(0, list.find(',')), "OMP_NUM_THREADS");
      config.origins["threads"] = Origin::environment;
    }
  apply_flags(config, flags, bit);
  if (resumes) {  // a new length takes the place of the old one, whichever way it was said
    if (config.origin("steps") == Origin::flag && config.origin("epochs") != Origin::flag) config.epochs.reset();
    if (config.origin("epochs") == Origin::flag && config.origin("steps") != Origin::flag) config.steps.reset();
  }
  fill_defaults(config);
  check_together(config);
  if (resumes) config.out = config.resume;
  return config;
}

Json to_json(const Config& config) {
  Json out = {{"format_version", kFormatVersion}, {"command", config.command}};
  for (const Option& option : all_options())
    if (option.commands & command_bit(config.command))
      out[option.name] = {{"value", value_json(config, option)}, {"origin", name(config.origin(option.name))}};
  return out;
}

std::string describe(const Config& config) {
  std::string out;
  for (const Option& option : all_options())
    if (option.commands & command_bit(config.command)) {
      const std::string value = value_text(config, option);
      out += fmt::format("  {:<14} {:<20} {}\n", option.name, value.empty() ? "none" : value,
                         name(config.origin(option.name)));
    }
  return out;
}

}  // namespace tapedeck
