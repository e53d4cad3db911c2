// TapeWatch: sees what passes a tape of its thread while it lives: each output as it is recorded, and dL/dy of each as
// the backward pass reaches it. It sees each once, and the same whether a part is recomputed or not. For looking at a
// step that failed, or at the sizes of gradients; a training run has none.
#pragma once
#include <string>

#include "engine/tensor.h"

namespace tapedeck {

class TapeWatch {
 public:
  TapeWatch();
  virtual ~TapeWatch();
  TapeWatch(const TapeWatch&) = delete;
  TapeWatch& operator=(const TapeWatch&) = delete;

  // where: the layer, Scope::path()
  virtual void output(const char* /*op*/, const std::string& /*where*/, const Tensor& /*y*/) {}
  virtual void gradient(const char* /*op*/, const std::string& /*where*/, const Tensor& /*dy*/) {}

  static TapeWatch*& current();  // the innermost of this thread; null: nobody looks

 private:
  TapeWatch* outer_;
};

// Finds the first number that is not finite. Waits for the device at each tensor.
class FiniteWatch : public TapeWatch {
 public:
  const std::string& first() const { return first_; }  // "output of linear at mlp.out"; empty: none so far
  void output(const char* op, const std::string& where, const Tensor& y) override { look("output", op, where, y); }
  void gradient(const char* op, const std::string& where, const Tensor& dy) override {
    look("output gradient", op, where, dy);
  }

 private:
  void look(const char* what, const char* op, const std::string& where, const Tensor& x);
  std::string first_;
};

}  // namespace tapedeck
