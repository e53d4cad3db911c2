// tapedeck bench loader: what loading adds to the training step of an MLP, by where the data lies and how many worker
// threads load ahead, and how fast the formats are read. All ways take turns, a round each.
//
// With t_d to load a batch and t_c to compute a step, a step that loads its own batch takes t_d + t_c, and one with w
// workers no less than max(t_d / w, t_c): the slower of two stages of a pipeline sets its pace.
#include <fmt/format.h>

#include <memory>

#include "apps/bench_images.h"
#include "apps/bench_loader_text.h"
#include "apps/bench_report.h"
#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/experiment.h"
#include "apps/feed.h"
#include "apps/interrupt.h"
#include "apps/meter.h"
#include "apps/stats.h"

namespace tapedeck {
namespace {

template <class F>
double seconds_of(const F& work) {
  const double begin = steady_seconds();
  work();
  return steady_seconds() - begin;
}

struct Source {
  const char* name;
  Problem problem;
  std::vector<double> load_ms = {}, load_rounds = {};  // a batch alone, on this thread; the medians of rounds
};

// A training run of its own, step by step, on batches from one source.
class Way {
 public:
  Way(const Config& config, Source& source, std::optional<int> workers, Device device)
      : source_(source),
        workers_(workers),
        config_(config),
        seed_(static_cast<uint64_t>(config.seed)),
        learner_(config, source.problem, seed_, device, find_precision(config)) {
    if (workers)
      feed_.emplace(source.problem, config.batch, seed_, Position{}, *workers, config.prefetch);
    else
      resident_ = source.problem.load(Loader(source.problem.data().train, config.batch, seed_).next());
  }

  void round(int64_t warmup_steps, int64_t steps) {
    for (int64_t i = 0; i < warmup_steps; ++i) step();
    const double begin = steady_seconds(), waited = waited_;
    for (int64_t i = 0; i < steps; ++i) milliseconds_.push_back(seconds_of([&] { step(); }) * 1e3);
    const double took = steady_seconds() - begin;
    round_means_.push_back(took / static_cast<double>(steps) * 1e3);
    wait_shares_.push_back((waited_ - waited) / took);
  }

  bool resident() const { return !workers_; }  // one batch that stays
  int workers() const { return *workers_; }    // unless resident
  const Source& source() const { return source_; }
  double mean_ms() const { return median(round_means_); }
  const std::vector<double>& round_means() const { return round_means_; }
  std::vector<double> weights() const { return learner_.parameters.values().doubles(); }

  Json json(double compute_ms) const {
    Json row = bench_row("loader", {{"data", resident() ? "resident" : source_.name},
                                    {"workers", workers_ ? Json(*workers_) : Json()},
                                    {"batch", config_.batch}});
    add_times(row, "median_ms", milliseconds_, round_means_);
    row["mean_ms"] = mean_ms();
    row["wait_share"] = median(wait_shares_);
    if (resident()) return row;
    const double load_ms = median(source_.load_ms);
    const double bound = *workers_ == 0 ? load_ms + compute_ms : std::max(load_ms / *workers_, compute_ms);
    row["load_ms"] = load_ms;
    row["bound_ms"] = bound;
    row["over_bound"] = mean_ms() / bound;
    return row;
  }

 private:
  void step() {
    learner_.parameters.forget_gradients();
    Inputs inputs = resident_;
    if (feed_)
      waited_ += seconds_of([&] {
        feed_->next();
        inputs = feed_->inputs();
      });
    learn(learner_, source_.problem, inputs, {true, seed_, 0, &learner_.state.ptr()->batches}, 1);
    const double norm = learner_.optimizer.step(config_.lr);
    CHECK(norm > 0, "the gradient norm is {}: this step does not train", norm);
  }

  const Source& source_;
  const std::optional<int> workers_;
  const Config& config_;
  const uint64_t seed_;
  Learner learner_;
  Inputs resident_;
  std::optional<Feed> feed_;
  double waited_ = 0;  // seconds
  std::vector<double> milliseconds_, round_means_, wait_shares_;
};

void time_loads(Source& source, const Config& config, int64_t round, int64_t loads) {
  Loader loader(source.problem.data().train, config.batch, static_cast<uint64_t>(config.seed), {round, 0});
  BatchBuffer buffer(source.problem, config.batch);
  for (int64_t i = 0; i <= loads; ++i) {
    const double seconds = seconds_of([&] { buffer.load(loader.next()); });
    if (i > 0) source.load_ms.push_back(seconds * 1e3);  // the first finds cold caches, and makes the order
  }
  source.load_rounds.push_back(median(std::span(source.load_ms).last(static_cast<size_t>(loads))));
}

// Throws Error where a format gives other numbers, or a way of loading trains other weights.
void check_agreement(const BenchImages& images, const std::vector<std::unique_ptr<Way>>& ways) {
  const auto all = [](const Dataset& data) {
    std::vector<float> features(static_cast<size_t>(data.rows() * data.features));
    std::vector<int32_t> rows(data.labels.size()), labels(data.labels.size());
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int32_t>(i);
    gather(data, rows, features.data(), labels.data());
    return std::pair(features, labels);
  };
  const auto expected = all(images.memory());
  CHECK(all(images.csv()) == expected, "bench loader: the CSV file gives other numbers than the images in memory");
  CHECK(all(images.shard()) == expected, "bench loader: the shard gives other numbers than the images in memory");
  const std::vector<double> weights = ways.front()->weights();
  for (const auto& way : ways)
    CHECK(way->resident() || way->weights() == weights, "bench loader: two ways of loading trained different weights");
}

// How a step with one worker compares with a step without, which the default rests on.
Json worker_json(const Way& none, const Way& one) {
  Json row = bench_row("worker", {{"data", none.source().name}});
  row["default_workers"] = default_workers(none.source().problem);
  add_ratio(row, one.round_means(), none.round_means());
  return row;
}

// What parsing text costs: the share of a step that loads its own batch from CSV; the same step put together from its
// parts, of which the resident batch gives one (1: they explain it); and how many times faster a shard loads the batch.
Json parsing_json(const Source& csv, const Source& shard, const Way& on_csv, const Way& resident) {
  Json row;
  const double load_ms = median(csv.load_ms);
  row["share"] = load_ms / on_csv.mean_ms();
  row["step_over_parts"] = on_csv.mean_ms() / (load_ms + resident.mean_ms());
  add_ratio(row["cut_by_shard"], csv.load_rounds, shard.load_rounds);
  return row;
}

struct Reading {
  const char* order;
  std::vector<double> csv = {}, shard = {};  // seconds a round
};

// All images once, a batch at a time, from a file that has just been opened: the shard checks its sums as it goes.
double read_all(const Dataset& data, std::span<const int32_t> order, int64_t batch) {
  std::vector<float> out(static_cast<size_t>(batch * data.features));
  return seconds_of([&] {
    for (const auto part : in_order(order, batch)) data.records->read(part, out.data());
  });
}

void read_round(const BenchImages& images, const Config& config, int64_t round, std::vector<Reading>& readings) {
  const Dataset& data = images.memory();
  std::vector<int32_t> rows = data.train;
  rows.insert(rows.end(), data.validation.begin(), data.validation.end());
  rows.insert(rows.end(), data.test.begin(), data.test.end());
  for (Reading& reading : readings) {
    const std::vector<int32_t> order =
        &reading == &readings[0] ? rows : epoch_order(rows, static_cast<uint64_t>(config.seed), round);
    reading.csv.push_back(read_all(images.csv(), order, config.batch));
    reading.shard.push_back(read_all(images.shard(), order, config.batch));
  }
}

Json reading_json(const Reading& reading) {
  Json row = bench_row("read", {{"order", reading.order}});
  row["csv_seconds"] = median(reading.csv);
  row["shard_seconds"] = median(reading.shard);
  add_ratio(row, reading.csv, reading.shard);
  return row;
}

}  // namespace

int run_bench_loader(const Config& asked) {
  Config config = asked;
  if (config.origin("threads") == Origin::fallback) config.threads = std::max(1, allowed_cores() - 1);
  const Device device = prepare_machine(config);
  say_what_is_slow(config);
  const Load load = load_before_bench(config);

  const BenchImages images;
  const DType dtype = find_precision(config);
  std::vector<Source> sources;
  sources.push_back({"memory", Problem(images.memory(), false, device, dtype)});
  sources.push_back({"csv", Problem(images.csv(), false, device, dtype)});
  sources.push_back({"shard", Problem(images.shard(), false, device, dtype)});
  std::vector<std::unique_ptr<Way>> ways;
  const auto add = [&](Source& source, std::optional<int> workers) {
    ways.push_back(std::make_unique<Way>(config, source, workers, device));
    return ways.back().get();
  };
  for (const int workers : {0, 1}) add(sources[0], workers);
  const Way* on_csv = nullptr;  // that loads its own batches
  for (Source* source : {&sources[1], &sources[2]})
    for (const int workers : {0, 1, 2})
      if (const Way* const way = add(*source, workers); source == &sources[1] && workers == 0) on_csv = way;
  add(sources[0], std::nullopt);

  // Queues are full when a way's turn comes: they take twice their length of steps to settle.
  const int64_t warmup_steps = 5 + 2 * (2 * config.prefetch + 1);
  const int64_t steps = config.steps.value_or(std::max<int64_t>(10, 20000 / config.batch));
  std::vector<Reading> readings = {{"in order"}, {"shuffled"}};
  const Interruption signals(
      "\nstopping: the files of this bench go away, and nothing is kept; once more leaves at once\n");
  for (int64_t round = 0; round < config.rounds; ++round) {
    for (const auto& way : ways) {
      way->round(warmup_steps, steps);
      if (Interruption::asked()) return exit_interrupted;
    }
    for (Source& source : sources) time_loads(source, config, round, std::min<int64_t>(steps, 30));
    read_round(images, config, round, readings);
  }
  check_agreement(images, ways);

  const double compute_ms = ways.back()->mean_ms();
  Json rows = Json::array();
  for (const auto& way : ways) rows.push_back(way->json(compute_ms));
  for (size_t i = 0; i + 1 < ways.size(); ++i)
    if (!ways[i]->resident() && ways[i]->workers() == 0) rows.push_back(worker_json(*ways[i], *ways[i + 1]));
  for (const Reading& reading : readings) rows.push_back(reading_json(reading));
  Json document = bench_document(config, load, device);
  document.update({{"batch", config.batch},
                   {"prefetch", config.prefetch},
                   {"warmup_steps", warmup_steps},
                   {"images", images.memory().rows()},
                   {"csv_bytes", images.csv_bytes()},
                   {"shard_bytes", images.shard_bytes()},
                   {"compute_ms", compute_ms},
                   {"parsing", parsing_json(sources[1], sources[2], *on_csv, *ways.back())},
                   {"agree", true},  // else an error has ended this
                   {"rows", rows}});
  print_bench(config, document, bench_loader_text(document, config, device));
  return exit_done;
}

}  // namespace tapedeck
