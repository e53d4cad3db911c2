// Named tensors as a safetensors file: 8 bytes with the length of a JSON header, the header (name -> dtype, shape,
// place), then the numbers, little-endian and row-major, without a gap.
// [github.com/huggingface/safetensors, README "Format"]
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/tensor.h"

namespace tapedeck {

using NamedTensor = std::pair<std::string, Tensor>;
using Metadata = std::map<std::string, std::string>;

// The bytes of a file that holds these tensors, in their order. To the metadata it adds "format" (pt, for PyTorch's
// loader) and "format_version". Throws Error where two tensors have one name.
std::string to_safetensors(const std::vector<NamedTensor>& tensors, const Metadata& metadata = {});

struct Safetensors {
  std::vector<NamedTensor> tensors;  // in the header's order, on the CPU
  Metadata metadata;
};

// Reads such a file, ours or another program's. Everything is checked before it is believed: throws Error naming
// `source` unless the tensors cover the file exactly.
Safetensors read_safetensors(std::string_view bytes, const std::string& source);

std::vector<NamedTensor> from_safetensors(std::string_view bytes, const std::string& source);  // the tensors alone

}  // namespace tapedeck
