// gather: the rows of a batch out of a table in the device's memory, by a list that lies there too, so that a captured
// step finds the next batch by itself:
//   out[r, j] = scale · table[list[(at mod length) + r], j]      in f32, then rounded to out's type
#pragma once
#include <cstdint>

#include "engine/tensor.h"

namespace tapedeck {

struct RowList {          // all of it in the device's memory
  const int32_t* rows;    // which rows of the table, in order
  int64_t length;         // of the list
  const int64_t* cursor;  // where in the list the batch begins, counted on from list to list
};

// out: [batch, cols] or [batch]; a batch must not reach beyond the end of the list.
void gather(const Tensor& out, const uint8_t* table, float scale, const RowList& list);
void gather(const Tensor& out, const float* table, const RowList& list);
void gather(const Tensor& out, const int32_t* table, const RowList& list);  // into i32

}  // namespace tapedeck
