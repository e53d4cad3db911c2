// tapedeck export RUN --format npz --to FILE: the weights of a run in a format of other programs.
#include <fmt/format.h>

#include <filesystem>
#include <iostream>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/files.h"
#include "apps/npz.h"
#include "apps/record.h"
#include "apps/saved_model.h"
#include "engine/check.h"

namespace tapedeck {
namespace {

std::string report(const Config& asked, const std::vector<NamedTensor>& tensors, size_t bytes) {
  std::string out;
  bool widened = false;
  for (const auto& [name, t] : tensors) {
    out += fmt::format("{:<32} {} {}\n", name, npy_type(t.dtype), t.shape.str());
    widened = widened || t.dtype == DType::bf16;
  }
  if (widened) out += "bf16, which NumPy lacks, is written as <f4: every value is the same\n";
  return out + fmt::format("{} arrays, {} bytes in {}\n", tensors.size(), bytes, asked.to);
}

Json document(const Config& asked, const SavedModel& model, const std::vector<NamedTensor>& tensors, size_t bytes) {
  Json arrays = Json::array();
  for (const auto& [name, t] : tensors) {
    Json extents = Json::array();
    for (int axis = 0; axis < t.rank(); ++axis) extents.push_back(t.shape[axis]);
    arrays.push_back({{"name", name}, {"type", npy_type(t.dtype)}, {"shape", extents}});
  }
  return {{"format_version", kFormatVersion},
          {"command", "export"},
          {"source", model.source},
          {"step", model.step ? Json(*model.step) : Json()},
          {"to", asked.to},
          {"bytes", bytes},
          {"arrays", arrays}};
}

}  // namespace

int run_export(const Config& asked) {
  const SavedModel model = find_saved_model(asked.run);
  std::cerr << model.note;
  std::error_code not_there;
  if (std::filesystem::equivalent(model.source, asked.to, not_there))
    throw UsageError(fmt::format("--to {}: is the file to read; name another", asked.to));
  refuse_to_replace("to", asked.to, asked.force);
  const std::vector<NamedTensor> tensors = from_safetensors(model.bytes, model.source);
  const std::string npz = to_npz(tensors);
  write_file(asked.to, npz);
  if (asked.json)
    std::cout << json_text(document(asked, model, tensors, npz.size())) << "\n";
  else
    std::cout << report(asked, tensors, npz.size());
  return exit_done;
}

}  // namespace tapedeck
