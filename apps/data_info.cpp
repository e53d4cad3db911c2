// tapedeck data info NAME: what is in a data set, or in a file.
#include <fmt/format.h>

#include <iostream>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/describe_data.h"
#include "apps/problem.h"
#include "apps/record.h"
#include "data/loader.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

void print_order(const Config& config, const Dataset& data) {
  const std::vector<int32_t> order = epoch_order(data.train, static_cast<uint64_t>(config.seed), *config.order);
  if (config.json)
    std::cout << json_text(order, -1) << "\n";
  else
    for (const int32_t row : order) std::cout << row << "\n";
}

// A file that is no data set with examples and answers.
int describe_file(const Config& config, const std::string& path, const std::string& kind) {
  if (config.order)
    throw UsageError(
        fmt::format("--order {}: {} ({}) has no examples to order; leave it out", *config.order, path, kind));
  Json document = {{"format_version", kFormatVersion}};
  const Json facts = file_json(path, kind);
  document.update(facts);
  std::cout << (config.json ? json_text(document) + "\n" : facts_text(facts));
  return exit_done;
}

int describe_dataset(const Config& config, const std::string& spec) {
  const Dataset data = load_dataset(spec, data_options(config));
  if (config.order) {
    print_order(config, data);
    return exit_done;
  }
  const auto* shard = dynamic_cast<const Shard*>(data.records.get());
  const DataKind& kind = *parse_data(spec).kind;
  if (config.json) {
    Json document = dataset_json(data, kind);
    if (shard) document["type"] = name(shard->header().type);
    if (shard) document["checksums"] = verified(*shard);
    std::cout << json_text(document) << "\n";
  } else {
    std::cout << dataset_text(data, kind);
    if (shard) std::cout << fmt::format("\nkept as   {}\nchecksums {}\n", name(shard->header().type), verified(*shard));
  }
  return exit_done;
}

}  // namespace

int run_data_info(const Config& config) {
  const bool bare = is_bare_file(config.data);
  const std::string kind = bare ? file_kind(config.data) : parse_data(config.data).kind->name;
  const std::string path = bare ? config.data : parse_data(config.data).file;
  const bool has_examples = !bare || kind == "shard" || kind == "csv";  // of others, the answers are in a second file
  if (has_examples) return describe_dataset(config, bare ? kind + ":" + path : config.data);
  return describe_file(config, path, kind);
}

}  // namespace tapedeck
