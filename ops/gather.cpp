#include "ops/gather.h"

#include "engine/launch.h"

namespace tapedeck {
namespace {

template <class From, class To>
struct GatherRow {  // one row of the batch per Block
  const From* table;
  To* out;
  RowList list;
  float scale;
  int64_t cols;
  HD void operator()(Block b, int64_t row) const {
    const From* const from = table + list.rows[*list.cursor % list.length + row] * cols;
    To* const to = out + row * cols;
    const float by = scale;  // a copy, which `to` cannot alias: else the loop does not vectorise
    if constexpr (std::is_same_v<To, int32_t>)
      b.each(cols, [&](int64_t j) { to[j] = from[j]; });
    else
      b.each(cols, [&](int64_t j) { to[j] = To(Acc<To>(float(from[j]) * by)); });
  }
};

template <class From, class To>
void run(const Tensor& out, const From* table, float scale, const RowList& list) {
  const int64_t batch = out.shape[0];
  rows(out.device(), batch, GatherRow<From, To>{table, out.ptr<To>(), list, scale, out.count() / batch});
}

}  // namespace

void gather(const Tensor& out, const uint8_t* table, float scale, const RowList& list) {
  with_dtype(out.dtype, [&]<class T>() { run<uint8_t, T>(out, table, scale, list); });
}
void gather(const Tensor& out, const float* table, const RowList& list) {
  with_dtype(out.dtype, [&]<class T>() { run<float, T>(out, table, 1, list); });
}
void gather(const Tensor& out, const int32_t* table, const RowList& list) {
  run<int32_t, int32_t>(out, table, 1, list);
}

}  // namespace tapedeck
