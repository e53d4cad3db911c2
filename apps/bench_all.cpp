// tapedeck bench all: every bench with small settings, one behind the other, as one document: a first look at a
// machine, or what `bench diff` compares before and after a change. Each bench alone measures more.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <new>

#include "apps/bench_report.h"
#include "apps/commands.h"
#include "apps/experiment.h"
#include "apps/options.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

struct Bench {
  const char* command;
  std::vector<Setting> settings;
};

std::vector<Bench> benches(Device device) {
  const bool slow = device == Device::emulated;
  return {
      {"bench peaks", {}},
      {"bench matmul", {{"sizes", slow ? "32,64" : "32,64,128,256,512,1024"}}},
      {"bench step", {{"batches", slow ? "4" : "32,512"}, {"hidden", slow ? "16" : "512,512"}}},
      {"bench batch", {{"batches", slow ? "1,4" : "1,16,256"}, {"hidden", slow ? "16" : "128,128"}}},
      {"bench threads", {{"batches", "128"}}},
      {"bench precision", {{"batches", slow ? "4" : "512"}, {"hidden", slow ? "16" : "512,512"}}},
      {"bench fusion", {}},
      {"bench attention",
       {{"contexts", slow ? "16" : "64,512"}, {"tokens", slow ? "16" : "2048"}, {"width", slow ? "48" : "384"}}},
      {"bench recompute", {{"layers", slow ? "2" : "4"}, {"batch", slow ? "1" : "8"}, {"width", slow ? "16" : "128"}}},
      {"bench launch", {}},
      {"bench loader", {}},
      {"bench transfer", {}}};
}

// Why a bench is left out on this device; "" where it is not.
std::string why_not(std::string_view command, Device device) {
  if (command == "bench transfer" && device == Device::cpu) return "nothing is transferred on the CPU";
  if (command == "bench threads" && device != Device::cpu) return "threads are the CPU's";
  if (command == "bench loader" && device == Device::emulated) return "minutes in the emulation, and about loading";
  return "";
}

// What was asked of this command goes to each bench that has the option.
Config config_of(const Bench& bench, const Config& asked) {
  std::vector<Setting> settings = bench.settings;
  const unsigned bit = command_bit(bench.command);
  for (const Option& option : all_options())
    if (asked.origin(option.name) == Origin::flag && option.name != std::string_view("save") &&
        find_option(option.name, bit))
      settings.push_back({option.name, value_text(asked, option)});
  Config config = configure(bench.command, settings);
  if (asked.origin("threads") == Origin::environment) config.threads = asked.threads;
  if (asked.origin("rounds") == Origin::fallback && config.rounds == 5) config.rounds = 3;
  return config;
}

}  // namespace

int run_bench_all(const Config& config) {
  const Device device = prepare_machine(config);
  Json document = bench_document(config, load_before_bench(config), device);
  document["rows"] = Json::array();
  document["benches"] = Json::object();
  document["left_out"] = Json::array();
  document["failed"] = Json::array();
  int code = exit_done;  // that of the first which failed
  const auto fail = [&](const char* command, const std::string& why, int its_code) {
    document["failed"].push_back({{"bench", command}, {"why", why}});
    std::cerr << fmt::format("tapedeck {}: {}\n", command, why);
    if (code == exit_done) code = its_code;
  };
  for (const Bench& bench : benches(device)) {
    if (const std::string why = why_not(bench.command, device); !why.empty()) {
      document["left_out"].push_back({{"bench", bench.command}, {"why", why}});
      if (!config.json) std::cout << fmt::format("== {}: left out: {}\n\n", bench.command, why);
      continue;
    }
    if (!config.json) std::cout << fmt::format("== {}\n", bench.command) << std::flush;
    const auto commands = all_commands();
    const auto command = std::find_if(commands.begin(), commands.end(),
                                      [&](const Command& one) { return one.name == std::string_view(bench.command); });
    BenchDocuments documents;  // whatever it measured before it failed is among them
    try {
      const int its_code = command->run(config_of(bench, config));
      if (its_code == exit_interrupted) return its_code;
      if (its_code != exit_done) fail(bench.command, text("ended with exit code {}", its_code), its_code);
    } catch (const OutOfMemory& e) {
      fail(bench.command, e.what(), exit_out_of_memory);
    } catch (const std::bad_alloc&) {
      fail(bench.command, "the system gave no more memory", exit_out_of_memory);
    } catch (const Diverged& e) {
      fail(bench.command, e.what(), exit_diverged);
    } catch (const std::exception& e) {
      fail(bench.command, e.what(), exit_failed);
    }
    for (Json& part : documents.taken()) {
      for (const Json& row : part["rows"]) document["rows"].push_back(row);
      for (const char* common : {"rows", "machine", "format_version"}) part.erase(common);
      document["benches"][bench.command] = part;
    }
    if (!config.json) std::cout << "\n" << std::flush;
  }
  prepare_machine(config);  // threads as they were
  print_bench(config, document,
              fmt::format("{} rows of {} benches; {} left out, {} failed\n", document["rows"].size(),
                          document["benches"].size(), document["left_out"].size(), document["failed"].size()));
  return code;
}

}  // namespace tapedeck
