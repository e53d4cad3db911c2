#include "apps/peaks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <vector>

#include "apps/machine.h"
#include "apps/meter.h"
#include "apps/record.h"
#include "apps/stats.h"
#include "engine/block.h"
#include "engine/cache_folder.h"
#include "engine/gemm.h"
#include "engine/parallel.h"
#include "engine/tensor.h"

namespace tapedeck {
namespace {

// Runs `work` for about `seconds` after one warm-up, and returns amount per second of each run, in units of 1e9.
template <class F>
std::vector<double> rates(double amount, double seconds, const F& work) {
  work();
  std::vector<double> out;
  const double end = steady_seconds() + seconds;
  while (out.size() < 5 || steady_seconds() < end) {
    const double begin = steady_seconds();
    work();
    out.push_back(amount / (steady_seconds() - begin) / 1e9);
  }
  return out;
}

Peak peak_of(const std::vector<double>& values, std::string how) {
  return {*std::max_element(values.begin(), values.end()), median(values), static_cast<int>(values.size()),
          std::move(how)};
}

Peak gemm_peak() {
  Peak best;
  for (const int64_t size : {512, 1024, 1536}) {
    const Tensor a = Tensor::full({size, size}, DType::f32, Device::cpu, 0.5),
                 b = Tensor::full({size, size}, DType::f32, Device::cpu, 0.25);
    const Tensor c = Tensor::like(a);
    const double n = static_cast<double>(size);
    const auto run = [&] {
      gemm(Device::cpu,
           {.m = size, .n = size, .k = size, .a = a.data.begin(), .b = b.data.begin(), .c = c.data.begin()});
    };
    const Peak here = peak_of(rates(2 * n * n * n, 0.3, run), fmt::format("{0}x{0}x{0}, f32", size));
    if (here.best > best.best) best = here;
    if (2 * n * n * n / 1e9 / here.best > 0.1) break;  // a slow build: larger products would take seconds each
  }
  return best;
}

Peak copy_peak() {
  const int64_t count = 32 << 20;  // 128 MiB an array
  const Tensor from = Tensor::full({count}, DType::f32, Device::cpu, 1), to = Tensor::like(from);
  const auto run = [&] {
    parallel_ranges(count, 1, [source = from.ptr<float>(), target = to.ptr<float>()](int64_t begin, int64_t end) {
      SIMD for (int64_t i = begin; i < end; ++i) target[i] = source[i];
    });
  };
  return peak_of(rates(2.0 * static_cast<double>(from.bytes()), 0.3, run), "128 MiB to 128 MiB, read + written");
}

std::filesystem::path cache_file() { return cache_folder() / "peaks.json"; }

std::string fingerprint() {
  const Build build = build_info();
  return fmt::format("{}; {} threads; {}; {}; {}", this_machine().processor, threads(), build.compiler, build.flags,
                     build.libraries);
}

Json read_cache() {  // an unreadable or foreign file counts as empty: it only saves two seconds
  std::error_code none;
  if (!std::filesystem::is_regular_file(cache_file(), none)) return {};
  std::ifstream file(cache_file());
  Json cache = Json::parse(file, nullptr, false);
  if (!cache.is_object() || !cache.contains("format_version") || cache["format_version"] != kFormatVersion) return {};
  if (!cache.contains("peaks") || !cache["peaks"].is_object()) return {};
  return cache;
}

Json to_json(const Peak& p) { return {{"best", p.best}, {"median", p.median}, {"n", p.n}, {"how", p.how}}; }
Peak peak_from(const Json& j) { return {j.at("best"), j.at("median"), j.at("n"), j.at("how")}; }

// The better of each: a ceiling that was measured lower on a busy machine is none.
Peak better(const Peak& a, const Peak& b) { return b.best > a.best ? b : a; }

void store(const Peaks& peaks) {
  Json cache = read_cache();
  cache["format_version"] = kFormatVersion;
  cache["peaks"][fingerprint()] = {{"gemm_gflops", to_json(peaks.gemm)}, {"copy_gb_per_s", to_json(peaks.copy)}};
  try {
    std::filesystem::create_directories(cache_file().parent_path());
    write_file(cache_file(), json_text(cache));
  } catch (const std::exception&) {
    // a home that cannot be written only means measuring again
  }
}

}  // namespace

Peaks measure_peaks() {
  Peaks peaks{gemm_peak(), copy_peak()};
  if (const std::optional<Peaks> known = cached_peaks())
    peaks = {better(peaks.gemm, known->gemm), better(peaks.copy, known->copy)};
  store(peaks);
  return peaks;
}

std::optional<Peaks> cached_peaks() {
  try {
    const Json cache = read_cache();
    if (cache.is_null() || !cache["peaks"].contains(fingerprint())) return {};
    const Json& entry = cache["peaks"][fingerprint()];
    return Peaks{peak_from(entry.at("gemm_gflops")), peak_from(entry.at("copy_gb_per_s"))};
  } catch (const nlohmann::json::exception&) {
    return {};
  }
}

}  // namespace tapedeck
