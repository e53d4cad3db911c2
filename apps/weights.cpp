#include "apps/weights.h"

#include <map>

#include "engine/safetensors.h"

namespace tapedeck {

std::string weights_file(const ParameterSet& parameters) {
  std::vector<NamedTensor> weights;
  for (const Parameter* p : parameters.all()) weights.emplace_back(p->path, p->master);
  return to_safetensors(weights);
}

std::string data_text(const std::string& name, int64_t features, int64_t classes) {
  return text("{} ({} features, {} classes)", name, features, classes);
}

void load_weights(ParameterSet& parameters, std::string_view file, const std::string& source, const std::string& data) {
  std::map<std::string, Tensor> saved;
  for (auto& [name, tensor] : from_safetensors(file, source)) saved.emplace(name, tensor);
  for (const Parameter* p : parameters.all()) {
    const auto found = saved.find(p->path);
    if (found == saved.end())
      throw Error(text("{}: holds no tensor {}, which the model of config.json needs", source, p->path));
    const Tensor& t = found->second;
    if (!(t.shape == p->shape) || t.dtype != p->master.dtype)
      throw Error(text("{}: tensor {} is {} {}, but config.json and {} need {} {}", source, p->path, name(t.dtype),
                       t.shape, data, name(p->master.dtype), p->shape));
    copy(p->master, t);
    saved.erase(found);
  }
  parameters.round_copies();
  if (!saved.empty())
    throw Error(
        text("{}: holds a tensor {}, which the model of config.json does not have", source, saved.begin()->first));
}

}  // namespace tapedeck
