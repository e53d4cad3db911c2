#include "apps/pages/checklist.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "apps/pages/html.h"

namespace tapedeck {
namespace {

using Verdict = Judged::Verdict;

struct Answer {
  Verdict verdict;
  std::string why;
};
Answer holds_if(bool holds, const std::string& yes, const std::string& no) {
  return {holds ? Verdict::holds : Verdict::fails, holds ? yes : no};
}
Answer no_matter(const std::string& why) { return {Verdict::other, why}; }

std::vector<const RunRecord*> all_runs(const Groups& groups) {
  std::vector<const RunRecord*> out;
  for (const RunGroup& group : groups)
    for (const RunRecord& run : group.runs) out.push_back(&run);
  return out;
}

// How many runs do not fulfil it: "2 of 3 runs".
template <class F>
size_t without(const Groups& groups, const F& fulfils) {
  const auto runs = all_runs(groups);
  return static_cast<size_t>(std::count_if(runs.begin(), runs.end(), [&](const RunRecord* r) { return !fulfils(*r); }));
}
std::string of_all(size_t some, const Groups& groups) {
  return fmt::format("{} of {} runs", some, all_runs(groups).size());
}

bool says(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && !object[key].is_null() && object[key] != "" &&
         object[key] != "unknown";
}

size_t fewest_runs(const Groups& groups) {
  size_t fewest = groups.front().runs.size();
  for (const RunGroup& group : groups) fewest = std::min(fewest, group.summaries().size());
  return fewest;
}

bool has_target(const Groups& groups) {
  return without(groups, [](const RunRecord& r) { return r.summary && r.summary->target.metric; }) == 0;
}

Answer whole_machine(const Groups& groups) {
  const size_t part = without(groups, [](const RunRecord& r) {
    const bool known = says(r.machine, "threads") && says(r.machine, "allowed_cores");
    return known && (r.machine["threads"] == r.machine["allowed_cores"] || !r.option("note").empty());
  });
  return holds_if(part == 0, "every core that the process may use, or a --note that says why not",
                  of_all(part, groups) + " used fewer threads than cores, and no --note says why");
}

Answer interval(const Groups& groups) {
  const size_t n = fewest_runs(groups);
  if (has_target(groups))
    return holds_if(
        n >= 6, fmt::format("exact interval of the median time to the target, n = {} runs", n),
        fmt::format("n = {} run{}: an interval of the median takes 6 (train --repeat 10)", n, n == 1 ? "" : "s"));
  const size_t none = without(groups, [](const RunRecord& r) { return r.summary && r.summary->step_ms; });
  return holds_if(
      n >= 6 && none == 0, fmt::format("n = {} runs, each with its quantiles of step time", n),
      fmt::format("results of n = {} run{} have no interval; step times have quantiles", n, n == 1 ? "" : "s"));
}

Answer comparison(const Groups& groups) {
  if (groups.size() < 2) return no_matter("nothing is compared");
  const size_t n = fewest_runs(groups);
  return holds_if(n >= 6, "each side's median stands beside its exact interval",
                  fmt::format("a side has n = {}: curves laid over each other show no difference; `tapedeck compare` "
                              "pairs seeds and takes turns",
                              n));
}

Answer setup(const Groups& groups) {
  const size_t bare = without(groups, [](const RunRecord& r) {
    for (const char* key : {"processor", "threads", "compiler", "flags", "libraries", "commit"})
      if (!says(r.machine, key)) return false;
    return r.config.is_object() && r.config.size() > 10 && says(r.data, "hash");
  });
  return holds_if(
      bare == 0, "every option with its origin, the data's hash, machine, compiler, flags, libraries and commit",
      of_all(bare, groups) + " lack a part of: options, data's hash, machine, compiler, flags, libraries, commit");
}

Answer clocks(const Groups& groups) {
  const size_t none =
      without(groups, [](const RunRecord& r) { return r.summary && r.summary->time.train && r.summary->time.eval; });
  return holds_if(
      none == 0,
      "the training clock counts sampling, waiting for data, forward, backward and the optimizer, and stands "
      "still for evaluation, saving and logging; steps are summarised by their median",
      of_all(none, groups) + " left no summary of their clock");
}

Answer bound(const Groups& groups) {
  const size_t none =
      without(groups, [](const RunRecord& r) { return r.summary && r.summary->gflops && r.summary->peak_gflops; });
  return holds_if(none == 0, "the best product measured on this machine stands beside the rate",
                  of_all(none, groups) + " have no measured peak (fp32 on the CPU: `tapedeck info` measures it)");
}

Answer curves(const Groups& groups) {
  const size_t short_ones =
      without(groups, [](const RunRecord& r) { return points_of(r, "validation_loss", "step").size() >= 2; });
  return holds_if(short_ones == 0, "every evaluation is a point of its curve; a value that is not finite is a gap",
                  of_all(short_ones, groups) + " have fewer than two evaluations to draw");
}

Answer once(const Groups& groups) {
  const size_t none =
      without(groups, [](const RunRecord& r) { return r.summary && r.summary->time.warmup && r.summary->time.data; });
  return holds_if(none == 0, "loading data, making the model and warming up are listed, and in no other time",
                  of_all(none, groups) + " do not list them");
}

Answer quiet(const Groups& groups) {
  const size_t busy = without(groups, [](const RunRecord& r) {
    return r.machine.is_object() && r.machine.contains("load") && r.machine["load"].is_object() &&
           r.machine["load"].contains("busy") && r.machine["load"]["busy"] == false;
  });
  return holds_if(busy == 0, "nothing else ran when they began",
                  of_all(busy, groups) + " began on a busy machine, or do not tell");
}

Answer seeds(const Groups& groups) {
  for (const RunGroup& group : groups) {
    std::set<int64_t> different;
    size_t known = 0;
    for (const Summary& s : group.summaries())
      if (s.seed) different.insert(*s.seed), ++known;
    if (different.size() < known) return {Verdict::fails, "two runs of one group have the same seed"};
  }
  return holds_if(fewest_runs(groups) >= 2, "listed, each of initial weights, order and dropout together",
                  "one seed: how far seeds alone move the result is not known");
}

Answer same_machine(const Groups& groups) {
  if (groups.size() < 2) return no_matter("nothing is compared");
  std::set<std::string> machines;
  for (const RunRecord* run : all_runs(groups)) {
    std::string key;
    for (const char* part : {"processor", "threads", "device", "commit"})
      if (run->machine.is_object() && run->machine.contains(part)) key += run->machine[part].dump() + " ";
    machines.insert(key + run->option("precision"));
  }
  return holds_if(
      machines.size() == 1, "one processor, number of threads, device, precision and commit",
      fmt::format("{} different settings of processor, threads, device, precision and commit: times are not "
                  "comparable where these differ",
                  machines.size()));
}

}  // namespace

std::vector<Judged> checklist(const Groups& groups) {
  std::vector<Judged> out;
  const auto judge = [&](const char* rule, const char* text, const Answer& answer) {
    out.push_back({rule, text, answer.verdict, answer.why});
  };
  judge("1", "a speedup names its base case", no_matter("no speedup is stated: all times are absolute"));
  judge("2", "a reason is given where only a part of the machine is used", whole_machine(groups));
  judge("3", "arithmetic means summarise costs only, rates are total work by total time",
        {Verdict::holds, "examples a second are all examples by all training time; costs are medians"});
  judge("4", "ratios are not averaged", no_matter("no ratio is averaged here"));
  judge("5", "n and an interval are given for what varies", interval(groups));
  judge("6", "no normality is assumed",
        {Verdict::holds, "intervals of a median are by order statistics, of any distribution"});
  judge("7", "differences are judged statistically", comparison(groups));
  judge("8", "the median is useful here, and other quantiles are shown where not",
        holds_if(without(groups, [](const RunRecord& r) { return r.summary && r.summary->step_ms; }) == 0,
                 "step times: 5 %, 50 % and 95 %; runs that missed count as infinite", "a run has no step times"));
  judge("9", "setup and all settings are documented", setup(groups));
  judge("10", "what a time counts and how it is summarised is said", clocks(groups));
  judge("11", "an upper bound stands beside the measured", bound(groups));
  judge("12", "plots show what is needed, lines only where values lie between", curves(groups));
  judge("", "one-time costs are apart", once(groups));
  judge("", "the machine was quiet", quiet(groups));
  judge("", "several seeds", seeds(groups));
  judge("", "what is compared was measured alike", same_machine(groups));
  return out;
}

const char* verdict_text(Verdict verdict) {
  return verdict == Verdict::holds ? "holds" : verdict == Verdict::fails ? "does not hold" : "does not apply";
}

std::string checklist_html(const std::vector<Judged>& rules) {
  std::string out = "<ul class=\"rules\">\n";
  for (const Judged& r : rules) {
    const char* style = r.verdict == Verdict::holds ? "holds" : r.verdict == Verdict::fails ? "fails" : "note";
    out += fmt::format("<li><span class=\"{}\">{}</span>: {}{}. <span class=\"note\">{}</span></li>\n", style,
                       verdict_text(r.verdict), html_text(r.text), r.rule.empty() ? "" : " (rule " + r.rule + ")",
                       html_text(r.why));
  }
  return out + "</ul>\n";
}

}  // namespace tapedeck
