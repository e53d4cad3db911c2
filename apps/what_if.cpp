#include "apps/what_if.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "apps/savers.h"

namespace tapedeck {
namespace {

std::string ms(double seconds) { return fmt::format("{:.3g} ms", seconds * 1e3); }

// "at most 1.13 times as fast"
std::string faster(double step, double win) { return fmt::format("at most {:.2f} times as fast", step / (step - win)); }

}  // namespace

std::vector<Chain> memory_bound_chains(const Tracer& tracer, const Peaks& peaks) {
  const std::vector<Span>& spans = tracer.spans();
  const std::vector<double> own = tracer.own_seconds();
  std::vector<bool> has_products(spans.size());  // what such an op does itself is not in one piece
  std::vector<size_t> order;
  for (size_t i = 0; i < spans.size(); ++i)
    if (spans[i].kind == Span::Kind::op || spans[i].kind == Span::Kind::product) order.push_back(i);
  for (const size_t i : order)
    if (spans[i].kind == Span::Kind::product && spans[i].parent >= 0)
      has_products[static_cast<size_t>(spans[i].parent)] = true;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return spans[a].end < spans[b].end; });
  std::map<std::pair<std::string, std::string>, Chain> found;
  std::vector<size_t> run;
  const auto end_run = [&] {
    if (run.size() > 1) {
      std::string ops;
      double sum = 0, longest = 0;
      for (const size_t i : run) {
        ops += (ops.empty() ? "" : ", ") + tracer.text(spans[i].name);
        sum += own[i], longest = std::max(longest, own[i]);
      }
      const Span& first = spans[run.front()];
      if (const std::string way = name(first.way); !way.empty()) ops += " " + way;
      const std::string where = without_numbers(tracer.text(first.where));
      Chain& chain = found[{ops, where}];
      chain.ops = ops, chain.where = where;
      chain.seconds += sum, chain.longest += longest;
    }
    run.clear();
  };
  for (const size_t i : order) {
    const Span& span = spans[i];
    if (span.kind == Span::Kind::op && span.bytes <= 0) continue;  // nothing was moved, as by a reshape
    const bool bound = span.kind == Span::Kind::op && span.way != Way::none && !has_products[i] &&
                       span.bytes * peaks.gemm.best > flops_of(tracer, span) * peaks.copy.best;
    if (!bound || (!run.empty() && spans[run.front()].way != span.way)) end_run();
    if (bound) run.push_back(i);
  }
  end_run();
  std::vector<Chain> chains;
  for (auto& [key, chain] : found) chains.push_back(chain);
  std::stable_sort(chains.begin(), chains.end(), [](const Chain& a, const Chain& b) { return a.win() > b.win(); });
  return chains;
}

std::vector<Win> possible_wins(const Profile& p, const std::vector<Chain>& chains, const std::optional<Peaks>& peaks,
                               bool has_graphs) {
  const double steps = static_cast<double>(std::max<int64_t>(p.steps, 1)), step = p.wall / steps;
  std::vector<Win> wins;
  double data = 0;
  for (const OpRow& row : p.ops)
    if (row.name == "data") data += row.own / steps;
  const double compute = step - data, hidden = std::min(data, compute);
  wins.push_back(
      {"prefetch", hidden,
       fmt::format("loading ahead (--workers): of {} a step waits {} for its batch; hidden behind the rest it "
                   "takes max({}, {}) = {}, {}",
                   ms(step), ms(data), ms(data), ms(compute), ms(std::max(data, compute)), faster(step, hidden))});
  const double fusion =
      std::accumulate(chains.begin(), chains.end(), 0.0, [](double sum, const Chain& c) { return sum + c.win(); }) /
      steps;
  if (peaks && chains.empty())
    wins.push_back(
        {"fusion", 0, "fusion: no two ops that memory bounds follow each other, so there is nothing to fuse"});
  else if (peaks)
    wins.push_back(
        {"fusion", fusion,
         fmt::format("fusion: chains of ops that memory bounds, each done in one pass that takes as long as its "
                     "slowest op, save {}, {}; the largest is {}{}, {}",
                     ms(fusion), faster(step, fusion), chains[0].ops,
                     chains[0].where.empty() ? "" : " at " + chains[0].where, ms(chains[0].win() / steps))});
  const double gaps = (p.by_kernels ? p.idle : p.between) / steps;
  wins.push_back(
      {"graph", gaps,
       fmt::format("launch gaps: {} of a step {}; {}, {}", ms(gaps),
                   p.by_kernels ? "the device waits for the host" : "are in no op",
                   p.replayed                   ? "with the step replayed already"
                   : has_graphs && p.by_kernels ? "a captured step (--graph on) closes most of these"
                   : has_graphs ? "a captured step (--graph on) closes these, and gaps within ops, which no span shows"
                                : "a captured step would close these, and this device captures none",
                   faster(step, gaps))});
  std::stable_sort(wins.begin(), wins.end(), [](const Win& a, const Win& b) { return a.seconds > b.seconds; });
  return wins;
}

}  // namespace tapedeck
