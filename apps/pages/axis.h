// An axis of a chart: where it ends, where a value lies on it, and ticks that a reader can trust: 1, 2 or 5 times a
// power of ten on a linear axis, the same within few decades or whole decades on a logarithmic one, powers of two on a
// binary one (batch sizes), as many as fit.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tapedeck {

enum class Scale : uint8_t { linear, log, log2 };

struct Axis {
  std::string title = {};  // with its unit: "training time, s"
  Scale scale = Scale::linear;
  std::optional<double> low = {}, high = {};  // ends that are asked for; else the data's, with a margin
  // Curves that run away are cut: a series that diverged, or ends above 100 times its first value, counts for the end
  // of this axis only up to twice its first value.
  bool robust = false;
  bool whole = false;  // counts: no ticks between whole numbers
};

struct Tick {
  double value;
  std::string text;  // empty: a line without a number
};

class Ruler {
 public:
  // Ends from those values that the axis can show: finite, above 0 on a logarithmic one. `from` and `to` are the pixels
  // of the low and the high end.
  Ruler(const Axis& axis, std::span<const double> values, double from, double to);

  bool can_show(double value) const;  // finite, and above 0 on a logarithmic axis
  bool within(double value) const { return can_show(value) && value >= low_ && value <= high_; }
  double at(double value) const;  // its pixel, also beyond the ends; of a value that can be shown
  double low() const { return low_; }
  double high() const { return high_; }

  // The most ticks whose texts of this size leave each other room: beside each other (x) or one above the other (y).
  std::vector<Tick> ticks(double text_size) const;

 private:
  double place(double value) const;  // on the scale: log10, log2 or itself
  bool fit(const std::vector<Tick>& ticks, double text_size) const;
  std::vector<Tick> round_ticks(int about) const;
  std::vector<Tick> power_ticks(int every, bool within_decade) const;
  Scale scale_;
  bool whole_;
  double low_, high_, from_, to_;
};

// "0.25", "12000", "1.5M", "3e-5": as many digits as tell values apart that are a step of ten to the `power` apart.
std::string number_text(double value, int power);
// A number for a tooltip or a table, of about so many digits: "0.1235", "1.2e6".
std::string short_number(double value, int digits = 4);

}  // namespace tapedeck
