// Finds options by name, and the nearest one to a name that does not exist.
#include <algorithm>

#include "apps/options.h"
#include "data/nearest.h"

namespace tapedeck {
namespace {

std::string with_dashes(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

}  // namespace

unsigned command_bit(std::string_view command) {
  static constexpr struct {
    std::string_view name;
    unsigned bit;
  } kBits[] = {{"train", kTrain},
               {"evaluate", kEvaluate},
               {"generate", kGenerate},
               {"inspect", kInspect},
               {"gradcheck", kGradcheck},
               {"graph", kGraph},
               {"info", kInfo},
               {"data list", kDataList},
               {"data info", kDataInfo},
               {"data convert", kDataConvert},
               {"data fetch", kDataFetch},
               {"export", kExport},
               {"bench step", kBenchStep},
               {"bench loader", kBenchLoader},
               {"bench launch", kBenchLaunch},
               {"bench attention", kBenchAttention},
               {"compare", kCompare},
               {"profile", kProfile},
               {"bench precision", kBenchPrecision},
               {"bench recompute", kBenchRecompute},
               {"bench batch", kBenchBatch},
               {"bench matmul", kBenchMatmul},
               {"bench peaks", kBenchPeaks},
               {"bench fusion", kBenchFusion},
               {"bench threads", kBenchThreads},
               {"bench transfer", kBenchTransfer},
               {"bench diff", kBenchDiff},
               {"bench all", kBenchAll},
               {"fit", kFit},
               {"sweep", kSweep},
               {"report", kReport}};
  for (const auto& [name, bit] : kBits)
    if (name == command) return bit;
  return 0;
}

const Option* find_option(std::string_view name, unsigned command) {
  const std::string wanted = with_dashes(name);
  for (const Option& option : all_options())
    if ((option.commands & command) && wanted == option.name) return &option;
  return nullptr;
}

std::string nearest_option(std::string_view name, unsigned command) {
  const std::string wanted = with_dashes(name);
  std::string nearest;
  size_t least = static_cast<size_t>(-1);
  const auto offer = [&](std::string_view candidate, const char* option) {
    if (const size_t distance = edit_distance(wanted, candidate); distance < least) least = distance, nearest = option;
  };
  for (const Option& option : all_options()) {
    if (!(option.commands & command) || option.is_positional()) continue;
    offer(option.name, option.name);
    for (std::string_view rest = option.synonyms; !rest.empty();) {
      const size_t end = std::min(rest.find(' '), rest.size());
      offer(rest.substr(0, end), option.name);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return nearest;
}

}  // namespace tapedeck
