#include "apps/options.h"

namespace tapedeck {
namespace {

constexpr unsigned kModel = kTrain | kGradcheck | kGraph | kBenchStep | kBenchLoader;  // build a model from options
constexpr unsigned kComputes = kModel | kEvaluate | kBenchLaunch;                      // use a device
constexpr unsigned kBench = kBenchStep | kBenchLoader;
constexpr unsigned kReadsData = (kModel & ~kBench) | kEvaluate | kDataInfo | kDataConvert;

constexpr double kLargest = 2147483647;  // of a size or a count within a step
constexpr double kMost = 1e15;           // of steps, seeds and bytes: whole numbers below it are exact in a double

// A table reads best with few lines a row:
// clang-format off
using C = Config;
using Resume = Option::OnResume;
const Option kOptions[] = {
    {.name = "run", .member = &C::run, .commands = kEvaluate | kExport,
     .help = "the run folder, or a file of weights in one", .form = Option::Form::positional},
    {.name = "name", .member = &C::data, .commands = kDataInfo | kDataConvert | kDataFetch,
     .help = "the data set, such as mnist or csv:FILE", .form = Option::Form::positional},
    {.name = "config", .member = &C::config_file, .commands = kModel,
     .help = "JSON file of options; a run's config.json is one", .fallback = "none", .of_one_run = true},

    // Model
    {.name = "model", .member = &C::model, .commands = kModel,
     .help = "kind of model", .choices = "mlp", .synonyms = "arch architecture network"},
    {.name = "hidden", .member = &C::hidden, .commands = kModel,
     .help = "widths of the hidden layers", .range = {1, kLargest},
     .synonyms = "hidden-size hidden-sizes layers units"},
    {.name = "activation", .member = &C::activation, .commands = kModel,
     .help = "after each hidden layer", .choices = "relu|gelu|gelu_erf|silu|tanh|sigmoid",
     .synonyms = "nonlinearity act"},
    {.name = "dropout", .member = &C::dropout, .commands = kModel,
     .help = "share of activations dropped in training", .range = {.low = 0, .high = 1, .high_open = true},
     .synonyms = "drop-rate"},
    {.name = "loss", .member = &C::loss, .commands = kModel | kDataInfo | kDataConvert,
     .help = "cross_entropy for classes, mse for a number", .choices = "cross_entropy|mse",
     .synonyms = "criterion objective"},

    // Data
    {.name = "data", .member = &C::data, .commands = (kModel & ~kBench) | kEvaluate,
     .help = "data set, such as mnist or csv:FILE (`tapedeck data list` names all)",
     .fallback = "digits; evaluate: the run's", .synonyms = "dataset"},
    {.name = "data-dir", .member = &C::data_dir, .commands = kReadsData | kDataFetch,
     .help = "folder of the data files (mnist: IDX, plain or gzip)", .fallback = "none", .synonyms = "data-path",
     .resume = Resume::free},
    {.name = "label", .member = &C::label, .commands = kReadsData,
     .help = "csv: the answer's column, by name or number from 1; npy, idx: the file of answers",
     .fallback = "the last column", .synonyms = "label-column target-column class"},
    {.name = "workers", .member = &C::workers, .commands = kTrain,
     .help = "threads that load batches ahead; 0: the training loop loads", .range = {0, 256},
     .fallback = "1 for data in a shard, 0 for data in memory", .synonyms = "num-workers loaders",
     .resume = Resume::free},
    {.name = "prefetch", .member = &C::prefetch, .commands = kTrain | kBenchLoader,
     .help = "batches that each worker may be ahead", .range = {1, 1024}, .synonyms = "prefetch-factor",
     .resume = Resume::free},
    {.name = "validation", .member = &C::validation, .commands = kTrain | kDataInfo | kDataConvert,
     .help = "share held back for validation",
     .range = {.low = 0, .high = 1, .low_open = true, .high_open = true},
     .fallback = "0.1; digits, mnist and shards have a split"},
    {.name = "test", .member = &C::test, .commands = kTrain | kDataInfo | kDataConvert,
     .help = "share held back for the test", .range = {.low = 0, .high = 1, .low_open = true, .high_open = true},
     .fallback = "0.1; digits, mnist and shards have a split"},

    // How long
    {.name = "batch", .member = &C::batch, .commands = kTrain | kGradcheck | kGraph | kBenchLoader,
     .help = "examples in one forward", .range = {1, kLargest}, .fallback = "32; mnist 128; gradcheck 8",
     .synonyms = "batch-size minibatch"},
    {.name = "accumulate", .member = &C::accumulate, .commands = kTrain,
     .help = "forwards whose gradients make one step", .range = {1, kLargest}, .synonyms = "gradient-accumulation"},
    {.name = "epochs", .member = &C::epochs, .commands = kTrain,
     .help = "stop after so many passes over the data", .range = {1, kLargest},
     .fallback = "20; no cap when --steps is given", .synonyms = "num-epochs max-epochs",
     .resume = Resume::length},
    {.name = "steps", .member = &C::steps, .commands = kTrain | kBench,
     .help = "stop after so many steps (bench: timed steps a round)", .range = {1, kMost},
     .fallback = "none; bench: chosen by batch", .synonyms = "max-steps num-steps iterations",
     .resume = Resume::length},
    {.name = "target", .member = &C::target, .commands = kTrain,
     .help = "stop once validation reaches it and the next evaluation confirms",
     .fallback = "accuracy=0.97 when none of --data, --epochs, --steps is given; else none", .synonyms = "goal",
     .resume = Resume::length},
    {.name = "eval-every", .member = &C::eval_every, .commands = kTrain,
     .help = "steps between evaluations", .range = {1, kMost},
     .fallback = "with a target the steps 1.05^k; else every epoch", .synonyms = "eval-interval evaluate-every",
     .resume = Resume::length},
    {.name = "patience", .member = &C::patience, .commands = kTrain,
     .help = "stop after so many evaluations without improvement", .range = {1, kLargest}, .fallback = "none",
     .synonyms = "early-stopping", .resume = Resume::length},
    {.name = "log-every", .member = &C::log_every, .commands = kTrain,
     .help = "steps between lines of the log", .range = {1, kMost}, .synonyms = "log-interval",
     .resume = Resume::free},

    // Optimizer
    {.name = "optimizer", .member = &C::optimizer, .commands = kTrain | kBench,
     .help = "update rule", .choices = "sgd|momentum|adam|adamw", .synonyms = "optim"},
    {.name = "lr", .member = &C::lr, .commands = kTrain,
     .help = "learning rate", .range = {.low = 0, .low_open = true}, .synonyms = "learning-rate rate step-size"},
    {.name = "momentum", .member = &C::momentum, .commands = kTrain,
     .help = "decay of the velocity (momentum only)", .range = {.low = 0, .high = 1, .high_open = true},
     .fallback = "0.9"},
    {.name = "weight-decay", .member = &C::weight_decay, .commands = kTrain,
     .help = "adamw: decoupled; others: added to the gradient", .range = {.low = 0}, .fallback = "0; adamw 0.01",
     .synonyms = "decay l2 wd"},
    {.name = "schedule", .member = &C::schedule, .commands = kTrain,
     .help = "of the rate, down to a tenth of it", .choices = "constant|linear|cosine",
     .fallback = "cosine; constant with a target", .synonyms = "lr-schedule scheduler"},
    {.name = "warmup", .member = &C::warmup, .commands = kTrain,
     .help = "steps over which the rate rises", .range = {0, kMost}, .synonyms = "warmup-steps warm-up"},
    {.name = "clip", .member = &C::clip, .commands = kTrain,
     .help = "largest norm of the gradient", .range = {.low = 0, .low_open = true}, .fallback = "none",
     .synonyms = "clip-norm grad-clip max-grad-norm"},

    // Machine
    {.name = "precision", .member = &C::precision, .commands = kModel,
     .help = "of weights and arithmetic", .choices = "fp32|fp64", .fallback = "fp32; gradcheck fp64",
     .synonyms = "dtype"},
    {.name = "device", .member = &C::device, .commands = kComputes,
     .help = "where to compute: auto, cpu, cuda (cuda:1: the second GPU) or emulated", .synonyms = "backend gpu"},
    {.name = "graph", .member = &C::graph, .commands = kTrain | kBenchStep,
     .help = "capture a step once and replay it; auto: on a GPU; bench step: both ways in turn", .choices = "auto|on|off",
     .synonyms = "cuda-graph capture", .resume = Resume::free},
    {.name = "tf32", .member = &C::tf32, .commands = kComputes,
     .help = "let fp32 products on a GPU round their inputs to 10 bits, for speed", .synonyms = "allow-tf32"},
    {.name = "threads", .member = &C::threads, .commands = kComputes | kInfo,
     .help = "threads that loops and products use", .range = {1, 1024},
     .fallback = "OMP_NUM_THREADS, else every allowed core; bench loader: one less",
     .synonyms = "num-threads jobs cores",
     .resume = Resume::free},
    {.name = "memory-limit", .member = &C::memory_limit, .commands = kComputes,
     .help = "most memory for tensors, as 512MiB or 2GB", .range = {1, kMost}, .fallback = "none",
     .synonyms = "max-memory", .form = Option::Form::size, .resume = Resume::free},

    // The run and its output
    {.name = "seed", .member = &C::seed, .commands = kTrain | kGradcheck | kBench | kDataInfo,
     .help = "of initial weights, order and dropout together", .range = {0, kMost}, .synonyms = "random-seed"},
    {.name = "repeat", .member = &C::repeat, .commands = kTrain,
     .help = "runs, with seeds seed, seed + 1, …", .range = {1, 100000}, .synonyms = "repeats runs num-seeds"},
    {.name = "out", .member = &C::out, .commands = kTrain,
     .help = "run folder to make", .fallback = "runs/MODEL-DATA-NNN", .synonyms = "output out-dir output-dir",
     .of_one_run = true},
    {.name = "force", .member = &C::force, .commands = kTrain | kDataConvert | kEvaluate | kExport,
     .help = "replace the run that --out holds, or convert's file; --resume: go on though options differ", .synonyms = "overwrite",
     .of_one_run = true},
    {.name = "note", .member = &C::note, .commands = kTrain,
     .help = "free text kept in the run's config.json", .fallback = "none", .synonyms = "comment description",
     .resume = Resume::free},
    {.name = "resume", .member = &C::resume, .commands = kTrain,
     .help = "go on with the run in this folder, with its options", .fallback = "none",
     .synonyms = "continue restart from-checkpoint", .of_one_run = true},
    {.name = "checkpoint-every", .member = &C::checkpoint_every, .commands = kTrain,
     .help = "steps between checkpoints; one is also saved at the end and when interrupted", .range = {1, kMost},
     .fallback = "once a minute", .synonyms = "save-every checkpoint-interval save-interval",
     .resume = Resume::free},
    {.name = "dry-run", .member = &C::dry_run, .commands = kTrain,
     .help = "print the options in effect and what a step costs, train nothing", .of_one_run = true},
    {.name = "json", .member = &C::json, .commands = kComputes | kInfo | kDataList | kDataInfo | kDataConvert | kExport,
     .help = "print one JSON document", .resume = Resume::own},
    {.name = "quiet", .member = &C::quiet, .commands = kComputes | kDataConvert | kDataFetch,
     .help = "no progress", .synonyms = "silent", .resume = Resume::own},

    // Of single commands
    {.name = "split", .member = &C::split, .commands = kEvaluate,
     .help = "part of the data to score", .choices = "validation|test|train|all",
     .fallback = "test; all of data that it was not trained on"},
    {.name = "predictions", .member = &C::predictions, .commands = kEvaluate,
     .help = "write label and prediction of each example", .fallback = "none"},
    {.name = "dot", .member = &C::dot, .commands = kGraph,
     .help = "print Graphviz"},
    {.name = "order", .member = &C::order, .commands = kDataInfo,
     .help = "print the training order of this epoch", .range = {0, kMost}, .fallback = "none"},
    {.name = "batches", .member = &C::batches, .commands = kBenchStep,
     .help = "batch sizes to measure", .range = {1, kLargest}, .synonyms = "batch-sizes batch"},
    {.name = "rounds", .member = &C::rounds, .commands = kBench | kBenchLaunch,
     .help = "interleaved rounds", .range = {1, 100000}, .fallback = "5; bench launch 100", .synonyms = "repeat repeats"},
    {.name = "save", .member = &C::save, .commands = kBench | kBenchLaunch,
     .help = "write the JSON document to this file", .fallback = "none"},
    {.name = "to", .member = &C::to, .commands = kDataConvert | kExport,
     .help = "file to write", .fallback = "needed", .synonyms = "out output"},
    {.name = "format", .member = &C::format, .commands = kExport,
     .help = "of the file; numpy.load reads npz, with bf16 as float32", .choices = "npz"},
    {.name = "mirror", .member = &C::mirror, .commands = kDataFetch,
     .help = "where the files lie: https://…, or file:///…", .fallback = "two public mirrors", .synonyms = "url"},
};
// clang-format on

}  // namespace

std::span<const Option> all_options() { return kOptions; }

}  // namespace tapedeck
