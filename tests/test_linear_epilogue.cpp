// The gradient's way through relu and gelu as part of the next layer's product: the same numbers as by the slope's own
// pass, and only where nobody else needs dL/dy.
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/offer.h"
#include "engine/step_graph.h"
#include "ops/ops.h"
#include "tests/leaves.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck {
namespace {

using test::gradient;
using test::Values;

Tensor numbers(const Shape& shape, double phase, Device device, DType dtype) {
  std::vector<double> x;
  for (int64_t i = 0; i < shape.count(); ++i) x.push_back(std::sin(1.7 * static_cast<double>(i) + phase));
  return cast(Tensor::from(x, shape, device), dtype);
}

enum class How { joined, apart, used_twice };  // apart: the activation is an op of its own

struct Setting {
  Device device = Device::cpu;
  DType dtype = DType::f64;
  Activation activation = Activation::gelu;
  int layers = 3;
  bool bias = true;
};

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

void check_equal(const Values& a, const Values& b, double tolerance) {
  REQUIRE_EQ(a.size(), b.size());
  double size = 0, off = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    size = std::max(size, std::abs(b[i]));
    off = std::max(off, std::isfinite(a[i]) ? std::abs(a[i] - b[i]) : INFINITY);
  }
  CHECK(size > 0);
  CHECK(off <= tolerance * size);
}
void check_equal(const std::vector<Values>& a, const std::vector<Values>& b, double tolerance) {
  REQUIRE_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) check_equal(a[i], b[i], tolerance);
}

double tolerance(DType dtype) { return dtype == DType::f64 ? 1e-13 : dtype == DType::f32 ? 1e-5 : 3e-2; }

// With two offers, on a device with lanes: of relu there is none on the CPU.
template <class F>
void with_settings(F&& f) {
  for (Device device : {Device::cpu, Device::emulated})
    for (Activation activation : {Activation::relu, Activation::gelu}) {
      CAPTURE(name(device));
      CAPTURE(static_cast<int>(activation));
      f(Setting{.device = device, .activation = activation},
        device == Device::emulated || activation == Activation::gelu);
    }
}

TEST_CASE("linear epilogue: gradients are those of the activation's own pass, in every type") {
  with_settings([](Setting s, bool offers) {
    for (DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
      for (int layers : {2, 3}) {
        s.dtype = dtype, s.layers = layers;
        CAPTURE(name(dtype));
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

struct Pair {  // y = f(x · wᵀ + b), which others go on with
  Tensor x, w, b, v;
  explicit Pair(const Setting& s)
      : x(numbers({6, 5}, 0, s.device, s.dtype)),
        w(numbers({4, 5}, 1, s.device, s.dtype)),
        b(numbers({4}, 2, s.device, s.dtype)),
        v(numbers({3, 4}, 3, s.device, s.dtype)) {
    for (Tensor* t : {&x, &w, &b, &v}) t->require_gradient();
  }
  Tensor y(const Setting& s, How how) const {
    if (how == How::joined) return linear(x, w, b, s.activation);
    const Tensor z = linear(x, w, b);
    return s.activation == Activation::relu ? relu(z) : gelu(z);
  }
  std::vector<Values> gradients() const { return {gradient(x), gradient(w), gradient(b), gradient(v)}; }
};

// Whether the offer of y was taken in the backward pass of mean(out²), out = rest(y, v). The gradients must be right.
template <class Rest>
bool taken(const Setting& s, Rest&& rest) {
  std::vector<Values> gradients[2];
  std::shared_ptr<Offer> offer;
  for (How how : {How::joined, How::apart}) {
    const Pair p(s);
    Tape tape;
    const Tensor out = rest(p.y(s, how), p.v);
    const Tensor loss = mean(mul(out, out));
    if (how == How::joined) offer = tape.nodes()[0].offer;
    tape.backward(loss);
    gradients[how == How::apart] = p.gradients();
  }
  check_equal(gradients[0], gradients[1], 1e-13);
  return offer && offer->taken;
}

TEST_CASE("linear epilogue: whoever makes the whole gradient by one product takes the offer") {
  with_settings([](const Setting& s, bool offers) {
    CHECK_EQ(taken(s, [](const Tensor& y, const Tensor& v) { return linear(y, v, {}); }), offers);
    CHECK_EQ(taken(s, [](const Tensor& y, const Tensor& v) { return linear(v, y, {}); }), offers);  // y as the weight
    CHECK_EQ(taken(s, [](const Tensor& y, const Tensor& v) { return matmul(y, permute(v, {1, 0})); }), offers);
    CHECK_EQ(taken(s,
                   [](const Tensor& y, const Tensor& v) {
                     return matmul(reshape(concat({v, v}, 0), {4, 6}), y);
                   }),
             offers);
  });
}

TEST_CASE("linear epilogue: with another consumer dL/dy is a sum, and nobody takes the offer") {
  // Fault: one part of the sum went through the slope, the other did not.
  with_settings([](const Setting& s, bool) {
    const auto check_not_taken = [&](auto&& rest) { CHECK_FALSE(taken(s, rest)); };
    check_not_taken([](const Tensor& y, const Tensor& v) { return add(linear(y, v, {}), linear(y, scale(v, 2), {})); });
    check_not_taken([](const Tensor& y, const Tensor& v) { return concat({linear(y, v, {}), y}, 1); });
    check_not_taken([](const Tensor& y, const Tensor& v) { return concat({y, linear(y, v, {})}, 1); });
    check_not_taken([](const Tensor& y, const Tensor& v) { return linear(y, concat({y, v}, 0), {}); });
    check_not_taken([](const Tensor& y, const Tensor& v) { return linear(scale(y, 3), v, {}); });
    check_not_taken([](const Tensor& y, const Tensor& v) {  // a product for each of a batch
      return matmul(reshape(y, {2, 3, 4}), reshape(concat({v, scale(v, 2)}, 0), {2, 4, 3}));
    });
  });
}

TEST_CASE("linear epilogue: a consumer that leads nowhere counts, and is no harm") {
  with_settings([](const Setting& s, bool) {
    CHECK_FALSE(taken(s, [](const Tensor& y, const Tensor& v) {
      const Tensor out = linear(y, v, {});
      sum(y);
      return out;
    }));
  });
}

TEST_CASE("linear epilogue: a batch of products through three dimensions is one product for linear") {
  with_settings([](const Setting& s, bool offers) {
    std::vector<Values> gradients[2];
    std::shared_ptr<Offer> offer;
    for (How how : {How::joined, How::apart}) {
      Pair p(s);
      p.x = reshape(p.x, {2, 3, 5}).require_gradient();
      Tape tape;
      const Tensor out = linear(p.y(s, how), p.v, {});
      const Tensor loss = mean(mul(out, out));
      if (how == How::joined) offer = tape.nodes()[0].offer;
      tape.backward(loss);
      gradients[how == How::apart] = p.gradients();
    }
    check_equal(gradients[0], gradients[1], 1e-13);
    CHECK_EQ(offer && offer->taken, offers);
  });
}

TEST_CASE("linear epilogue: a gradient that somebody will read is dL/dy") {
  // Fault: y.gradient() is dL/dz, since the next layer's product went through the slope for a layer that is not there.
  with_settings([](const Setting& s, bool) {
    const Pair p(s);
    const auto loss_of = [&](const Tensor& y) {
      const Tensor out = linear(y, p.v, {});
      return mean(mul(out, out));
    };
    Tensor plain = p.y(s, How::apart);
    plain.require_gradient();
    {
      Tape tape;
      tape.backward(loss_of(plain));
    }
    SUBCASE("y becomes a leaf") {
      Tape tape;
      Tensor y = p.y(s, How::joined);
      y.require_gradient();
      tape.backward(loss_of(y));
      check_equal(gradient(y), gradient(plain), 1e-13);
    }
    SUBCASE("y comes from the tape around this one, or from one that is gone") {
      auto outer = std::make_unique<Tape>();
      const Tensor y = p.y(s, How::joined);
      {
        Tape inner;
        inner.backward(loss_of(y));
        check_equal(gradient(y), gradient(plain), 1e-13);
      }
      outer.reset();
      y.grad->fresh = true;
      Tape later;
      later.backward(loss_of(y));
      check_equal(gradient(y), gradient(plain), 1e-13);
    }
  });
}

TEST_CASE("linear epilogue: only weight gradients, and a bias that two layers share") {
  with_settings([](const Setting& s, bool offers) {
    std::vector<Values> gradients[2];
    for (How how : {How::joined, How::apart}) {
      Pair p(s);
      p.x.grad = nullptr;
      p.v = numbers({4, 4}, 3, s.device, s.dtype).require_gradient();
      Tape tape;
      const Tensor out = linear(p.y(s, how), p.v, p.b);
      const Tensor loss = mean(mul(out, out));
      const std::shared_ptr<Offer> offer = tape.nodes()[0].offer;
      tape.backward(loss);
      gradients[how == How::apart] = {gradient(p.w), gradient(p.b), gradient(p.v)};
      if (how == How::joined) CHECK_EQ(offer && offer->taken, offers);
      if (how == How::joined && offer) CHECK_FALSE(offer->summed);
    }
    check_equal(gradients[0], gradients[1], 1e-13);
  });
}

TEST_CASE("linear epilogue: no rows at all") {
  for (How how : {How::joined, How::apart})
    with_settings([&](const Setting& s, bool) {
      Pair p(s);
      p.x = Tensor::empty({0, 5}, s.dtype, s.device).require_gradient();
      Tape tape;
      tape.backward(sum(linear(p.y(s, how), p.v, {})));
      CHECK_EQ(gradient(p.b), Values(4, 0));
      CHECK_EQ(gradient(p.w), Values(20, 0));
    });
}

TEST_CASE("linear epilogue: nothing stays alive after the backward pass, and no mask is written without a tape") {
  for (Device device : {Device::cpu, Device::emulated}) {
    const Setting s{.device = device, .activation = Activation::relu};
    const Pair p(s);
    const auto in_use = [&] { return backend(device).arena().use().bytes; };
    const size_t before = in_use();
    {
      const Tensor y = p.y(s, How::joined);
      CHECK_EQ(in_use(), before + y.bytes());
    }
    Tensor y;
    {
      Tape tape;
      y = p.y(s, How::joined);
      tape.backward(sum(linear(y, p.v, {})));
    }
    size_t gradients = 0;
    for (const Tensor* t : {&p.x, &p.w, &p.b, &p.v}) gradients += t->bytes();
    CHECK_EQ(in_use(), before + y.bytes() + gradients);
  }
}

TEST_CASE("linear epilogue: a replayed step has the gradients of a plain one, in fewer launches") {
  for (Activation activation : {Activation::relu, Activation::gelu}) {
    const Setting s{.device = Device::emulated, .dtype = DType::f32, .activation = activation};
    Net plain(s), replayed(s), twice(s);
    StepGraph joined_graph(s.device, true), twice_graph(s.device, true);
    for (int i = 0; i < 4; ++i) {
      const auto step = [](Net& net, How how) { net.forget(), net.pass(how); };
      step(plain, How::joined);
      joined_graph.run({}, [&] { step(replayed, How::joined); });
      twice_graph.run({}, [&] { step(twice, How::used_twice); });
      CHECK(plain.gradients() == replayed.gradients());
    }
    CHECK(joined_graph.nodes() + 2 <= twice_graph.nodes());  // a pass for each of two layers
  }
}

}  // namespace
}  // namespace tapedeck
