// The checkpoints of a run: RUN/checkpoint/step-00000200/, each complete and with checksums. The last two are kept, so
// that one is whole whatever happens to the other.
//   state.json              where the run stands, and the size and CRC-32 of the other files and of itself
//   weights.safetensors     the model, as evaluate reads it
//   training.safetensors    the rest: optimizer, curves, gradients of a step that has begun
//   best.safetensors        the model with the lowest validation loss so far
#pragma once
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/config.h"

namespace tapedeck {

struct Checkpoint {
  std::string name;
  Json state;
  std::map<std::string, std::string> files;  // bytes by name, without state.json
};

// "step-00000200"; "step-00000200+2": two batches into the step after it; "step-00000200-before-evaluation": the
// evaluation after that step is still to do.
std::string checkpoint_name(int64_t steps, int64_t batches_into_next, bool evaluation_to_do = false);
std::optional<int64_t> checkpoint_steps(const std::string& name);  // 200 of both names above; none of other names

class Checkpoints {
 public:
  explicit Checkpoints(const std::filesystem::path& run) : folder_(run / "checkpoint") {}

  // Nothing happens when one of this name is there. Throws Error with path and cause; earlier ones are then untouched.
  void save(const Checkpoint& checkpoint) const;

  void remove_after(const std::string& name) const;  // those that are newer

  std::vector<std::filesystem::path> list() const;  // oldest first; what a crash left unfinished is not among them

  // The newest that is whole; none when there is none at all. Each damaged one that was passed over is a sentence in
  // `complaints`. Throws Error when all are damaged.
  std::optional<Checkpoint> newest(std::vector<std::string>& complaints) const;

 private:
  std::filesystem::path folder_;
};

Checkpoint read_checkpoint(const std::filesystem::path& folder);  // throws Error naming the file and what is wrong

}  // namespace tapedeck
