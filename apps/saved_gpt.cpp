#include "apps/saved_gpt.h"

#include <iostream>

#include "apps/experiment.h"
#include "apps/weights.h"

namespace tapedeck {

SavedGpt load_gpt(const Config& asked) {
  const Device device = prepare_machine(asked);
  SavedModel saved = find_saved_model(asked.run);
  if (saved.run.empty())
    throw Error(text("{}: lies in no run's folder: no config.json up to three folders above says what model it is of",
                     asked.run));
  const Config run = saved_config(saved.run);
  if (run.model != "gpt")
    throw Error(text("{}: is a run of {}, and {} needs one of gpt, which learns from sequences", asked.run, run.model,
                     asked.command));
  DataRecord data = read_data_record(saved.run);
  Tokenizer tokenizer(data.encoding.class_names);
  const DType dtype = find_precision(run);
  auto model = std::make_unique<Gpt>(gpt_shape(run, data.features, data.classes));
  auto parameters = std::make_unique<ParameterSet>(*model, device, dtype, static_cast<uint64_t>(run.seed));
  load_weights(*parameters, saved.bytes, saved.source, data_text(data.name, data.features, data.classes));
  say_what_is_slow(asked);
  std::cerr << saved.note;
  return {run, std::move(data), std::move(saved), std::move(tokenizer), std::move(model), std::move(parameters)};
}

std::vector<int32_t> SavedGpt::prompt(const Config& asked) const {
  const bool given = asked.origin("prompt") == Origin::flag;
  if (!given && of_task())
    throw UsageError(text("needs --prompt, a question of {}; `tapedeck data info {}` shows one", run.data, run.data));
  if (!given && !tokenizer.knows("\n"))
    throw UsageError(
        "needs --prompt: the text that this model was trained on has no lines, so a new line begins nothing");
  const std::vector<int32_t> tokens = tokenizer.encode(given ? asked.prompt : "\n", "--prompt");
  if (tokens.empty())
    throw UsageError("--prompt: is empty, and a model goes on from at least one character; give some");
  return tokens;
}

Tensor SavedGpt::as_ids(std::span<const int32_t> tokens) const {
  return Tensor::from(std::vector<int32_t>(tokens.begin(), tokens.end()), {1, std::ssize(tokens)},
                      parameters->values().device());
}

}  // namespace tapedeck
