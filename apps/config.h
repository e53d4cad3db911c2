// What one run of tapedeck is asked to do: every option, typed. Where a value comes from, the weaker first:
//   default < --config FILE < environment (OMP_NUM_THREADS) < flag
// and the origin of each value is kept, so that a run folder can say what was chosen and what was left alone.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck {

using Json = nlohmann::ordered_json;      // keeps the order of keys, so that files read as they were written
inline constexpr int kFormatVersion = 1;  // of every JSON file that we write; a newer one is refused

struct Target {  // "accuracy": reached at or above value; "loss": reached at or below it
  std::string metric;
  double value = 0;
  bool operator==(const Target&) const = default;
};
std::string to_text(const Target& target);  // "accuracy=0.97"

struct Recompute {  // what backward computes again instead of keeping it
  enum class Kind : uint8_t { none, blocks, every, budget };
  Kind kind = Kind::none;
  int64_t amount = 0;             // every: blocks or hidden layers; budget: bytes
  std::vector<size_t> plan = {};  // how the budget is met, once that is known (recompute_plan.h)
  bool operator==(const Recompute&) const = default;
};
std::string to_text(const Recompute& recompute);  // "blocks", "every=2", "budget=1048576"

enum class Origin { fallback, file, environment, flag };  // in order of precedence
const char* name(Origin origin);                          // "default", "file", "environment", "flag"

struct Config {
  std::string command;  // "train", "data info", …

  // Model
  std::string model = "mlp";                  // or gpt, which sequences have by default
  std::vector<int64_t> hidden = {128, 128};   // widths; bench step: 512,512
  std::string activation = "relu";            // relu, gelu, gelu_erf, silu, tanh, sigmoid
  int64_t layers = 2, heads = 4, width = 64;  // of gpt
  bool untied = false;                        // gpt: the head has weights of its own
  std::string attention = "fused";            // gpt; or composed
  double dropout = 0;
  std::string loss = "cross_entropy";  // or mse

  // Data
  std::string data = "digits";             // a kind of data/catalog.cpp, with :FILE where it takes one
  std::string data_dir;                    // empty: none given
  int64_t context = 64;                    // text: tokens of an example
  bool bytes = false;                      // text: tokens are bytes, not characters
  std::string label;                       // csv: the column of the answer; npy, idx: the file of answers
  std::optional<double> validation, test;  // shares held back; null where the data has a split of its own
  std::optional<int64_t> workers;          // threads that load ahead; null: chosen by where the data lies
  int64_t prefetch = 2;                    // batches that each of them may be ahead

  // How long
  int64_t batch = 32;                           // examples one forward sees; mnist: 128
  int64_t accumulate = 1;                       // forwards a step
  bool drop_last = false;                       // an epoch's last step is left out where it would be short
  std::optional<int64_t> epochs, steps;         // caps, whichever comes first; train has at least one of them
  std::optional<Target> target;                 // null: train to the cap
  std::optional<int64_t> eval_every, patience;  // steps; evaluations without improvement
  int64_t log_every = 100;                      // steps

  // Optimizer
  std::string optimizer = "adam";  // sgd, momentum, adam, adamw, lars, lamb
  double lr = 1e-3;
  std::optional<double> momentum;   // set for --optimizer momentum and lars only
  double weight_decay = 0;          // adamw, lamb: 0.01; lars: 1e-4
  std::string schedule = "cosine";  // constant, linear, cosine; constant when there is a target
  int64_t warmup = 0;               // steps
  std::optional<double> clip;       // largest gradient norm

  // Machine
  std::string precision = "fp32";      // fp32, fp16, bf16, fp64; gradcheck: fp64
  std::string loss_scale = "dynamic";  // of fp16; or a number
  double loss_scale_floor = 1e-4;
  bool log_underflow = false;
  bool noise_scale = false;
  std::string device = "auto";          // auto, cpu, cuda, cuda:1, emulated
  std::string graph = "auto";           // auto, on, off
  Recompute recompute;                  // train, gradcheck, graph, bench step
  bool tf32 = false;                    // cuda: f32 products may round their inputs to TF32
  int64_t threads = 1;                  // all allowed cores unless told
  std::optional<int64_t> memory_limit;  // bytes

  // The run and its output
  int64_t seed = 1;
  int64_t repeat = 1;                       // seeds seed, seed + 1, …
  std::string out;                          // empty: runs/MODEL-DATA-NNN
  std::string note;                         // free text, kept in config.json
  std::string resume;                       // the run folder to go on with
  std::optional<int64_t> checkpoint_every;  // steps; null: once a minute
  bool force = false, json = false, quiet = false, dry_run = false;
  std::string config_file;

  // Of single commands
  std::string preset;                    // compare, sweep
  std::string side_a, side_b;            // compare
  int64_t seeds = 5;                     // compare, sweep
  std::vector<Target> targets;           // sweep; empty: at the knee of the pilot
  std::vector<double> rates;             // sweep; empty: found by itself
  std::optional<double> budget;          // sweep: seconds
  int64_t parallel = 1;                  // sweep: cells side by side
  std::string part;                      // sweep: "I/N", empty: all
  std::string again = "on";              // sweep: on, off
  bool plan = false, horizon = false;    // sweep
  std::string file;                      // fit: the runs
  std::string run;                       // evaluate, export: the run folder, or a weights file in it
  std::string predictions;               // evaluate: file to write, empty: none
  std::string split = "test";            // evaluate: train, validation, test, all
  std::string prompt;                    // generate, inspect
  std::optional<int64_t> length, top_k;  // generate: tokens to make, and to choose among
  std::optional<double> temperature;     // generate
  std::string window = "skip=0,wait=1,warmup=1,active=3,repeat=1";  // profile; see profile_window.h
  std::string sort = "self";                                        // profile
  int64_t top = 30;                                                 // profile: rows of a table
  std::string trace, memory_picture, roofline;                      // profile: files to write, empty: none
  std::string svg;                                                  // inspect: file to write, empty: none
  bool dot = false;                                                 // graph
  std::optional<int64_t> order;                                     // data info: epoch
  std::vector<int64_t> batches = {32, 128, 512, 2048};              // bench step, sweep
  std::vector<int64_t> contexts = {64, 128, 256, 512, 1024, 2048};  // bench attention: positions of an example
  int64_t tokens = 2048;                                            // bench attention: of a batch
  std::vector<int64_t> sizes = {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192};  // bench matmul; fusion, transfer
  std::string mask = "causal";                                                   // bench attention: causal, full, both
  int64_t rounds = 5;                                                            // bench; launch: 100
  std::string save;                                                              // bench: file to write, empty: none
  std::string to;                                                                // data convert, export: file to write
  std::string format = "npz";                                                    // export
  std::vector<std::string> paths;                                                // report: folders and documents
  std::string csv;                                                               // report: file to write, empty: none
  bool markdown = false;                                                         // report
  std::string mirror;  // data fetch: a folder of the web, or file://

  std::map<std::string, Origin, std::less<>> origins;  // by option name; what is missing is a default
  Origin origin(std::string_view option) const;
};

struct Setting {  // one flag as it stood on the command line: "lr", "1e-3"
  std::string option, value;
};

// The configuration of a command: flags over environment over --config file over defaults, checked as a whole.
// Throws UsageError with one sentence: unknown or repeated option, value, range, or two that exclude each other.
Config configure(std::string_view command, const std::vector<Setting>& flags, const char* omp_num_threads = nullptr);

struct ScalerRule;
ScalerRule scaler_rule(const Config& config);  // of --precision and --loss-scale; throws UsageError for no scale

// The configuration that a run folder was made with, all of its values from its config.json. Throws UsageError where
// the folder holds none, or one that read_config_file (config_file.h) refuses.
Config run_config(const std::filesystem::path& folder);

Json to_json(const Config& config);  // {"format_version": 1, "command": …, "lr": {"value": …, "origin": …}, …}
std::string describe(const Config& config);  // the same as lines of text, for --dry-run

}  // namespace tapedeck
