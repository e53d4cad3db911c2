#include "apps/graph.h"

#include <fmt/format.h>

#include <iostream>
#include <map>

#include "apps/cli.h"
#include "apps/commands.h"
#include "apps/experiment.h"
#include "apps/recompute_plan.h"
#include "apps/record.h"
#include "data/loader.h"

namespace tapedeck {
namespace {

std::vector<GraphNode> read_tape(const Tape& tape, const ParameterSet& parameters) {
  std::map<const GradSlot*, std::string> path_of;
  for (const Parameter* p : parameters.all()) path_of[p->value.grad.get()] = p->path;
  std::map<const GradSlot*, size_t> number_of;
  std::vector<GraphNode> out;
  for (const Node& node : tape.nodes()) {
    GraphNode drawn{node.op, node.where, node.shape.str(), name(node.dtype), node.saved_bytes, {}, {}};
    for (const auto& input : node.inputs) {
      if (const auto number = number_of.find(input.get()); number != number_of.end())
        drawn.from.push_back(number->second);
      else
        drawn.parameters.push_back(path_of.at(input.get()));
    }
    number_of[node.out.get()] = out.size();
    out.push_back(std::move(drawn));
  }
  return out;
}

size_t saved_bytes(const std::vector<GraphNode>& nodes) {
  size_t total = 0;
  for (const GraphNode& node : nodes) total += node.saved_bytes;
  return total;
}

std::string graph_text(const std::vector<GraphNode>& nodes) {
  size_t op = 2, layer = 5, shape = 5;  // widths: at least those of the headings
  for (const GraphNode& node : nodes)
    op = std::max(op, node.op.size()), layer = std::max(layer, node.layer.size()),
    shape = std::max(shape, node.shape.size());
  std::string out = fmt::format("{:>4}  {:<{}}  {:<{}}  {:<{}}  {:<5}  {:>12}  {}\n", "node", "op", op, "layer", layer,
                                "shape", shape, "dtype", "bytes saved", "reads");
  for (size_t i = 0; i < nodes.size(); ++i) {
    const GraphNode& node = nodes[i];
    std::string reads;
    for (const size_t from : node.from) reads += fmt::format("{}{}", reads.empty() ? "" : ", ", from);
    for (const std::string& path : node.parameters) reads += (reads.empty() ? "" : ", ") + path;
    out += fmt::format("{:>4}  {:<{}}  {:<{}}  {:<{}}  {:<5}  {:>12}  {}\n", i, node.op, op, node.layer, layer,
                       node.shape, shape, node.dtype, node.saved_bytes, reads);
  }
  return out + fmt::format("{} bytes saved by {} nodes\n", saved_bytes(nodes), nodes.size());
}

// A name as a string of the DOT language; \n stays the line break that we ask for.  [graphviz.org/doc/info/lang.html]
std::string dot_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

Json graph_json(const std::vector<GraphNode>& nodes) {
  Json list = Json::array();
  for (size_t i = 0; i < nodes.size(); ++i) {
    const GraphNode& node = nodes[i];
    list.push_back({{"node", i},
                    {"op", node.op},
                    {"layer", node.layer},
                    {"shape", node.shape},
                    {"dtype", node.dtype},
                    {"saved_bytes", node.saved_bytes},
                    {"from", node.from},
                    {"parameters", node.parameters}});
  }
  return {{"format_version", kFormatVersion}, {"saved_bytes", saved_bytes(nodes)}, {"nodes", list}};
}

}  // namespace

std::string graph_dot(const std::vector<GraphNode>& nodes) {
  std::string out = "digraph tape {\n  rankdir=TB;\n  node [shape=ellipse];\n";
  std::map<std::string, std::string> parameter_ids;
  std::string edges;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const GraphNode& node = nodes[i];
    const std::string label = fmt::format("{}: {}\n{}{}{} {}\n{} bytes saved", i, node.op, node.layer,
                                          node.layer.empty() ? "" : "\n", node.shape, node.dtype, node.saved_bytes);
    out += fmt::format("  n{} [label={}];\n", i, dot_string(label));
    for (const size_t from : node.from) edges += fmt::format("  n{} -> n{};\n", from, i);
    for (const std::string& path : node.parameters) {
      const auto [id, is_new] = parameter_ids.try_emplace(path, fmt::format("p{}", parameter_ids.size()));
      if (is_new) out += fmt::format("  {} [shape=box, label={}];\n", id->second, dot_string(path));
      edges += fmt::format("  {} -> n{};\n", id->second, i);
    }
  }
  return out + edges + "}\n";
}

int run_graph(const Config& config) {
  const Device device = prepare_machine(config);
  const Problem problem(config, device, find_precision(config));
  steps_per_epoch(config, problem);  // refuses a batch that is too large
  say_what_is_slow(config);
  const uint64_t seed = static_cast<uint64_t>(config.seed);
  const auto model = make_model(with_recompute_planned(config, problem, device), problem);
  const ParameterSet parameters(*model, device, find_precision(config), seed);
  Loader loader(problem.data().train, config.batch, seed);
  const Inputs inputs = problem.load(loader.next());

  Tape tape;
  const Tensor loss = problem.loss((*model)(inputs.x, {true, seed, 0}), inputs);
  const std::vector<GraphNode> nodes = read_tape(tape, parameters);
  if (config.json)
    std::cout << json_text(graph_json(nodes)) << "\n";
  else
    std::cout << (config.dot ? graph_dot(nodes) : graph_text(nodes));
  return exit_done;
}

}  // namespace tapedeck
