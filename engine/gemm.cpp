#include "engine/gemm.h"

#include "engine/backend.h"
#include "engine/check.h"

namespace tapedeck {

void gemm(Device device, const Gemm& g) {
  CHECK(g.dtype == DType::f32 || g.dtype == DType::f64, "gemm: takes f32 or f64, got {}", name(g.dtype));
  CHECK(g.m >= 0 && g.n >= 0 && g.k >= 0 && g.batch >= 0, "gemm: sizes cannot be negative, got {}x{}x{}", g.m, g.n,
        g.k);
  CHECK(g.epilogue == Epilogue::none || g.bias != nullptr, "gemm: this epilogue needs a bias");
  CHECK(g.aux == nullptr || (g.epilogue != Epilogue::none && g.batch == 1),
        "gemm: aux takes C + bias of one product with an epilogue, got a batch of {}", g.batch);
  if (g.m == 0 || g.n == 0 || g.batch == 0) return;
  backend(device).gemm(g);
}

}  // namespace tapedeck
