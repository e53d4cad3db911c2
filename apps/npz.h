// .npz, NumPy's file of named arrays: a ZIP archive of .npy files, here stored as they are.
// [APPNOTE.TXT 6.3.10, §4.3; numpy.org/doc/stable/reference/generated/numpy.lib.format.html]
#pragma once
#include <string>
#include <vector>

#include "engine/safetensors.h"

namespace tapedeck {

// The bytes of an archive that numpy.load reads; equal tensors make equal bytes. bf16, which NumPy lacks, becomes f32,
// which loses nothing. Throws Error, before it copies anything, when the archive would exceed the 4 GiB of plain ZIP.
std::string to_npz(const std::vector<NamedTensor>& tensors);

// NumPy's name of the type that a tensor is stored as: "<f4".
const char* npy_type(DType dtype);

}  // namespace tapedeck
