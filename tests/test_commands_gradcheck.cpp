// tapedeck gradcheck and tapedeck graph: gradients of a model against differences, and its tape.
#include <algorithm>
#include <cmath>
#include <set>

#include "apps/gradcheck.h"
#include "apps/graph.h"
#include "ops/layers.h"
#include "tests/program.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

struct Line : Module {  // y = x · weightᵀ + bias, from 3 numbers to 2
  Line() : Module("line"), layer(*this, "only", 3, 2, Activation::tanh) {}
  Linear layer;
};

// A small model with its gradients gathered, and its twin in f64.
template <class T>
struct Checked {
  Checked() : parameters(model, Device::cpu, dtype_of<T>, 5), twin(twin_model, Device::cpu, DType::f64, 5) {
    for (size_t i = 0; i < parameters.all().size(); ++i)
      copy(twin.all()[i]->value, Tensor::from(parameters.all()[i]->value.doubles(), parameters.all()[i]->shape));
    Tape tape;
    tape.backward(mean(model.layer(input<T>())));
  }
  template <class U>
  static Tensor input() {
    return Tensor::from(std::vector<U>{U(0.5), U(-1), U(2), U(1), U(0.25), U(-0.75)}, {2, 3});
  }
  std::vector<GradientCheck> check() {
    return check_gradients(
        parameters, twin, [&] { return mean(twin_model.layer(input<double>())).item(); }, 20, 6);
  }
  Tensor gradient(size_t i) { return parameters.all()[i]->value.grad->sum; }

  Line model, twin_model;
  ParameterSet parameters, twin;
};

}  // namespace

TEST_CASE_TEMPLATE("the gradient check passes right gradients and fails a planted wrong one", T, double, float) {
  Checked<T> checked;
  const std::vector<double> before = checked.twin.values().doubles();
  const std::vector<GradientCheck> right = checked.check();
  REQUIRE(right.size() == 2);
  CHECK(all_ok(right));
  for (const GradientCheck& c : right) {
    INFO(c.path);
    CHECK(c.largest_gradient > 0.01);
    CHECK(c.tolerance < 1e-3);
    CHECK(c.error <= c.tolerance);
    CHECK(c.checked == (c.path == "line.only.weight" ? 6 : 2));
  }
  CHECK(checked.twin.values().doubles() == before);

  T& entry = checked.gradient(0).template ptr<T>()[4];
  const T good = entry;
  entry = good * T(1.01) + T(1e-4);
  CHECK(checked.check()[0].verdict == "wrong");
  CHECK(checked.check()[1].verdict == "ok");
  CHECK_FALSE(all_ok(checked.check()));
  entry = T(NAN);
  CHECK(checked.check()[0].verdict == "not finite");
  entry = good;
  CHECK(all_ok(checked.check()));
  for (int i = 0; i < 2; ++i) checked.gradient(1).template ptr<T>()[i] *= T(-1);
  CHECK(checked.check()[1].verdict == "wrong");
}

// Fault: a check that compares zero with zero passes whatever backward does.
TEST_CASE("the gradient check refuses to prove nothing") {
  Checked<double> checked;
  fill(checked.gradient(0), 0);
  fill(checked.gradient(1), 0);
  CHECK(checked.check()[0].verdict == "wrong");  // the differences are not zero
  const auto flat = check_gradients(
      checked.parameters, checked.twin, [] { return 3.5; }, 20, 6);
  CHECK(flat[0].verdict == "nothing to compare");
  CHECK_FALSE(all_ok(flat));
  CHECK_FALSE(all_ok({}));
}

TEST_CASE("gradcheck passes every activation, loss and precision of the models") {
  const std::vector<std::vector<std::string>> lines = {{"--activation", "relu"},
                                                       {"--activation", "gelu", "--precision", "fp32"},
                                                       {"--activation", "gelu_erf"},
                                                       {"--activation", "silu", "--loss", "mse"},
                                                       {"--activation", "tanh", "--dropout", "0.4"},
                                                       {"--activation", "sigmoid", "--data", "spirals"},
                                                       {"--loss", "mse", "--precision", "fp32", "--seed", "3"},
                                                       {"--device", "emulated", "--data", "blobs"}};
  for (std::vector<std::string> words : lines) {
    words.insert(words.begin(), {"gradcheck", "--hidden", "12,9", "--json"});
    const Outcome outcome = tapedeck::test::tapedeck(words);
    INFO(words[5] << "\n" << outcome.out << outcome.err);
    CHECK(outcome.code == exit_done);
    const Json rows = outcome.json()["rows"];
    CHECK(rows.size() == 6);
    for (const Json& row : rows) {
      CHECK(row["checked"] >= 1);
      CHECK(row["largest_gradient"] > 1e-6);
    }
  }
  const Outcome text = tapedeck::test::tapedeck({"gradcheck", "--hidden", "6", "--data", "blobs"});
  CHECK(contains(text.out, "mlp.hidden0.weight"));
  CHECK(contains(text.out, "verdict"));
  const Outcome large = tapedeck::test::tapedeck({"gradcheck", "--batch", "5000"});
  CHECK(large.code == exit_usage);
  CHECK(contains(large.err, "1078"));
}

TEST_CASE("graph shows every node with what it saved and what it reads, and the sum") {
  const Json graph =
      tapedeck::test::tapedeck({"graph", "--hidden", "16,8", "--dropout", "0.1", "--batch", "10", "--json"}).json();
  const Json& nodes = graph["nodes"];
  REQUIRE(nodes.size() >= 6);  // 3 linear, 2 dropout, 1 loss
  size_t saved = 0, parameters = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    CHECK(nodes[i]["node"] == i);
    saved += nodes[i]["saved_bytes"].get<size_t>();
    parameters += nodes[i]["parameters"].size();
    for (const Json& from : nodes[i]["from"]) CHECK(from.get<size_t>() < i);
    if (i > 0) CHECK(nodes[i]["from"].size() > 0);  // the tape of an mlp is a chain
  }
  CHECK(graph["saved_bytes"] == saved);
  CHECK(saved >= 10 * (64 + 16 + 8) * sizeof(float));  // at least what the linear layers read
  CHECK(parameters == 6);
  CHECK(nodes[0]["shape"] == "[10, 16]");
  CHECK(nodes[0]["layer"] == "mlp.hidden0");
  CHECK(nodes.back()["op"] == "cross_entropy");
  CHECK(nodes.back()["shape"] == "[]");

  const std::string text =
      tapedeck::test::tapedeck({"graph", "--hidden", "16,8", "--dropout", "0.1", "--batch", "10"}).out;
  INFO(text);
  CHECK(static_cast<size_t>(std::count(text.begin(), text.end(), '\n')) == nodes.size() + 2);
  CHECK(contains(text, std::to_string(saved) + " bytes saved by " + std::to_string(nodes.size()) + " nodes"));
  CHECK(contains(text, "mlp.hidden1.weight"));
}

namespace {

// Reads a document line by line and fails on what Graphviz would not take. Returns the number of edges.
int check_dot(const std::string& dot) {
  std::istringstream lines(dot);
  std::string line;
  std::getline(lines, line);
  CHECK(line == "digraph tape {");
  std::set<std::string> declared;
  int edges = 0;
  while (std::getline(lines, line) && line != "}") {
    INFO(line);
    CHECK(line.ends_with(";"));
    int quotes = 0;
    for (size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\\')
        ++i;  // the next character is escaped
      else if (line[i] == '"')
        ++quotes;
    }
    CHECK(quotes % 2 == 0);
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    if (const size_t arrow = line.find(" -> "); arrow != line.npos) {
      ++edges;
      CHECK(declared.contains(name));
      CHECK(declared.contains(line.substr(arrow + 4, line.size() - arrow - 5)));
    } else if (line.find("[label=") != line.npos || line.find("[shape=box") != line.npos) {
      declared.insert(name);
    }
  }
  CHECK(line == "}");
  return edges;
}

}  // namespace

TEST_CASE("graph --dot is Graphviz: every edge joins declared nodes and every string is closed") {
  const std::string dot = tapedeck::test::tapedeck({"graph", "--dot", "--hidden", "8"}).out;
  CHECK(check_dot(dot) >= 6);  // 4 parameters and a chain of at least 3 nodes
}

// Fault: a quote, a backslash or a line break in a name made the whole document unreadable.
TEST_CASE("graph --dot survives any name") {
  const std::string odd = "a\"b\\c\nd\\";
  const std::string dot = graph_dot({{odd, odd, "[2]", "f32", 8, {}, {odd}}, {"mean", "", "[]", "f32", 0, {0}, {}}});
  CHECK(check_dot(dot) == 2);
  CHECK(contains(dot, R"("a\"b\\c\nd\\")"));
}
