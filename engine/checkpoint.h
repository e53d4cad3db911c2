// Named tensors as a safetensors file: 8 bytes with the length of a JSON header, the header (name -> dtype, shape,
// place), then the numbers, little-endian and row-major.  [github.com/huggingface/safetensors, README "Format"]
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tensor.h"

namespace tapedeck {

using NamedTensor = std::pair<std::string, Tensor>;

// The bytes of a file that holds these tensors, in their order; metadata carries a format version.
std::string to_safetensors(const std::vector<NamedTensor>& tensors);

// The tensors of such a file, on the CPU. Every size is checked before it is trusted; throws Error naming `source`.
std::vector<NamedTensor> from_safetensors(std::string_view bytes, const std::string& source);

}  // namespace tapedeck
