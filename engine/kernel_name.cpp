#include "engine/kernel_name.h"

#include <string_view>

namespace tapedeck {

std::string readable_name(const char* pretty_function) {
  std::string name = pretty_function;
  const std::string_view start = "F = ";
  const size_t at = name.find(start);
  if (at == std::string::npos) return name;
  name = name.substr(at + start.size());
  name.resize(name.rfind(']'));
  for (const std::string_view scope : {"tapedeck::", "(anonymous namespace)::", "{anonymous}::", "<unnamed>::"})
    for (size_t found; (found = name.find(scope)) != std::string::npos;) name.erase(found, scope.size());
  // nvcc names an anonymous namespace after the file: _GLOBAL__N__1a2b_11_softmax_cpp_3c4d::
  for (size_t found; (found = name.find("_GLOBAL__N_")) != std::string::npos;)
    name.erase(found, name.find("::", found) + 2 - found);
  return name;
}

}  // namespace tapedeck
