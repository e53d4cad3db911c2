// Text in a picture: how much room it takes at most, and where it can stand without touching other text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "apps/svg.h"

namespace tapedeck {

double text_width(std::string_view text, double size);  // at most, in a plain sans-serif
Box text_area(double x, double y, std::string_view text, double size, Svg::Anchor anchor);  // y: the line it stands on
// The text, or as much of it as is no wider, with … behind.
std::string shortened(std::string_view text, double size, double width);

struct Placed {
  double x, y;  // of the line the text stands on
  Svg::Anchor anchor;
};

// Keeps what has been placed in a frame.
class Labels {
 public:
  explicit Labels(const Box& frame) : frame_(frame) {}
  void take(const Box& box) { taken_.push_back(box); }          // nothing else may touch it
  void avoid(double x, double y) { drawn_.push_back({x, y}); }  // a point of a curve: rather not above it
  const std::vector<Box>& taken() const { return taken_; }

  // A place near one of these points, within the frame, that touches nothing taken and covers the fewest points of
  // curves; it is then taken. False where there is none.
  bool place(const std::vector<std::pair<double, double>>& near, std::string_view text, double size, Placed& out);

 private:
  bool free(const Box& box) const;
  Box frame_;
  std::vector<Box> taken_;
  std::vector<std::pair<double, double>> drawn_;
};

}  // namespace tapedeck
