#include "apps/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {
namespace {

std::string size_text(double bytes) {
  if (bytes <= 0) return "-";
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  return bytes < 1024 * 1024 ? fmt::format("{:.0f} KiB", bytes / 1024) : fmt::format("{:.1f} MiB", bytes / (1 << 20));
}

// A figure of three or four digits, or "-" for nothing.
std::string figure(double value) {
  if (value <= 0) return "-";
  return value < 0.01    ? fmt::format("{:.1e}", value)
         : value < 9.995 ? fmt::format("{:.2f}", value)
         : value < 99.95 ? fmt::format("{:.1f}", value)
                         : fmt::format("{:.0f}", value);
}

// What bounds it, of the share of its roof that it reaches.
std::string roof_text(const std::optional<double>& share) { return share ? fmt::format("{:.0f}%", 100 * *share) : "-"; }
std::string bound_text(const std::optional<double>& share, bool memory_bound) {
  if (!share) return "-";
  if (!memory_bound) return *share > 1 ? "arithmetic!" : "arithmetic";
  return *share > 1 ? "cache" : "memory";
}

template <class F>
Json number_or_null(bool known, F&& value) {
  return known ? Json(value()) : Json();
}

// The width of a column of names, in characters; names are cut where they are longer than 40.
size_t name_width(size_t longest) { return std::clamp<size_t>(longest, 12, 40); }
std::string cut(const std::string& name) { return name.size() <= 40 ? name : "…" + name.substr(name.size() - 39); }

}  // namespace

std::string op_table(const Profile& p, const std::optional<Peaks>& peaks, int64_t top) {
  const double steps = static_cast<double>(std::max<int64_t>(p.steps, 1));
  size_t width = 0;
  for (const OpRow& row : p.ops) width = std::max(width, row.label().size());
  if (p.by_kernels) width = std::max(width, std::string_view("idle: device waits for the host").size());
  width = name_width(width);
  std::string out = fmt::format("{:<{}} {:>7} {:>9} {:>9} {:>6} {:>8} {:>9} {:>8} {:>7} {:>7} {:>11} {:>8} {:>9}\n",
                                "op", width, "calls", "self ms", "total ms", "share", "MFLOP", "moves", "GFLOP/s",
                                "GB/s", "of roof", "bound by", "at most", "saved");
  const auto shown = std::min<size_t>(p.ops.size(), static_cast<size_t>(top));
  double rest = 0, sum = p.between + p.idle;
  for (size_t i = 0; i < p.ops.size(); ++i) {
    const OpRow& row = p.ops[i];
    sum += row.own;
    if (i >= shown) {
      rest += row.own;
      continue;
    }
    const std::optional<double> of_roof = row.of_roof(peaks);
    out +=
        fmt::format("{:<{}} {:>7} {:>9.3f} {:>9.3f} {:>5.1f}% {:>8} {:>9} {:>8} {:>7} {:>7} {:>11} {:>7.2f}x {:>9}\n",
                    cut(row.label()), width, row.calls, row.own / steps * 1e3, row.total / steps * 1e3, 100 * row.share,
                    figure(row.flops / steps / 1e6), size_text(row.bytes / steps), figure(p.logical ? 0 : row.gflops()),
                    figure(p.logical ? 0 : row.gb_per_s()), roof_text(of_roof),
                    bound_text(of_roof, of_roof && row.memory_bound(*peaks)), row.at_most(),
                    size_text(static_cast<double>(row.saved) / steps));
  }
  const auto line = [&](const std::string& name, double seconds) {
    out += fmt::format("{:<{}} {:>7} {:>9.3f} {:>9} {:>5.1f}%\n", name, width, "", seconds / steps * 1e3, "",
                       p.wall > 0 ? 100 * seconds / p.wall : 0);
  };
  if (shown < p.ops.size()) line(fmt::format("{} more", p.ops.size() - shown), rest);
  line("in no op", p.between);
  if (p.by_kernels) line("idle: device waits for the host", p.idle);
  line("sum", sum);
  return out;
}

std::string range_table(const Profile& p, int64_t top) {
  const double steps = static_cast<double>(std::max<int64_t>(p.steps, 1));
  size_t width = 0;
  for (const RangeRow& row : p.ranges) width = std::max(width, row.name.size());
  width = name_width(width);
  const bool again = std::any_of(p.ranges.begin(), p.ranges.end(), [](const RangeRow& r) { return r.again > 0; });
  std::string out = fmt::format("{:<{}} {:>7} {:>9} {:>6} {:>10} {:>11}", "range", width, "calls", "total ms", "share",
                                "forward ms", "backward ms");
  if (again) out += fmt::format(" {:>9}", "again ms");
  out += fmt::format(" {:>11} {:>8} {:>9} {:>8} {:>7} {:>7} {:>11} {:>8} {:>9}\n", "in no op ms", "MFLOP", "moves",
                     "GFLOP/s", "GB/s", "of roof", "bound by", "at most", "saved");
  for (size_t i = 0; i < std::min<size_t>(p.ranges.size(), static_cast<size_t>(top)); ++i) {
    const RangeRow& row = p.ranges[i];
    const auto ms = [&](double seconds) { return seconds > 0 ? fmt::format("{:.3f}", seconds / steps * 1e3) : "-"; };
    out += fmt::format("{:<{}} {:>7} {:>9} {:>5.1f}% {:>10} {:>11}", cut(row.name), width, row.calls, ms(row.total),
                       100 * row.share, ms(row.forward), ms(row.backward));
    if (again) out += fmt::format(" {:>9}", ms(row.again));
    const double seconds = row.total > 0 && !p.logical ? row.total : INFINITY;
    const std::optional<double> of_roof = row.of_roof();
    out += fmt::format(" {:>11} {:>8} {:>9} {:>8} {:>7} {:>7} {:>11} {:>7.2f}x {:>9}\n", ms(row.own),
                       figure(row.flops / steps / 1e6), size_text(row.bytes / steps), figure(row.flops / seconds / 1e9),
                       figure(row.bytes / seconds / 1e9), roof_text(of_roof), bound_text(of_roof, row.memory_bound()),
                       1 / (1 - row.share), size_text(static_cast<double>(row.saved) / steps));
  }
  if (std::ssize(p.ranges) > top) out += fmt::format("{} more\n", std::ssize(p.ranges) - top);
  return out;
}

Json profile_json(const Profile& p, const std::optional<Peaks>& peaks) {
  const double steps = static_cast<double>(std::max<int64_t>(p.steps, 1));
  Json ops = Json::array(), ranges = Json::array();
  for (const OpRow& row : p.ops) {
    const auto roof = row.of_roof(peaks);
    ops.push_back(
        {{"name", row.name},
         {"way", name(row.way)},
         {"calls", row.calls},
         {"self_ms", row.own / steps * 1e3},
         {"total_ms", row.total / steps * 1e3},
         {"share", row.share},
         {"flops", row.flops / steps},
         {"bytes", row.bytes / steps},
         {"gflops", number_or_null(row.flops > 0 && row.own > 0 && !p.logical, [&] { return row.gflops(); })},
         {"gb_per_s", number_or_null(row.bytes > 0 && row.own > 0 && !p.logical, [&] { return row.gb_per_s(); })},
         {"of_roof", roof ? Json(*roof) : Json()},
         {"bound", roof ? Json(row.memory_bound(*peaks) ? "memory" : "arithmetic") : Json()},
         {"at_most", row.at_most()},
         {"saved_bytes", static_cast<double>(row.saved) / steps},
         {"peak_bytes", row.peak}});
  }
  for (const RangeRow& row : p.ranges) {
    const auto roof = row.of_roof();
    const bool timed = row.total > 0 && !p.logical;
    ranges.push_back({{"name", row.name},
                      {"calls", row.calls},
                      {"total_ms", row.total / steps * 1e3},
                      {"share", row.share},
                      {"forward_ms", row.forward / steps * 1e3},
                      {"backward_ms", row.backward / steps * 1e3},
                      {"again_ms", row.again / steps * 1e3},
                      {"in_no_op_ms", row.own / steps * 1e3},
                      {"flops", row.flops / steps},
                      {"bytes", row.bytes / steps},
                      {"gflops", number_or_null(timed && row.flops > 0, [&] { return row.flops / row.total / 1e9; })},
                      {"gb_per_s", number_or_null(timed && row.bytes > 0, [&] { return row.bytes / row.total / 1e9; })},
                      {"of_roof", roof ? Json(*roof) : Json()},
                      {"bound", roof ? Json(row.memory_bound() ? "memory" : "arithmetic") : Json()},
                      {"at_most", 1 / (1 - row.share)},
                      {"saved_bytes", static_cast<double>(row.saved) / steps}});
  }
  return {{"steps", p.steps},
          {"step_ms", p.wall / steps * 1e3},
          {"in_no_op_ms", p.between / steps * 1e3},
          {"idle_ms", p.by_kernels ? Json(p.idle / steps * 1e3) : Json()},
          {"ops", std::move(ops)},
          {"ranges", std::move(ranges)}};
}

}  // namespace tapedeck
