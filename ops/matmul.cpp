// matmul   c = a · b                              da = dc · bᵀ,  db = aᵀ · dc
#include "engine/trace.h"
#include "ops/ops.h"
#include "ops/product.h"

namespace tapedeck {

Tensor matmul(const Tensor& a, const Tensor& b) {
  CHECK(a.rank() == b.rank() && (a.rank() == 2 || a.rank() == 3),
        "matmul: takes two matrices or two batches of them, got {} and {}", a.shape, b.shape);
  CHECK(a.shape[-1] == b.shape[-2] && (a.rank() == 2 || a.shape[0] == b.shape[0]), "matmul: {} does not fit {}",
        a.shape, b.shape);
  CHECK(a.dtype == b.dtype, "matmul: both sides need one type, got {} and {}: cast one", name(a.dtype), name(b.dtype));
  CHECK(a.device() == b.device(), "matmul: one side is on {}, the other on {}: move one with to()", name(a.device()),
        name(b.device()));
  const int64_t batch = a.rank() == 3 ? a.shape[0] : 1;
  Tensor c = Tensor::like(a, a.shape.with_last(b.cols()));
  Gemm g = product(a, b, batch);
  g.c = c.data.begin();
  if (result_needed({&a, &b}))
    gemm(a.device(), g);
  else
    trace_moves(0);
  const Want da = want(a), db = want(b);
  return record("matmul", c, {&a, &b},
                [da, db, batch, a = keep(db ? a : Tensor()), b = keep(da ? b : Tensor())](const Tensor& dc) {
                  if (da) gemm_into(da, product(dc, Transposed{*b}, batch));
                  if (db) gemm_into(db, product(Transposed{*a}, dc, batch));
                });
}

}  // namespace tapedeck
