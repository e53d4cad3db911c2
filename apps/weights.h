// The weights of a model as a safetensors file, and back.
#pragma once
#include <string>
#include <string_view>

#include "ops/parameter.h"

namespace tapedeck {

std::string weights_file(const ParameterSet& parameters);  // the bytes of a safetensors file

std::string data_text(const std::string& name, int64_t features,
                      int64_t classes);  // "digits (64 features, 10 classes)"

// Gives every parameter its saved values. The file must hold exactly these names, shapes and number types. Throws Error
// naming `source` and, where the data may be to blame, `data`, as data_text says it.
void load_weights(ParameterSet& parameters, std::string_view file, const std::string& source, const std::string& data);

}  // namespace tapedeck
