#include "engine/scope.h"

#include <utility>

#include "engine/trace.h"

namespace tapedeck {
namespace {
std::string& path_of_thread() {
  thread_local std::string path;
  return path;
}
}  // namespace

Scope::Scope(std::string_view name) : outer_length_(path_of_thread().size()), tracer_(Tracer::current()) {
  std::string& path = path_of_thread();
  if (!path.empty() && !name.empty()) path += '.';
  path += name;
  if (tracer_) tracer_->open(Span::Kind::scope, name);
}
Scope::~Scope() {
  if (tracer_) tracer_->close();
  path_of_thread().resize(outer_length_);
}

ScopeOf::ScopeOf(std::string path) : outer_(std::exchange(path_of_thread(), std::move(path))) {}
ScopeOf::~ScopeOf() { path_of_thread() = std::move(outer_); }

const std::string& Scope::path() { return path_of_thread(); }

}  // namespace tapedeck
