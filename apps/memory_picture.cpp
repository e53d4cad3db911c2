#include "apps/memory_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "apps/svg.h"

namespace tapedeck {
namespace {

constexpr double mib = 1 << 20;

std::string size_text(double bytes) {
  return bytes < mib ? fmt::format("{:.1f} KiB", bytes / 1024) : fmt::format("{:.2f} MiB", bytes / mib);
}

// 1, 2 or 5 times a power of ten, so that at most `most` of them reach the end.
double round_step(double end, int most) {
  double step = 1e-9;
  for (int i = 0; step * most < end; ++i) step *= i % 3 == 1 ? 2.5 : 2;
  return step;
}

// The spans of a step lie in `whole`, its memory between these moments. Of a replayed step it is that of its last
// replay, in which the graph's memory counts as far as it was in use; around it the graph keeps all of it.
struct Shown {
  const Span* whole;
  int32_t begin, end;
};
Shown shown(const Tracer& tracer, const Span& step) {
  Shown shown{&step, step.begin, step.end};
  for (const Span& span : tracer.spans())
    if (!span.replayed && span.kind == Span::Kind::range && span.begin >= step.begin && span.end <= step.end &&
        span.end - span.begin >= 2 && tracer.text(span.name) == "replay")
      shown = {&span, span.begin + 1, span.end - 1};
  return shown;
}

}  // namespace

double MemoryTimeline::total(size_t moment) const {
  double sum = 0;
  for (const MemoryLayer& layer : layers) sum += layer.bytes[moment];
  return sum;
}

MemoryTimeline memory_timeline(const Tracer& tracer, const FixedMemory& fixed) {
  MemoryTimeline out;
  const std::vector<Span>& spans = tracer.spans();
  const auto step = std::find_if(spans.rbegin(), spans.rend(), [](const Span& s) { return s.parent < 0; });
  if (step == spans.rend()) return out;
  const Shown s = shown(tracer, *step);
  const auto& moments = tracer.moments();
  const auto at = [&](int32_t moment) -> const TraceMoment& { return moments[static_cast<size_t>(moment)]; };
  const double begin = at(s.begin).device;
  const double parameters = static_cast<double>(fixed.parameters), gradients = static_cast<double>(fixed.gradients);
  const double optimizer = static_cast<double>(fixed.optimizer);
  const double data = std::max(0.0, static_cast<double>(at(s.begin).bytes) - parameters - gradients - optimizer);
  out.layers = {{"parameters", "#3b6fb6", {}}, {"gradients", "#8fb8e0", {}},          {"optimizer", "#e08a2e", {}},
                {"data", "#b3aca4", {}},       {"saved for backward", "#3f9e5a", {}}, {"workspace", "#d1495b", {}}};
  for (int32_t m = s.begin; m <= s.end; ++m) {
    const double saved = static_cast<double>(std::max<int64_t>(0, at(m).saved - fixed.batch_kept));
    // Until the next moment, also what the op between took and gave back.
    const size_t held = m < s.end ? at(m + 1).peak : at(m).bytes;
    const double rest = static_cast<double>(held) - parameters - gradients - optimizer - data;
    out.seconds.push_back(at(m).device - begin);
    const double kept = std::clamp(saved, 0.0, std::max(0.0, rest));
    const double values[] = {parameters, gradients, optimizer, data, kept, std::max(0.0, rest - kept)};
    for (size_t i = 0; i < out.layers.size(); ++i) out.layers[i].bytes.push_back(values[i]);
    if (out.total(out.seconds.size() - 1) > out.total(out.peak)) out.peak = out.seconds.size() - 1;
  }
  std::map<std::string, double> savers;
  const Span* at_peak = nullptr;
  const auto shorter = [](const Span& a, const Span& b) { return a.end - a.begin < b.end - b.begin; };
  for (const Span& span : spans) {
    if (span.begin < s.begin || span.end > s.end) continue;
    if (span.kind == Span::Kind::range && span.parent == static_cast<int32_t>(s.whole - spans.data()))
      out.parts.push_back({tracer.text(span.name), at(span.begin).device - begin, at(span.end).device - begin});
    if (span.saved > 0 && span.way == Way::forward) savers[tracer.text(span.name)] += static_cast<double>(span.saved);
    const int32_t peak = s.begin + static_cast<int32_t>(out.peak);
    const bool work = span.kind == Span::Kind::op || span.kind == Span::Kind::product;
    if (work && span.begin <= peak && peak < span.end && (!at_peak || shorter(span, *at_peak))) at_peak = &span;
  }
  if (at_peak)
    out.at_peak = tracer.text(at_peak->name) +
                  (at_peak->way == Way::none ? "" : std::string(" ") + name(at_peak->way)) +
                  (tracer.text(at_peak->where).empty() ? "" : " at " + tracer.text(at_peak->where));
  out.savers.assign(savers.begin(), savers.end());
  std::stable_sort(out.savers.begin(), out.savers.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

std::string memory_svg(const MemoryTimeline& t, const std::string& title) {
  constexpr double width = 900, height = 470, left = 76, right = 640, top = 56, bottom = 380;
  Svg svg(width, height);
  svg.text(left, 22, title, 15);
  if (t.seconds.empty()) return svg.text(left, 60, "no step was profiled"), svg.finish();
  const double most = std::max(1.0, t.total(t.peak)), duration = std::max(1e-12, t.seconds.back());
  const double unit = most < mib ? 1024 : mib, step = round_step(most / unit, 6) * unit, scale = most * 1.06;
  const auto x = [&](double seconds) { return left + (right - left) * seconds / duration; };
  const auto y = [&](double bytes) { return bottom - (bottom - top) * bytes / scale; };
  svg.text(left, 42, fmt::format("peak {}{}", size_text(most), t.at_peak.empty() ? "" : ", in " + t.at_peak), 12,
           Svg::Anchor::start, "#555");
  for (double value = 0; value < scale; value += step) {
    svg.line(left, y(value), right, y(value), "#ddd");
    svg.text(left - 8, y(value) + 4, fmt::format("{:g} {}", value / unit, unit == mib ? "MiB" : "KiB"), 11,
             Svg::Anchor::end);
  }
  std::vector<double> below(t.seconds.size());
  for (const MemoryLayer& layer : t.layers) {
    std::vector<std::pair<double, double>> shape, back;
    for (size_t i = 0; i < t.seconds.size(); ++i) {
      const double above = below[i] + layer.bytes[i];
      if (i > 0) shape.emplace_back(x(t.seconds[i]), shape.back().second);  // it stays until the next op ends
      if (i > 0) back.emplace_back(x(t.seconds[i]), back.back().second);
      shape.emplace_back(x(t.seconds[i]), y(above));
      back.emplace_back(x(t.seconds[i]), y(below[i]));
      below[i] = above;
    }
    shape.insert(shape.end(), back.rbegin(), back.rend());
    svg.polygon(shape, layer.colour);
  }
  svg.line(left, bottom, right, bottom, "#444");
  const double at_peak = (t.seconds[t.peak] + t.seconds[std::min(t.peak + 1, t.seconds.size() - 1)]) / 2;
  svg.line(x(at_peak), top - 4, x(at_peak), bottom, "#222", 1, "3,3");
  double free_from = 0;  // names of narrow parts must not run into each other
  for (const auto& part : t.parts) {
    svg.rect({x(part.begin), bottom + 6, std::max(x(part.begin) + 0.8, x(part.end) - 1), bottom + 12}, "#888",
             part.name);
    const double middle = (x(part.begin) + x(part.end)) / 2, half = Svg::text_width(part.name, 11) / 2;
    if (x(part.end) - x(part.begin) < 6 && half > x(part.end) - x(part.begin)) continue;
    if (middle - half < free_from) continue;
    svg.text(middle, bottom + 26, part.name, 11, Svg::Anchor::middle);
    free_from = middle + half + 6;
  }
  svg.text(left, bottom + 44, "0", 11, Svg::Anchor::middle);
  svg.text(right, bottom + 44, fmt::format("{:.3g} ms", duration * 1e3), 11, Svg::Anchor::end);
  svg.text(left, bottom + 66,
           "Between two edges of the outline one op works; its height is the most that was in use meanwhile.", 11,
           Svg::Anchor::start, "#555");

  double line = top + 10;
  const double legend = right + 24;
  svg.text(legend, line, "at the peak", 12);
  for (size_t i = t.layers.size(); i-- > 0; line += 20) {
    svg.rect({legend, line + 10, legend + 12, line + 22}, t.layers[i].colour);
    svg.text(legend + 18, line + 20, t.layers[i].name, 12);
    svg.text(width - 14, line + 20, size_text(t.layers[i].bytes[t.peak]), 12, Svg::Anchor::end);
  }
  line += 36;
  svg.text(legend, line, "saved in forward, by op", 12);
  for (size_t i = 0; i < std::min<size_t>(t.savers.size(), 7); ++i) {
    line += 18;
    svg.text(legend, line, t.savers[i].first, 12);
    svg.text(width - 14, line, size_text(t.savers[i].second), 12, Svg::Anchor::end);
  }
  return svg.finish();
}

}  // namespace tapedeck
