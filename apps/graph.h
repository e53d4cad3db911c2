// The tape of one training step as a drawing: every op that was recorded, what it kept for its backward pass, and whose
// outputs it reads.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace tapedeck {

struct GraphNode {
  std::string op, layer, shape, dtype;
  size_t saved_bytes;
  std::vector<size_t> from;             // numbers of nodes
  std::vector<std::string> parameters;  // paths
};

// The nodes as a Graphviz document, whatever their names hold.
std::string graph_dot(const std::vector<GraphNode>& nodes);

}  // namespace tapedeck
