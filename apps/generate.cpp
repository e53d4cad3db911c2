// tapedeck generate RUN: text from a trained gpt, to the terminal as it comes.
#include "apps/generate.h"

#include <iostream>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/record.h"
#include "apps/saved_gpt.h"
#include "data/catalog.h"
#include "data/tasks.h"
#include "engine/random.h"

namespace tapedeck {
void generate(const Gpt& model, std::vector<int32_t> seen, int64_t length, const Sampling& how, uint64_t seed,
              const std::function<bool(int32_t token)>& each) {
  const NoTape off;
  const size_t context = static_cast<size_t>(model.shape.context);
  std::vector<KeyValueCache> caches = model.empty_caches();
  size_t given = 0;  // tokens of `seen` whose keys and values the caches hold
  for (int64_t i = 0; i < length; ++i) {
    if (seen.size() > context) {
      seen.erase(seen.begin(), seen.end() - static_cast<int64_t>((context + 1) / 2)), given = 0;
      for (KeyValueCache& cache : caches) cache.length = 0;
    }
    const std::vector<int32_t> fresh(seen.begin() + static_cast<int64_t>(given), seen.end());
    const Tensor ids = Tensor::from(fresh, {1, std::ssize(fresh)}, model.tokens.table.value.device());
    given = seen.size();
    const double uniform = uniform01(random_bits(seed, static_cast<uint64_t>(i), site_of("generate"), 0).word[0]);
    seen.push_back(sample(model.go_on(ids, caches).doubles(), how, uniform));
    if (!each(seen.back())) return;
  }
}

int run_generate(const Config& asked) {
  const SavedGpt gpt = load_gpt(asked);
  const std::vector<int32_t> prompt = gpt.prompt(asked);
  if (gpt.of_task()) check_question(parse_data(gpt.run.data).file, prompt);
  const Sampling how{asked.temperature.value_or(gpt.of_task() ? 0 : 0.8), asked.top_k.value_or(0)};
  const int64_t length = asked.length.value_or(gpt.of_task() ? gpt.data.features + 1 - std::ssize(prompt) : 500);
  std::vector<int32_t> made;
  if (!asked.json) std::cout << gpt.tokenizer.decode(prompt);
  generate(*gpt.model, prompt, length, how, static_cast<uint64_t>(asked.seed), [&](int32_t token) {
    made.push_back(token);
    if (!asked.json) std::cout << gpt.tokenizer.separator() << gpt.tokenizer.decode(std::span(&token, 1)) << std::flush;
    return static_cast<bool>(std::cout);  // whoever reads has gone
  });
  if (asked.json)
    std::cout << json_text({{"format_version", kFormatVersion},
                            {"command", "generate"},
                            {"source", gpt.saved.source},
                            {"step", gpt.saved.step ? Json(*gpt.saved.step) : Json()},
                            {"seed", asked.seed},
                            {"prompt", gpt.tokenizer.decode(prompt)},
                            {"tokens", made},
                            {"text", gpt.tokenizer.decode(made)}});
  std::cout << "\n";
  return exit_done;
}

}  // namespace tapedeck
