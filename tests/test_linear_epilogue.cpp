// The gradient's way through relu and gelu as part of the next layer's product: the same numbers as by the slope's own
// pass, in every type, over several batches, captured and replayed.
#include "engine/step_graph.h"
#include "tests/linear_epilogue.h"

namespace tapedeck {
namespace {

using namespace test;
using Setting = LayerSetting;

class Net {  // 9 -> 40 -> 17 -> 3, or 9 -> 40 -> 3
 public:
  explicit Net(const Setting& s) : s_(s), x_(numbers({33, 9}, 0, s.device, s.dtype)) {
    const int64_t widths[] = {9, 40, s.layers == 2 ? 3 : 17, 3};
    for (int i = 0; i < s.layers; ++i) {
      weights_.push_back(scale(numbers({widths[i + 1], widths[i]}, i, s.device, s.dtype), 0.4));
      biases_.push_back(s.bias ? numbers({widths[i + 1]}, i + 0.5, s.device, s.dtype) : Tensor());
    }
    for (Tensor* leaf : leaves()) leaf->require_gradient();
  }

  void pass(How how) {
    Tape tape;
    Tensor y = x_;
    for (int i = 0; i < s_.layers; ++i) {
      const Activation a = i + 1 == s_.layers ? Activation::none : s_.activation;
      y = linear(y, weights_[i], biases_[i], how == How::apart ? Activation::none : a);
      if (how == How::apart && a != Activation::none) y = a == Activation::relu ? relu(y) : gelu(y);
      if (how == How::used_twice && a != Activation::none) reshape(y, y.shape);  // launches nothing
    }
    const Tensor loss = mean(mul(y, y));
    std::vector<std::shared_ptr<Offer>> offers;
    for (const Node& node : tape.nodes())
      if (node.offer) offers.push_back(node.offer);
    tape.backward(loss);
    offered = taken = summed = 0;
    for (const auto& offer : offers) ++offered, taken += offer->taken, summed += offer->summed;
  }
  void forget() {
    for (Tensor* leaf : leaves()) leaf->grad->fresh = true;
  }
  std::vector<Values> gradients() {
    std::vector<Values> out;
    for (const Tensor* leaf : leaves()) out.push_back(gradient(*leaf));
    return out;
  }

  int offered = 0, taken = 0, summed = 0;  // of the last pass

 private:
  std::vector<Tensor*> leaves() {
    std::vector<Tensor*> out = {&x_};
    for (Tensor& w : weights_) out.push_back(&w);
    for (Tensor& b : biases_)
      if (b) out.push_back(&b);
    return out;
  }
  Setting s_;
  Tensor x_;
  std::vector<Tensor> weights_, biases_;
};

double tolerance(DType dtype) { return dtype == DType::f64 ? 1e-13 : dtype == DType::f32 ? 1e-5 : 3e-2; }

TEST_CASE("linear epilogue: gradients are those of the activation's own pass, in every type") {
  with_settings([](Setting s, bool offers) {
    for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
      for (int layers : {2, 3}) {
        s.dtype = dtype, s.layers = layers;
        CAPTURE(std::string(name(dtype)));
        CAPTURE(layers);
        Net joined(s), apart(s), twice(s);
        joined.pass(How::joined), apart.pass(How::apart), twice.pass(How::used_twice);
        check_equal(joined.gradients(), apart.gradients(), tolerance(dtype));
        check_equal(twice.gradients(), apart.gradients(), tolerance(dtype));
        const int hidden = offers ? layers - 1 : 0, bits16 = size_of(dtype) == 2;
        CHECK_EQ(joined.offered, hidden);
        CHECK_EQ(joined.taken, hidden);
        CHECK_EQ(joined.summed, bits16 ? 0 : hidden);  // gemm's sums are f32 there
        CHECK_EQ(apart.offered, 0);
        CHECK_EQ(twice.offered, hidden);
        CHECK_EQ(twice.taken, 0);
      }
  });
}

TEST_CASE("linear epilogue: without a bias gelu goes through the product, relu has no mask") {
  with_settings([](Setting s, bool) {
    s.bias = false;
    Net joined(s), apart(s);
    joined.pass(How::joined), apart.pass(How::apart);
    check_equal(joined.gradients(), apart.gradients(), 1e-13);
    CHECK_EQ(joined.taken, s.activation == Activation::gelu ? 2 : 0);
    CHECK_EQ(joined.summed, 0);
  });
}

TEST_CASE("linear epilogue: a second batch adds to the bias gradients") {
  // Fault: the product writes its sums over those of the batch before.
  with_settings([](const Setting& s, bool offers) {
    Net joined(s), apart(s);
    for (int i = 0; i < 2; ++i) {
      joined.pass(How::joined), apart.pass(How::apart);
      CHECK_EQ(joined.taken, offers ? 2 : 0);
      CHECK_EQ(joined.summed, offers && i == 0 ? 2 : 0);
    }
    check_equal(joined.gradients(), apart.gradients(), 1e-13);
  });
}

TEST_CASE("linear epilogue: a replayed step has the gradients of a plain one, in fewer launches") {
  with_settings([](Setting s, bool) {
    if (s.device == Device::cpu) return;  // has no graphs
    s.dtype = DType::f32;
    Net plain(s), replayed(s), twice(s);
    StepGraph joined_graph(s.device, true), twice_graph(s.device, true);
    for (int i = 0; i < 4; ++i) {
      const auto step = [](Net& net, How how) { net.forget(), net.pass(how); };
      step(plain, How::joined);
      joined_graph.run({}, [&] { step(replayed, How::joined); });
      twice_graph.run({}, [&] { step(twice, How::used_twice); });
      CHECK(plain.gradients() == replayed.gradients());
    }
    // A pass for each of two layers. cuBLASLt takes several for gelu at a width that is no multiple of 8.
    if (s.device == Device::emulated) CHECK(joined_graph.nodes() + 2 <= twice_graph.nodes());
  });
}

}  // namespace
}  // namespace tapedeck
