// Module: a part of a model. Children and parameters join their parent by being declared as its members, in order, and
// the names on the way make the path: mlp.hidden0.weight.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/scope.h"
#include "ops/ops.h"
#include "ops/parameter.h"

namespace tapedeck {

// What a forward pass may depend on besides its input.
struct Pass {
  bool training = false;             // dropout is active
  uint64_t seed = 0;                 // of the run
  uint64_t step = 0;                 // a new number for every batch that is trained on, unless `batches` makes one
  const int64_t* batches = nullptr;  // in the device's memory, added to step: StepState's, in a training run
};

class Module {
 public:
  explicit Module(std::string name) : name_(name), path_(std::move(name)) {}
  Module(Module& parent, const std::string& name) : name_(name), path_(parent.path_ + "." + name) {
    parent.children_.push_back(this);
  }
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  virtual ~Module() = default;

  const std::string& name() const { return name_; }
  const std::string& path() const { return path_; }
  std::vector<Parameter*> parameters() const {  // its own, then each child's
    std::vector<Parameter*> all = own_;
    for (const Module* child : children_)
      for (Parameter* p : child->parameters()) all.push_back(p);
    return all;
  }

 private:
  friend struct Parameter;
  std::string name_, path_;
  std::vector<Module*> children_;
  std::vector<Parameter*> own_;
};

}  // namespace tapedeck
