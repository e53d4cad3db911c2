// Text from a trained gpt, token by token.
#pragma once
#include <functional>
#include <vector>

#include "apps/models/gpt.h"
#include "apps/sampling.h"

namespace tapedeck {

// Goes on from the prompt by `length` tokens and calls each(token) with every new one; it returns false to stop. Keys
// and values of what was seen are kept, so a token costs a product with each of them and no pass over what came before.
// A model knows `context` positions: where they are used up it goes on from the last half of them, as if they were the
// prompt.
void generate(const Gpt& model, std::vector<int32_t> prompt, int64_t length, const Sampling& how, uint64_t seed,
              const std::function<bool(int32_t token)>& each);

}  // namespace tapedeck
