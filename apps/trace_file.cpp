#include "apps/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "apps/record.h"

namespace tapedeck {
namespace {

constexpr int process = 1, host_line = 1, device_line = 2;

const char* category(Span::Kind kind) {
  constexpr const char* names[] = {"range", "scope", "op", "gemm"};
  return names[static_cast<int>(kind)];
}

// In whole nanoseconds.
double microseconds(double seconds) { return std::round(seconds * 1e9) / 1e3; }

class Writer {
 public:
  Writer(const Tracer& tracer, size_t limit) : tracer_(tracer), limit_(limit) {
    if (!tracer.moments().empty()) origin_ = tracer.moments().front().host;
  }

  void add(const Json& event) {
    if (out_.size() > limit_) return ++left_out_, void();
    out_ += (out_.empty() ? "" : ",\n") + json_text(event, -1);
  }
  void name(const char* what, int line, const std::string& text) {
    Json event = {{"name", what}, {"ph", "M"}, {"pid", process}};
    if (line > 0) event["tid"] = line;
    event["args"] = {{"name", text}};
    add(event);
  }
  double host(int32_t moment) const { return microseconds(at(moment).host - origin_); }
  double device(int32_t moment) const { return microseconds(at(moment).device); }

  void slice(const Span& span, int line, double begin, double end) {
    Json args = {{"way", tapedeck::name(span.way)}, {"where", tracer_.text(span.where)}};
    if (span.flops > 0) args["flops"] = span.flops;
    if (span.bytes > 0) args["bytes"] = span.bytes;
    if (span.saved > 0) args["saved_bytes"] = span.saved;
    if (span.kind == Span::Kind::product) args["m"] = span.m, args["n"] = span.n, args["k"] = span.k;
    add({{"name", tracer_.text(span.name)},
         {"cat", category(span.kind)},
         {"ph", "X"},
         {"ts", begin},
         {"dur", std::max(0.0, std::round((end - begin) * 1e3) / 1e3)},
         {"pid", process},
         {"tid", line},
         {"args", std::move(args)}});
  }
  void beside(const SpanBeside& span, int line) {
    add({{"name", span.name},
         {"cat", "beside"},
         {"ph", "X"},
         {"ts", microseconds(span.begin - origin_)},
         {"dur", microseconds(span.end - span.begin)},
         {"pid", process},
         {"tid", line}});
  }
  void kernel(const KernelRecord& k, const Span* op, int line) {
    constexpr const char* kinds[] = {"kernel", "copy", "fill"};
    Json args = {{"correlation", k.correlation}, {"stream", k.stream}};
    if (k.graph_node != 0) args["graph_node"] = k.graph_node;
    if (op) args["op"] = tracer_.text(op->name), args["way"] = tapedeck::name(op->way);
    if (op) args["where"] = tracer_.text(op->where);
    add({{"name", k.name},
         {"cat", kinds[static_cast<int>(k.kind)]},
         {"ph", "X"},
         {"ts", at_time(k.begin)},
         {"dur", std::round(static_cast<double>(k.end - k.begin)) / 1e3},
         {"pid", process},
         {"tid", line},
         {"args", std::move(args)}});
  }
  // From the call on the host, which the op contains that asked for it.
  void arrow(const KernelRecord& k, int32_t moment, int line) {
    arrow(k.correlation, k.asked != 0 ? at_time(k.asked) : host(moment), at_time(k.begin), line);
  }
  void arrow(const Span& span, size_t id) { arrow(id, host(span.begin), device(span.begin), device_line); }
  void arrow(size_t id, double from, double to, int to_line) {
    const auto end = [&](const char* phase, double at, int line) {
      Json event = {{"name", "runs"}, {"cat", "launch"}, {"ph", phase}, {"id", id},
                    {"ts", at},       {"pid", process},  {"tid", line}};
      if (*phase == 'f') event["bp"] = "e";
      add(event);
    };
    end("s", from, host_line);
    end("f", to, to_line);
  }
  void memory(int32_t moment, double at_time) {
    const auto saved = std::min<int64_t>(at(moment).saved, static_cast<int64_t>(at(moment).bytes));
    add({{"name", "memory"},
         {"ph", "C"},
         {"ts", at_time},
         {"pid", process},
         {"args", {{"saved", saved}, {"other", static_cast<int64_t>(at(moment).bytes) - saved}}}});
  }
  TraceText text() {
    return {"{\"displayTimeUnit\": \"ns\", \"otherData\": " +
                json_text({{"format_version", kFormatVersion}, {"events_left_out", left_out_}}, -1) +
                ", \"traceEvents\": [\n" + out_ + "\n]}\n",
            left_out_};
  }

 private:
  double at_time(int64_t nanoseconds) const {  // of the host's clock
    return static_cast<double>(nanoseconds - std::llround(origin_ * 1e9)) / 1e3;
  }
  const TraceMoment& at(int32_t moment) const { return tracer_.moments()[static_cast<size_t>(moment)]; }
  const Tracer& tracer_;
  const size_t limit_;
  double origin_ = 0;
  size_t left_out_ = 0;
  std::string out_;
};

// The innermost op at each moment, or null. `order`: what contains the other first.
std::vector<const Span*> ops_at_moments(const Tracer& tracer, const std::vector<size_t>& order) {
  std::vector<const Span*> ops(tracer.moments().size(), nullptr);
  for (const size_t i : order) {
    const Span& span = tracer.spans()[i];
    if (span.kind == Span::Kind::op) std::fill(ops.begin() + span.begin, ops.begin() + span.end, &span);
  }
  return ops;
}

// A line for each stream, in the order in which they appear. Returns the last line.
int write_kernels(Writer& writer, const Tracer& tracer, const std::vector<size_t>& order) {
  const std::vector<const Span*> ops = ops_at_moments(tracer, order);
  std::map<uint32_t, int> lines;
  for (const KernelRecord& k : tracer.kernels()) {
    const auto [found, is_new] = lines.try_emplace(k.stream, device_line + static_cast<int>(lines.size()));
    if (is_new)
      writer.name("thread_name", found->second, fmt::format("{}, stream {}", name(tracer.device()), k.stream));
    const int32_t moment = tracer.moment_of(k);
    writer.kernel(k, moment >= 0 ? ops[static_cast<size_t>(moment)] : nullptr, found->second);
    if (moment >= 0) writer.arrow(k, moment, found->second);
  }
  return device_line + std::max(0, static_cast<int>(lines.size()) - 1);
}

}  // namespace

TraceText trace_text(const Tracer& tracer, const std::string& thread, size_t limit) {
  Writer writer(tracer, limit);
  const bool later = tracer.device() != Device::cpu && !tracer.by_kernels();
  writer.name("process_name", 0, std::string("tapedeck on ") + name(tracer.device()));
  writer.name("thread_name", host_line, thread);
  if (later) writer.name("thread_name", device_line, std::string(name(tracer.device())) + ", compute stream");
  const std::vector<Span>& spans = tracer.spans();
  std::vector<size_t> order(spans.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {  // what contains the other first
    return spans[a].begin != spans[b].begin ? spans[a].begin < spans[b].begin : spans[a].end > spans[b].end;
  });
  for (const size_t i : order) {
    const Span& span = spans[i];
    if (span.replayed) continue;  // the host was in none of it: its kernels say whose they are
    const bool work = span.kind == Span::Kind::op || span.kind == Span::Kind::product;
    writer.slice(span, host_line, writer.host(span.begin), writer.host(span.end));
    if (later && work) {
      writer.slice(span, device_line, writer.device(span.begin), writer.device(span.end));
      writer.arrow(span, i);
    }
    if (work) writer.memory(span.end, writer.host(span.end));
  }
  const int last_line = tracer.by_kernels() ? write_kernels(writer, tracer, order) : device_line;
  int named = 0;
  if (tracer.device() == Device::emulated) return writer.text();  // whose times are not the host's
  for (const SpanBeside& span : tracer.beside()) {
    const int line = last_line + span.thread;
    for (; named < span.thread; ++named)
      writer.name("thread_name", last_line + named + 1, fmt::format("worker {}", named + 1));
    writer.beside(span, line);
  }
  return writer.text();
}

}  // namespace tapedeck
