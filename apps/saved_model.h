// The weights that a command on a finished or stopped run means.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "apps/config.h"

namespace tapedeck {

struct SavedModel {
  std::filesystem::path run;    // the folder with config.json; empty for a file that lies in none
  std::string source;           // the path of the file
  std::string bytes;            // of a safetensors file
  std::optional<int64_t> step;  // finished steps when it was saved, where that is known
  std::string note;             // what is to be said about the choice; often nothing
};

// `named` is a run folder or a .safetensors file. Of a folder it is the last step's model.safetensors or, while the run
// is not finished or has gone on since, the weights of the newest checkpoint that is whole. A file belongs to the run
// in whose folder, or up to three folders deep, it lies. Throws Error with what is missing.
SavedModel find_saved_model(const std::string& named);

// The options of the run in this folder. Throws Error: what a file says is no mistake on the command line.
Config saved_config(const std::filesystem::path& run);

}  // namespace tapedeck
