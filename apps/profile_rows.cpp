#include "apps/profile_rows.h"

#include <algorithm>
#include <functional>
#include <set>

namespace tapedeck {
namespace {

// "f.f.f" -> "f": a range inside itself is the same range.
std::string without_repeats(const std::string& path) {
  std::string out, last;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (!part.empty() && part != last) out += (out.empty() ? "" : ".") + part;
    last = part;
    begin = end + 1;
  }
  return out;
}

struct Counted {
  std::string_view op;
  double forward, backward;
};
// Operations as one would count them on paper, an exponential or a root as one. An order of magnitude is what matters:
// every one of these is bound by memory.
constexpr Counted counted[] = {
    {"add", 1, 1},           {"sub", 1, 1},         {"mul", 1, 2},
    {"bias", 1, 1},          {"relu", 1, 1},        {"gelu", 10, 14},
    {"gelu_erf", 8, 12},     {"silu", 4, 6},        {"tanh", 4, 3},
    {"sigmoid", 4, 3},       {"exp", 1, 1},         {"log", 1, 1},
    {"softmax", 5, 4},       {"log_softmax", 5, 4}, {"masked_softmax", 6, 5},
    {"layer_norm", 8, 14},   {"rms_norm", 5, 10},   {"add_layer_norm", 9, 14},
    {"add_rms_norm", 6, 10}, {"dropout", 2, 2},     {"mse", 3, 2},
    {"sum", 1, 1},           {"mean", 1, 1},        {"scale", 1, 1},
    {"embedding", 0, 1},     {"linear", 0, 1},
};
constexpr Counted updates[] = {
    {"gradient norm", 2, 0}, {"sgd", 4, 0},   {"momentum", 6, 0}, {"adam", 14, 0},
    {"adamw", 16, 0},        {"lars", 11, 0}, {"lamb", 32, 0},    {"made again", 5, 0},
};

bool is_range(const Span& span) { return span.kind == Span::Kind::range || span.kind == Span::Kind::scope; }

template <class Row>
double key_of(const std::string& by, bool is_op, const Row& row) {
  if (by == "total") return row.total;
  if (by == "calls") return static_cast<double>(row.calls);
  if (by == "flops") return row.flops;
  if (by == "bytes") return row.bytes;
  if (by == "saved") return static_cast<double>(row.saved);
  return is_op ? row.own : row.total;
}

template <class Row>
void sort_by(std::vector<Row>& rows, const std::string& by, bool is_op) {
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    return by == "name" ? a.name < b.name : key_of(by, is_op, a) > key_of(by, is_op, b);
  });
}

class Reader {
 public:
  Reader(const Tracer& tracer, const std::optional<Peaks>& peaks)
      : tracer_(tracer), peaks_(peaks), spans_(tracer.spans()), own_(tracer.own_seconds()) {}

  Profile read() {
    profile_.by_kernels = tracer_.by_kernels();
    profile_.logical = tracer_.device() == Device::emulated && !profile_.by_kernels;
    profile_.wall = profile_.between = tracer_.seconds_of_nobody();
    for (size_t i = 0; i < spans_.size(); ++i) {
      const Span& span = spans_[i];
      profile_.replayed |= span.replayed;
      if (span.parent < 0) {
        ++profile_.steps;
        profile_.wall += tracer_.seconds(span) + tracer_.idle_seconds(span);
        profile_.idle += tracer_.idle_seconds(span);
      }
      const bool data = is_data(span);
      if (data) {  // what it waits for is no kernel
        own_[i] += tracer_.idle_seconds(span);
        profile_.idle -= tracer_.idle_seconds(span);
      }
      if (is_range(span) && !data)
        profile_.between += own_[i];
      else
        add_op(i);
      add_to_ranges(i);
    }
    for (OpRow& row : profile_.ops) row.share = profile_.wall > 0 ? row.own / profile_.wall : 0;
    for (RangeRow& row : profile_.ranges) row.share = profile_.wall > 0 ? row.total / profile_.wall : 0;
    return std::move(profile_);
  }

 private:
  bool is_data(const Span& span) const {  // a range that counts as an op: no op fetches a batch
    return span.kind == Span::Kind::range && tracer_.text(span.name) == "data";
  }
  bool same_op(const Span& a, const Span& b) const { return a.kind == b.kind && a.name == b.name && a.way == b.way; }

  void add_op(size_t i) {
    const Span& span = spans_[i];
    const auto [found, is_new] = op_rows_.try_emplace({span.name, span.way}, profile_.ops.size());
    if (is_new) profile_.ops.push_back({tracer_.text(span.name), span.way});
    OpRow& row = profile_.ops[found->second];
    ++row.calls;
    row.own += own_[i];
    row.flops += flops_of(tracer_, span);
    row.bytes += span.bytes;
    row.saved += span.saved;
    for (int32_t m = span.begin + 1; m <= span.end; ++m)
      row.peak = std::max(row.peak, tracer_.moments()[static_cast<size_t>(m)].peak);
    bool inside_itself = false;
    for (int32_t p = span.parent; p >= 0 && !inside_itself; p = spans_[static_cast<size_t>(p)].parent)
      inside_itself = same_op(spans_[static_cast<size_t>(p)], span);
    if (!inside_itself) row.total += tracer_.seconds(span) + (is_data(span) ? tracer_.idle_seconds(span) : 0);
  }

  RangeRow& range(const std::string& name) {
    const auto [found, is_new] = range_rows_.try_emplace(name, profile_.ranges.size());
    if (is_new) profile_.ranges.push_back({name});
    return profile_.ranges[found->second];
  }

  // The ranges that a span's own time belongs to: those around it, and the parts of its path, which a node of the
  // backward pass has from forward. Outermost first, none twice.
  const std::vector<std::string>& ranges_of(const Span& span) {
    std::vector<int32_t> around;
    for (const Span* s = &span;; s = &spans_[static_cast<size_t>(s->parent)]) {
      if (s->kind == Span::Kind::range && s->parent >= 0) around.push_back(s->name);
      if (s->parent < 0) break;
    }
    auto [found, is_new] = names_.try_emplace({around, span.where});
    std::vector<std::string>& names = found->second;
    if (!is_new) return names;
    const auto add = [&](const std::string& name) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    std::reverse(around.begin(), around.end());
    for (const int32_t name : around) add(tracer_.text(name));
    const std::string path = without_repeats(tracer_.text(span.where));
    for (size_t end = 0; end < path.size();) {
      end = std::min(path.find('.', end + 1), path.size());
      add(path.substr(0, end));
    }
    return names;
  }

  // Of a range's own time: that of the part of the step, or of the op of the backward pass, around it.
  Way way_of(const Span& span) const {
    if (!is_range(span)) return span.way;
    for (const Span* s = &span;; s = &spans_[static_cast<size_t>(s->parent)]) {
      if (s->kind == Span::Kind::op && s->way == Way::backward) return Way::again;
      if (s->kind == Span::Kind::range)
        for (const Way way : {Way::forward, Way::backward})
          if (tracer_.text(s->name) == name(way)) return way;
      if (s->parent < 0) return Way::none;
    }
  }

  void add_to_ranges(size_t i) {
    const Span& span = spans_[i];
    const Way way = way_of(span);
    const double flops = flops_of(tracer_, span);
    for (const std::string& name : ranges_of(span)) {
      RangeRow& row = range(name);
      row.total += own_[i];
      if (way == Way::forward) row.forward += own_[i];
      if (way == Way::backward) row.backward += own_[i];
      if (way == Way::again) row.again += own_[i];
      row.flops += flops;
      row.bytes += span.bytes;
      if (peaks_) {
        const double least = std::max(flops / peaks_->gemm.best, span.bytes / peaks_->copy.best) / 1e9;
        row.roof += least;
        if (span.bytes * peaks_->gemm.best > flops * peaks_->copy.best) row.memory_roof += least;
      }
      if (span.way != Way::again) row.saved += span.saved;  // that of a part which runs again is soon gone
    }
    if (!is_range(span) || span.parent < 0) return;
    RangeRow& row =
        range(span.kind == Span::Kind::range ? tracer_.text(span.name) : without_repeats(tracer_.text(span.where)));
    ++row.calls;
    if (!is_data(span)) row.own += own_[i];
  }

  const Tracer& tracer_;
  const std::optional<Peaks> peaks_;
  const std::vector<Span>& spans_;
  std::vector<double> own_;
  Profile profile_;
  std::map<std::pair<int32_t, Way>, size_t> op_rows_;
  std::map<std::string, size_t> range_rows_;
  std::map<std::pair<std::vector<int32_t>, int32_t>, std::vector<std::string>> names_;
};

}  // namespace

double flops_per_element(std::string_view op, Way way) {
  for (const Counted& c : counted)
    if (c.op == op) return way == Way::backward ? c.backward : c.forward;
  for (const Counted& c : updates)
    if (c.op == op) return c.forward;
  return 0;
}

double flops_of(const Tracer& tracer, const Span& span) {
  if (span.flops > 0 || span.bytes <= 0 || span.kind != Span::Kind::op) return span.flops;
  return flops_per_element(tracer.text(span.name), span.way) * static_cast<double>(span.elements);
}

std::string OpRow::label() const { return way == Way::none ? name : name + " " + tapedeck::name(way); }

std::optional<double> OpRow::of_roof(const std::optional<Peaks>& peaks) const {
  if (!peaks || own <= 0 || (flops <= 0 && bytes <= 0)) return {};
  return std::max(flops / peaks->gemm.best, bytes / peaks->copy.best) / 1e9 / own;
}

std::optional<double> RangeRow::of_roof() const {
  if (roof <= 0 || total <= 0) return {};
  return roof / total;
}

Profile profile_of(const Tracer& tracer, const std::optional<Peaks>& peaks) { return Reader(tracer, peaks).read(); }

void sort_rows(Profile& profile, const std::string& by) {
  sort_by(profile.ops, by, true);
  sort_by(profile.ranges, by, false);
}

}  // namespace tapedeck
