// Who takes the offer to go through an activation: one product that is the whole gradient, and nobody else.
#include "engine/backend.h"
#include "tests/linear_epilogue.h"

namespace tapedeck {
namespace {

using namespace test;
using Setting = LayerSetting;

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

TEST_CASE("linear epilogue: of three dimensions linear makes one product and takes the offer, matmul a batch of them") {
  for (bool batch : {false, true})
    with_settings([&](const Setting& s, bool offers) {
      std::vector<Values> gradients[2];
      std::shared_ptr<Offer> offer;
      for (How how : {How::joined, How::apart}) {
        Pair p(s);
        p.x = reshape(p.x, {2, 3, 5}).require_gradient();
        Tape tape;
        const Tensor y = p.y(s, how);
        offer = how == How::joined ? tape.nodes()[0].offer : offer;
        const Tensor out = batch ? matmul(y, reshape(concat({p.v, scale(p.v, 2)}, 0), {2, 4, 3})) : linear(y, p.v, {});
        tape.backward(mean(mul(out, out)));
        gradients[how == How::apart] = p.gradients();
      }
      check_equal(gradients[0], gradients[1], 1e-13);
      CHECK_EQ(offer && offer->taken, offers && !batch);
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
      backend(device).arena().reset_peak();
      const Tensor y = p.y(s, How::joined);
      CHECK_EQ(backend(device).arena().use().peak_bytes, before + y.bytes());
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

}  // namespace
}  // namespace tapedeck
