// Offer: how the gradient of y = f(z), z a product with f = relu or gelu, gets through f for free. dL/dy is mostly made
// by one gemm, of the next layer. What made y therefore offers: multiply by f'(z) on the way out, as gemm's epilogues
// drelu and dgelu do, and I take dL/dz; sum it over the rows, and that is my bias gradient. On a GPU each layer saves a
// pass that reads dL/dy and writes dL/dz, both [batch, width], and the launches of its kernels.
//
// Only the one consumer of y may take it: with others dL/dy is a sum. See Want::offer().
#pragma once
#include "engine/gemm.h"
#include "engine/tape.h"

namespace tapedeck {

struct Offer {
  Epilogue epilogue;  // drelu or dgelu
  Kept aux;           // what that reads: relu's mask, or z
  Kept output;        // relu's, should the mask not be readable (see Gemm)
  Want dbias;
  // What came of it, for the backward pass of what made y:
  bool taken = false;   // it gets dL/dz
  bool summed = false;  // and dbias is done
  // Of an output of recompute(): the offer of what made it, which has to run again to have one. The rest is empty then.
  std::function<std::shared_ptr<Offer>()> behind = {};

  // Makes g, one product that was to compute dL/dy, compute dL/dz, and dbias where it can: gemm's sums are f32 or f64,
  // and written, not added to what is there.
  void take(Gemm& g) {
    if (behind) return behind()->take(g);
    taken = true;
    g.epilogue = epilogue;
    g.aux = aux->data.begin();
    g.output = output->data.begin();
    if (!dbias || !dbias.fresh() || size_of(dbias.dtype()) == 2) return;
    summed = true;
    g.bias_gradient = dbias.target().sum.data.begin();
  }
};

}  // namespace tapedeck
