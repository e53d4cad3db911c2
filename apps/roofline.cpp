#include "apps/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {
namespace {

const char* colour_of(Way way) {
  constexpr const char* colours[] = {"#3b6fb6", "#d1495b", "#e08a2e", "#6d6875"};  // forward, backward, again, none
  return colours[static_cast<int>(way)];
}

struct Axis {  // logarithmic
  double low, high, from, to;
  double at(double value) const {
    const double share = (std::log(std::clamp(value, low, high)) - std::log(low)) / (std::log(high) - std::log(low));
    return from + (to - from) * share;
  }
};

Axis axis(double low, double high, double from, double to) {
  return {std::pow(10, std::floor(std::log10(low))), std::pow(10, std::ceil(std::log10(high))), from, to};
}

// How far the point is from the box: the end of a line between them.
std::pair<double, double> nearest(const Box& b, double x, double y) {
  return {std::clamp(x, b.left, b.right), std::clamp(y, b.top, b.bottom)};
}

}  // namespace

void place_labels(std::vector<Label>& labels, double size, const Box& frame, const std::vector<Box>& taken) {
  std::vector<Box> occupied = taken;
  for (const Label& label : labels)
    occupied.push_back(
        {label.x - label.radius, label.y - label.radius, label.x + label.radius, label.y + label.radius});
  for (Label& label : labels) {
    const double width = Svg::text_width(label.text, size), height = 1.15 * size;
    for (double away = 3; away < 260 && !label.placed; away += 5)
      for (int i = 0; i < 16 && !label.placed; ++i) {
        // Right and left first, then around: a direction that the box leans away from.
        constexpr double order[] = {0, 8, 1, 15, 7, 9, 2, 14, 6, 10, 3, 13, 5, 11, 4, 12};
        const double angle = order[i] * std::acos(-1.0) / 8, c = std::cos(angle), s = std::sin(angle);
        const double x = label.x + c * (label.radius + away) + (c - 1) / 2 * width;
        const double y = label.y - s * (label.radius + away) - (s + 1) / 2 * height;
        const Box box{x, y, x + width, y + height};
        const auto meets = [&](const Box& other) { return box.meets(other); };
        if (!box.within(frame) || std::any_of(occupied.begin(), occupied.end(), meets)) continue;
        label.placed = true, label.box = box;
        occupied.push_back(box);
      }
  }
}

std::string roofline_svg(const Profile& profile, const Peaks& peaks, const std::string& title) {
  constexpr double width = 860, height = 540, text_size = 11;
  const Box frame{72, 50, width - 24, height - 62};
  Svg svg(width, height);
  svg.text(frame.left, 22, title, 15);
  std::vector<const OpRow*> rows;
  for (const OpRow& row : profile.ops)
    if (row.flops > 0 && row.bytes > 0 && row.own > 0) rows.push_back(&row);
  const double ridge = peaks.gemm.best / peaks.copy.best;
  double least_x = ridge / 10, most_x = ridge * 10, least_y = peaks.gemm.best / 100, most_y = peaks.gemm.best * 1.2;
  for (const OpRow* row : rows) {
    const double x = row->flops / row->bytes, y = row->gflops();
    least_x = std::min(least_x, x / 1.5), most_x = std::max(most_x, x * 1.5);
    least_y = std::min(least_y, y / 1.5), most_y = std::max(most_y, y * 1.5);
  }
  const Axis across = axis(least_x, most_x, frame.left, frame.right),
             up = axis(least_y, most_y, frame.bottom, frame.top);
  for (double x = across.low; x <= across.high * 1.01; x *= 10) {
    svg.line(across.at(x), frame.top, across.at(x), frame.bottom, "#e4e4e4");
    svg.text(across.at(x), frame.bottom + 16, fmt::format("{:g}", x), 11, Svg::Anchor::middle);
  }
  for (double y = up.low; y <= up.high * 1.01; y *= 10) {
    svg.line(frame.left, up.at(y), frame.right, up.at(y), "#e4e4e4");
    svg.text(frame.left - 8, up.at(y) + 4, fmt::format("{:g}", y), 11, Svg::Anchor::end);
  }
  svg.text((frame.left + frame.right) / 2, frame.bottom + 34, "FLOP per byte moved (each number read and written once)",
           12, Svg::Anchor::middle);
  svg.text(frame.left, frame.top - 10, "GFLOP/s", 12, Svg::Anchor::middle);

  // The slope, cut off where it leaves the frame below, then the flat roof.
  const double start = std::max(across.low, up.low / peaks.copy.best);
  svg.line(across.at(start), up.at(start * peaks.copy.best), across.at(ridge), up.at(peaks.gemm.best), "#444", 2);
  svg.line(across.at(ridge), up.at(peaks.gemm.best), frame.right, up.at(peaks.gemm.best), "#444", 2);
  const std::string flat = fmt::format("{:.0f} GFLOP/s: the best product", peaks.gemm.best);
  const std::string slope = fmt::format("{:.1f} GB/s: copying, beyond the caches", peaks.copy.best);
  const double flat_y = up.at(peaks.gemm.best) - 6;
  svg.text(frame.right - 4, flat_y, flat, 12, Svg::Anchor::end, "#444");
  std::vector<Box> taken = {Svg::text_box(frame.right - 4, flat_y, flat, 12, Svg::Anchor::end)};
  taken.push_back({across.at(ridge), up.at(peaks.gemm.best) - 2, frame.right, up.at(peaks.gemm.best) + 2});
  // Boxes along the slope keep labels off it; its own name stands beside its lower end, where ops that slow are rare.
  const double x1 = across.at(start), y1 = up.at(start * peaks.copy.best), x2 = across.at(ridge),
               y2 = up.at(peaks.gemm.best);
  for (int i = 0; i < 60; ++i) {
    const double x = x1 + (x2 - x1) * i / 60, y = y1 + (y2 - y1) * i / 60;
    taken.push_back({x - 3, y - 3, x + 4, y + 4});
  }
  std::vector<Label> labels;
  labels.push_back({x1 + (x2 - x1) / 3, y1 + (y2 - y1) / 3, 3, slope});  // placed as the others are, and first
  for (const OpRow* row : rows)
    labels.push_back({across.at(row->flops / row->bytes), up.at(row->gflops()), 4 + 14 * std::sqrt(row->share),
                      row->label() + (row->share < 0.005 ? " <1%" : fmt::format(" {:.0f}%", 100 * row->share))});
  place_labels(labels, text_size, {frame.left + 2, frame.top + 2, frame.right - 2, frame.bottom - 2}, taken);
  for (size_t i = labels.size(); i-- > 0;) {
    const Label& label = labels[i];
    if (label.placed) {
      const auto [x, y] = nearest(label.box, label.x, label.y);
      if (std::hypot(x - label.x, y - label.y) > label.radius + 6) svg.line(label.x, label.y, x, y, "#999", 0.8);
    }
    if (i > 0) {
      const OpRow& row = *rows[i - 1];
      svg.circle(label.x, label.y, label.radius, colour_of(row.way),
                 fmt::format("{}: {:.3g} GFLOP/s, {:.3g} GB/s", row.label(), row.gflops(), row.gb_per_s()));
    }
  }
  size_t missing = 0;
  for (const Label& label : labels) {
    if (label.placed) svg.text(label.box.left, label.box.bottom - 0.3 * text_size, label.text, text_size);
    missing += !label.placed;
  }
  std::string note = "Area: share of the step. Above the slope: numbers that stay in the caches.";
  if (missing > 0) note += fmt::format(" {} labels have no room.", missing);
  svg.text(frame.left, height - 10, note, 11, Svg::Anchor::start, "#555");
  double legend = frame.right;
  for (const Way way : {Way::none, Way::again, Way::backward, Way::forward}) {
    const std::string text = way == Way::none ? "update" : name(way);
    if (std::none_of(rows.begin(), rows.end(), [way](const OpRow* row) { return row->way == way; })) continue;
    legend -= Svg::text_width(text, 11);
    svg.text(legend, height - 10, text, 11);
    legend -= 9;
    svg.circle(legend, height - 14, 4.5, colour_of(way));
    legend -= 14;
  }
  return svg.finish();
}

}  // namespace tapedeck
