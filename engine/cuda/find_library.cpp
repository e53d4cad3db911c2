#include "engine/cuda/find_library.h"

#include <dlfcn.h>
#include <glob.h>

#include <cstdlib>

namespace tapedeck::cuda {
namespace {

std::vector<std::string> folders() {
  std::vector<std::string> toolkits;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* folder = std::getenv(variable)) toolkits.emplace_back(folder);
  toolkits.emplace_back("/usr/local/cuda");
  std::vector<std::string> all;
  for (const std::string& toolkit : toolkits)
    for (const char* part : {"/lib64/", "/extras/CUPTI/lib64/", "/lib/"}) all.push_back(toolkit + part);
  const auto add_python = [&](const std::string& prefix) {
    all.push_back(prefix + "/lib/python3*/*-packages/nvidia/*/lib/");
  };
  if (const char* environment = std::getenv("VIRTUAL_ENV")) add_python(environment);
  if (const char* home = std::getenv("HOME")) add_python(std::string(home) + "/.local");
  add_python("/usr/local");
  add_python("/usr");
  return all;
}

}  // namespace

void* open_library(const std::vector<std::string>& names, const std::string& file, std::string& reason) {
  for (const std::string& name : names)
    if (void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  const char* const message = dlerror();
  reason = message ? message : "unknown";
  for (const std::string& folder : folders()) {
    glob_t found{};
    void* library = nullptr;
    if (glob((folder + file).c_str(), 0, nullptr, &found) == 0)
      for (size_t i = 0; i < found.gl_pathc && !library; ++i)
        library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
    globfree(&found);
    if (library) return library;
  }
  return nullptr;
}

}  // namespace tapedeck::cuda
