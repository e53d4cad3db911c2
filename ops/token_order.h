// The places of tokens in the order of their ids, so that a table's gradient can be summed id by id: always in the same
// order, and by one worker for each number, without atomic adds.
#pragma once
#include "engine/tensor.h"

namespace tapedeck {

struct TokenOrder {
  Tensor token;  // [N] i32: the places 0…N−1, sorted by id and, of one id, by place
  Tensor start;  // [V + 1] i32: those of id v are token[start[v]] … token[start[v + 1] − 1]
};

// ids: N i32 on any device. On a device with lanes those outside 0…V−1 come last and belong to no id; on the cpu there
// must be none. Nothing is read on the host but on the cpu, so it can be captured.
TokenOrder order_by_id(const Tensor& ids, int64_t v);

}  // namespace tapedeck
