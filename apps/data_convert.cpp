// tapedeck data convert SPEC --to FILE: a data set of examples with one answer each, as a shard.
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/describe_data.h"
#include "apps/files.h"
#include "apps/problem.h"
#include "apps/progress.h"
#include "apps/record.h"
#include "data/shard_writer.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

// "writing iris.shard  [########            ]  40 %  3 s left"
std::string bar(const std::string& file, double share, double seconds) {
  constexpr int width = 30;
  const int full = static_cast<int>(std::lround(share * width));
  return fmt::format("writing {}  [{:#<{}}{:{}}] {:3.0f} %  {} left", file, "", full, "", width - full, 100 * share,
                     duration_text(seconds / share * (1 - share)));
}

// A live bar on a terminal; elsewhere a line at each tenth.
class WriteProgress {
 public:
  WriteProgress(const Config& config, int64_t records)
      : file_(config.to), records_(records), progress_(std::cerr, stderr_is_terminal(), config.quiet) {}
  void operator()(int64_t written) {
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin_;
    const int64_t tenth = 10 * written / records_;
    const double share = static_cast<double>(written) / static_cast<double>(records_);
    progress_.show(bar(file_, share, seconds.count()), seconds.count(), tenth > tenth_);
    tenth_ = tenth;
  }
  void done() { progress_.message(fmt::format("wrote {}", file_)); }

 private:
  std::string file_;
  int64_t records_, tenth_ = 0;
  Progress progress_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

int run_data_convert(const Config& config) {
  if (const DataSpec spec = parse_data(config.data); spec.kind->sequences)
    throw UsageError(
        text("{}: sequences are made as they are read, so a shard has no use for them: train on it as it "
             "is, --data {}",
             config.data, config.data));
  refuse_to_replace("to", config.to, config.force);
  if (!config.quiet) std::cerr << "reading " << config.data << std::endl;
  const Dataset data = load_dataset(config.data, data_options(config));
  WriteProgress progress(config, data.rows());
  write_shard(config.to, data, std::ref(progress));
  progress.done();

  Json facts = {{"file", config.to}, {"bytes", std::filesystem::file_size(config.to)}};
  facts.update(shard_json(Shard(config.to)));  // read back
  Json document = {{"format_version", kFormatVersion}};
  document.update(facts);
  std::cout << (config.json ? json_text(document) + "\n" : facts_text(facts));
  return exit_done;
}

}  // namespace tapedeck
