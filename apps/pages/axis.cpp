#include "apps/pages/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "apps/pages/label.h"

namespace tapedeck {
namespace {

constexpr double most = 1e300;  // beyond it differences are infinite

// Ends around [low, high] on the scale, with a margin; wider where they are one.
void widen(double& low, double& high, Scale scale) {
  if (scale == Scale::linear) {
    const bool positive = low >= 0;
    const double least = std::max(std::abs(high), std::abs(low)) * 1e-9;
    const double margin = high - low > least ? 0.04 * (high - low) : std::max(0.1 * std::abs(high), 1e-12);
    low -= margin, high += margin;
    if (positive) low = std::max(low, 0.0);
  } else {
    const double margin = std::max(0.04 * std::log10(high / low), high / low > 1.001 ? 0.01 : 0.1);
    low = std::max(low / std::pow(10, margin), 1e-300), high = std::min(high * std::pow(10, margin), most);
  }
}

std::string exponent_text(double value, int digits) {  // 1.5e-7 and not 1.5e-07
  std::string text = fmt::format("{:.{}e}", value, std::clamp(digits, 0, 15));
  const size_t e = text.find('e');
  std::string mantissa = text.substr(0, e);
  if (mantissa.find('.') != mantissa.npos) {
    mantissa.erase(mantissa.find_last_not_of('0') + 1);
    if (mantissa.back() == '.') mantissa.pop_back();
  }
  return fmt::format("{}e{}", mantissa, std::stoi(text.substr(e + 1)));
}

}  // namespace

std::string number_text(double value, int power) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  const int leading = static_cast<int>(std::floor(std::log10(size)));
  if (size >= 1e12 || (size < 1e-3 && power < -4)) return exponent_text(value, leading - power);
  const auto [unit, suffix, ten] = size >= 1e9                 ? std::tuple{1e9, "G", 9}
                                   : size >= 1e6               ? std::tuple{1e6, "M", 6}
                                   : size >= 1e4 && power >= 2 ? std::tuple{1e3, "k", 3}
                                                               : std::tuple{1.0, "", 0};
  std::string text = fmt::format("{:.{}f}", value / unit, std::clamp(ten - power, 0, 15));
  if (text.find('.') != text.npos && *suffix) {  // 20k, not 20.0k
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text + suffix;
}

std::string short_number(double value, int digits) {
  if (!std::isfinite(value)) return std::isnan(value) ? "not a number" : value > 0 ? "infinite" : "-infinite";
  const double size = std::abs(value);
  if (size != 0 && (size >= 1e7 || size < 1e-4)) return exponent_text(value, digits - 1);
  if (size == std::floor(size)) return fmt::format("{:.0f}", value);
  return size >= std::pow(10, digits) ? fmt::format("{:.0f}", value) : fmt::format("{:.{}g}", value, digits);
}

Ruler::Ruler(const Axis& axis, std::span<const double> values, double from, double to)
    : scale_(axis.scale), whole_(axis.whole), low_(INFINITY), high_(-INFINITY), from_(from), to_(to) {
  for (const double value : values)
    if (can_show(value)) low_ = std::min(low_, value), high_ = std::max(high_, value);
  if (low_ > high_) low_ = scale_ == Scale::linear ? 0 : 1, high_ = scale_ == Scale::linear ? 1 : 10;
  low_ = std::clamp(low_, -most, most), high_ = std::clamp(high_, -most, most);
  widen(low_, high_, scale_);
  if (axis.low && can_show(*axis.low)) low_ = *axis.low;
  if (axis.high && can_show(*axis.high)) high_ = *axis.high;
  if (!(low_ < high_)) high_ = low_ > 0 ? low_ * 1.1 : low_ + 1;
}

bool Ruler::can_show(double value) const { return std::isfinite(value) && (scale_ == Scale::linear || value > 0); }

double Ruler::place(double value) const {
  return scale_ == Scale::linear ? std::clamp(value, -most, most) : std::log10(value);
}

double Ruler::at(double value) const {
  const double low = place(low_) / 4, high = place(high_) / 4;  // quarters, so that their difference is finite
  const double share = (place(value) / 4 - low) / (high - low);
  return from_ + (to_ - from_) * std::clamp(share, -1e6, 1e6);
}

bool Ruler::fit(const std::vector<Tick>& ticks, double text_size) const {
  const bool beside = to_ > from_;  // pixels of y run downwards
  double end = -INFINITY;
  std::set<std::string> texts;
  for (const Tick& tick : ticks) {
    if (tick.text.empty()) continue;
    if (!texts.insert(tick.text).second) return false;  // too few digits
    const double half = (beside ? text_width(tick.text, text_size) + text_size : 1.6 * text_size) / 2;
    const double middle = beside ? at(tick.value) : -at(tick.value);
    if (middle - half < end) return false;
    end = middle + half;
  }
  return true;
}

std::vector<Tick> Ruler::round_ticks(int about) const {
  const double raw = std::max((high_ / 2 - low_ / 2) / about * 2, whole_ ? 1.0 : 0.0);
  int power = static_cast<int>(std::floor(std::log10(raw)));
  const double mantissa = raw / std::pow(10, power);
  const double factor = mantissa <= 1.0001 ? 1 : mantissa <= 2.0001 ? 2 : mantissa <= 5.0001 ? 5 : 10;
  const double step = factor * std::pow(10, power);
  if (factor == 10) ++power;
  std::vector<Tick> ticks;
  const double slack = 1e-9 * step;
  for (double i = std::ceil(low_ / step - 1e-9); i * step <= high_ + slack && ticks.size() < 100; ++i)
    ticks.push_back({i * step, number_text(i * step, power)});
  return ticks;
}

// Powers of ten or two, every so many of them; or within each decade the lines of 1 to 9, with texts at 1, 2 and 5.
std::vector<Tick> Ruler::power_ticks(int every, bool within_decade) const {
  std::vector<Tick> ticks;
  const double base = scale_ == Scale::log2 ? 2 : 10;
  const auto log = [&](double value) { return scale_ == Scale::log2 ? std::log2(value) : std::log10(value); };
  const auto text = [&](double value, int power) {
    if (scale_ == Scale::log)
      return value >= 1e4 || value < 1e-3 ? number_text(value, power) : fmt::format("{:g}", value);
    return power >= 0 && power <= 23  ? fmt::format("{:.0f}", value)
           : power < 0 && power >= -3 ? fmt::format("{:g}", value)
                                      : fmt::format("2^{}", power);
  };
  const int first = static_cast<int>(std::floor(log(low_) + 1e-9)) / every * every - every;
  for (int power = first; power <= log(high_) + 1e-9; power += within_decade ? 1 : every)
    for (int digit = 1; digit <= (within_decade ? 9 : 1); ++digit) {
      const double value = digit * std::pow(base, power);
      if (!within(value) && !(std::abs(log(value) - log(low_)) < 1e-9)) continue;
      const bool named = digit == 1 || digit == 2 || digit == 5;
      ticks.push_back({value, named ? text(value, power) : ""});
    }
  return ticks;
}

std::vector<Tick> Ruler::ticks(double text_size) const {
  const auto named = [](const std::vector<Tick>& ticks) {
    return std::count_if(ticks.begin(), ticks.end(), [](const Tick& t) { return !t.text.empty(); });
  };
  std::vector<Tick> one;
  if (scale_ != Scale::linear) {
    if (scale_ == Scale::log)
      if (auto ticks = power_ticks(1, true); named(ticks) >= 2 && fit(ticks, text_size)) return ticks;
    for (const int every : {1, 2, 3, 5, 10, 20, 50, 100, 200})
      if (auto ticks = power_ticks(every, false); fit(ticks, text_size)) {
        if (named(ticks) >= 2) return ticks;
        one = ticks;
        break;
      }
  }
  for (int about = 8; about >= 1; --about)
    if (auto ticks = round_ticks(about); fit(ticks, text_size) && named(ticks) >= 1) return ticks;
  return one;
}

}  // namespace tapedeck
