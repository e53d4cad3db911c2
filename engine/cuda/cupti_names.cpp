#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "engine/kernel_name.h"

namespace tapedeck {

std::string readable_kernel(const char* mangled);  // of cupti_recorder.h, which needs CUPTI's headers

namespace {

struct Free {
  void operator()(char* p) const { std::free(p); }
};

// "NAME<...>(…)" without what stands behind the first closed pair of the outermost kind.
size_t end_of_name(std::string_view name) {
  int open = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    open += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (name[i] == '(' && open == 0 && i > 0) return i;
  }
  return name.size();
}

// "wrapper<X>" -> "X"
bool unwrap(std::string& name, std::string_view wrapper) {
  const size_t at = name.find(wrapper);
  const size_t begin = at + wrapper.size(), end = name.rfind('>');
  if (at == std::string::npos || end == std::string::npos || end < begin) return false;
  name = name.substr(begin, end - begin);
  while (name.ends_with(' ')) name.pop_back();
  return true;
}

}  // namespace

std::string readable_kernel(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, Free> whole(abi::__cxa_demangle(mangled, nullptr, nullptr, &status));
  if (!whole || status != 0) return mangled;  // a C function, or of a compiler that we do not know
  std::string name = readable_name(("F = " + std::string(whole.get()) + "]").c_str());
  name.resize(end_of_name(name));
  if (name.starts_with("void ")) name = name.substr(5);
  if (unwrap(name, "run_on_gpu<"))
    for (const std::string_view shape : {"EachKernel<", "RowsKernel<", "BlocksKernel<"})
      if (name.starts_with(shape)) {
        unwrap(name, shape);
        break;
      }
  return name;
}

}  // namespace tapedeck
