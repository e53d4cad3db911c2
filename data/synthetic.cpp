#include "data/synthetic.h"

#include <cmath>
#include <numbers>

#include "engine/random.h"

namespace tapedeck {
namespace {

constexpr uint64_t data_seed = 1;
constexpr int rows_per_class = 1000;

// In double, and rounded to float once at the end: mathematical libraries that differ in the last bit of a double then
// still give the same data, and with it the same split.
struct Draw {
  double uniform, normal;
};
Draw draw(uint32_t site, int64_t row) {
  const Random4 a = random_bits(data_seed, 0, site, 2 * row), b = random_bits(data_seed, 0, site, 2 * row + 1);
  const double u = 1 - uniform01(a.word[2], a.word[3]);  // in (0, 1]
  const double angle = 2 * std::numbers::pi * uniform01(b.word[0], b.word[1]);
  return {uniform01(a.word[0], a.word[1]), std::sqrt(-2 * std::log(u)) * std::cos(angle)};  // Box and Muller
}

}  // namespace

Dataset make_spirals(const DataOptions& options) {
  Dataset data{.name = "spirals", .shape = "2", .features = 2, .classes = 3};
  for (int64_t row = 0; row < data.classes * rows_per_class; ++row) {
    const int k = static_cast<int>(row % data.classes);
    const auto [radius, z] = draw(site_of("spirals"), row);
    const double angle = 4 * (k + radius) + 0.2 * z;
    data.values.push_back(static_cast<float>(radius * std::sin(angle)));
    data.values.push_back(static_cast<float>(radius * std::cos(angle)));
    data.labels.push_back(k);
  }
  split_by_content(data, options);
  check(data);
  return data;
}

Dataset make_blobs(const DataOptions& options) {
  Dataset data{.name = "blobs", .shape = "2", .features = 2, .classes = 4};
  for (int64_t row = 0; row < data.classes * rows_per_class; ++row) {
    const int k = static_cast<int>(row % data.classes);
    data.values.push_back(static_cast<float>((k & 1 ? 2 : -2) + draw(site_of("blobs.x"), row).normal));
    data.values.push_back(static_cast<float>((k & 2 ? 2 : -2) + draw(site_of("blobs.y"), row).normal));
    data.labels.push_back(k);
  }
  split_by_content(data, options);
  check(data);
  return data;
}

}  // namespace tapedeck
