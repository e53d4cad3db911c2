// The roofline as a picture: what this machine allows, and where the ops of a step are.  [Williams et al. 2009]
//   GFLOP/s <= min(gemm peak, copy peak · FLOP / byte)
#pragma once
#include <string>
#include <vector>

#include "apps/peaks.h"
#include "apps/profile_rows.h"
#include "apps/svg.h"

namespace tapedeck {

std::string roofline_svg(const Profile& profile, const Peaks& peaks, const std::string& title);

// Where labels go that belong to points: near them, over no point, no other label and not out of the frame. A label for
// which there is no such place has none.
struct Label {
  double x, y;  // of the point
  double radius;
  std::string text;
  bool placed = false;
  Box box{};  // once it is placed
};
void place_labels(std::vector<Label>& labels, double size, const Box& frame, const std::vector<Box>& taken);

}  // namespace tapedeck
