// A trained gpt with the vocabulary it was trained with, out of its run folder alone: the data may be gone.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "apps/config.h"
#include "apps/data_record.h"
#include "apps/models/gpt.h"
#include "apps/saved_model.h"
#include "data/tokenizer.h"

namespace tapedeck {

struct SavedGpt {
  Config run;  // what it was trained with
  DataRecord data;
  SavedModel saved;
  Tokenizer tokenizer;
  std::unique_ptr<Gpt> model;
  std::unique_ptr<ParameterSet> parameters;

  bool of_task() const { return run.data.starts_with("task:"); }
  // What --prompt says or, for text, a new line. Throws UsageError naming a character that has no token, and its place,
  // where there is nothing to begin with, and for a task without a question.
  std::vector<int32_t> prompt(const Config& asked) const;
  Tensor as_ids(std::span<const int32_t> tokens) const;  // [1, n] on the model's device
};

// The model of the run that `asked` names, on the device that it asks for. Throws Error where the run is of another
// model.
SavedGpt load_gpt(const Config& asked);

}  // namespace tapedeck
