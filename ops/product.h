// product(a, b): the Gemm of two tensors as matrices [rows, cols], for matmul and linear; and where a gradient's goes.
#pragma once
#include "engine/offer.h"

namespace tapedeck {

struct Transposed {  // of a tensor, as an operand of product
  const Tensor& x;
};

namespace detail {
struct Operand {
  Operand(const Tensor& x) : x(x), transposed(false) {}
  Operand(const Transposed& t) : x(t.x), transposed(true) {}
  const Tensor& x;
  bool transposed;
};
}  // namespace detail

// a · b without a place for the result yet. With batch > 1 each operand holds that many matrices, one behind the other.
inline Gemm product(const detail::Operand& a, const detail::Operand& b, int64_t batch = 1) {
  const int64_t a_rows = batch == 0 ? 0 : a.x.rows() / batch, b_rows = batch == 0 ? 0 : b.x.rows() / batch;
  Gemm g;
  g.m = a.transposed ? a.x.cols() : a_rows;
  g.k = a.transposed ? a_rows : a.x.cols();
  g.n = b.transposed ? b_rows : b.x.cols();
  g.transpose_a = a.transposed;
  g.transpose_b = b.transposed;
  g.dtype = a.x.dtype;
  g.a = a.x.data.begin();
  g.b = b.x.data.begin();
  g.batch = batch;
  g.stride_a = g.m * g.k;
  g.stride_b = g.k * g.n;
  g.stride_c = g.m * g.n;
  return g;
}

// Writes or adds the product to where a gradient gathers. Takes an offer to go through an activation on the way.
inline void gemm_into(const Want& want, Gemm g) {
  if (const std::shared_ptr<Offer> offer = want.offer(); offer && g.batch == 1) offer->take(g);
  const Want::Target target = want.target();
  g.c = target.sum.data.begin();
  g.c_dtype = target.sum.dtype;  // f32 where it gathers the gradient of a parameter's 16-bit copy
  g.beta = target.add ? 1 : 0;
  gemm(target.sum.device(), g);
}

}  // namespace tapedeck
