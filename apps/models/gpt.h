// A decoder-only transformer, as one would draw it [Vaswani et al. 2017; pre-norm and initialisation of GPT-2, Radford
// et al. 2019]:
//
//   tokens → embedding + position → x
//   each block:   x += mix(attention(qkv(norm1(x))))
//                 x += shrink(gelu(grow(norm2(x))))
//   norm(x) → head → logits of the next token
//
// Dropout, where asked for, is behind the embedding and at the end of each branch.
#pragma once
#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "apps/models/network.h"
#include "engine/check.h"
#include "ops/key_value_cache.h"
#include "ops/layers.h"

namespace tapedeck {

struct GptShape {
  int64_t vocabulary, context, layers, heads, width;
  bool tied = true;  // the head's weight is the embedding's
  double dropout = 0;
};

// What flows from block to block: a sum to which each adds. A sum and the norm of it are one pass over memory.
class Stream {
 public:
  explicit Stream(const Tensor& x) : sum_(x) {}
  void add(const Tensor& branch) {
    CHECK(!branch_, "gpt: the stream has a branch already; take its norm before adding another");
    branch_ = branch;
  }
  Tensor normed(const LayerNorm& norm) {
    if (!branch_) return norm(sum_);
    const Residual both = norm(sum_, branch_);
    sum_ = both.sum, branch_ = {};
    return both.normed;
  }

 private:
  Tensor sum_, branch_;
};

struct GptBlock : Module {
  struct Extras {                            // beside a plain forward pass
    KeyValueCache* cache = nullptr;          // goes on from what it holds, and adds to it
    std::vector<Tensor>* weights = nullptr;  // gets the attention weights [N, heads, T, T]
  };
  GptBlock(Module& parent, const std::string& name, const GptShape& s)
      : Module(parent, name),
        norm1(*this, "norm1", s.width),
        qkv(*this, "qkv", s.width, 3 * s.width, Activation::none, normal(0.02)),
        mix(*this, "mix", s.width, s.width, Activation::none, onto_stream(s)),
        drop1(*this, "drop1", s.dropout),
        norm2(*this, "norm2", s.width),
        grow(*this, "grow", s.width, 4 * s.width, Activation::gelu, normal(0.02)),
        shrink(*this, "shrink", 4 * s.width, s.width, Activation::none, onto_stream(s)),
        drop2(*this, "drop2", s.dropout),
        heads(s.heads) {}

  void operator()(Stream& x, const Pass& pass, const Extras& extras) const {
    const Scope scope(name());
    const Tensor seen = qkv(x.normed(norm1));
    if (extras.weights) extras.weights->push_back(attention_weights(seen, heads, {}));
    x.add(drop1(mix(extras.cache ? cached_attention(seen, heads, *extras.cache) : attention(seen, heads, {})), pass));
    x.add(drop2(shrink(grow(x.normed(norm2))), pass));
  }

  static Init normal(double deviation) { return {Init::Kind::normal, deviation}; }
  // 2 · layers branches add up on the stream: each begins smaller, so that the sum does not grow with depth.
  static Init onto_stream(const GptShape& s) { return normal(0.02 / std::sqrt(2.0 * static_cast<double>(s.layers))); }

  LayerNorm norm1;
  Linear qkv, mix;
  Dropout drop1;
  LayerNorm norm2;
  Linear grow, shrink;
  Dropout drop2;
  int64_t heads;
};

struct Gpt : Network {
  explicit Gpt(const GptShape& s)
      : Network("gpt"),
        shape(s),
        tokens(*this, "tokens", s.vocabulary, s.width),
        positions(*this, "positions", s.context, s.width),
        drop(*this, "drop", s.dropout) {
    for (int64_t i = 0; i < s.layers; ++i) blocks.emplace_back(*this, "block" + std::to_string(i), s);
    norm.emplace(*this, "norm", s.width);
    if (!s.tied) head.emplace(*this, "head", Shape{s.vocabulary, s.width}, GptBlock::normal(0.02));
  }

  Tensor operator()(const Tensor& ids, const Pass& pass) const override { return forward(ids, pass, nullptr, nullptr); }

  // Logits [N, 1, V] behind the last of tokens that follow those whose keys and values the caches (one a block) hold.
  Tensor go_on(const Tensor& ids, std::vector<KeyValueCache>& caches) const {
    return forward(ids, {}, &caches, nullptr);
  }
  std::vector<KeyValueCache> empty_caches() const {
    const Tensor& table = tokens.table.value;
    std::vector<KeyValueCache> caches;
    for (int64_t i = 0; i < shape.layers; ++i)
      caches.emplace_back(1, shape.context, shape.width, table.dtype, table.device());
    return caches;
  }
  // Who looks at whom: [N, heads, T, T] of each block.
  std::vector<Tensor> attention_maps(const Tensor& ids) const {
    std::vector<Tensor> maps;
    forward(ids, {}, nullptr, &maps);
    return maps;
  }

  // A token costs 6 N + 12 L C T: N weights that it is multiplied by, 2 forward and 4 backward, and attention to T
  // others in L layers of width C, of which a causal one does half [Kaplan et al. 2020; Chowdhery et al. 2022, appendix
  // B].
  double training_flops() const override {
    const double t = static_cast<double>(shape.context);
    return t * (6 * static_cast<double>(multiplied()) + 6 * static_cast<double>(shape.layers * shape.width) * t);
  }
  std::string flops_formula() const override {
    return text("6 N + 12 L C T / 2 (causal: half), N = {} weights in products, L = {} layers, C = {}, T = {}",
                multiplied(), shape.layers, shape.width, shape.context);
  }
  int64_t multiplied() const { return 12 * shape.layers * shape.width * shape.width + shape.vocabulary * shape.width; }
  int64_t widest() const override { return std::max({4 * shape.width, shape.context, shape.vocabulary}); }

  GptShape shape;
  Embedding tokens, positions;
  Dropout drop;
  std::deque<GptBlock> blocks;  // a deque: its elements never move, and parents know them by address
  std::optional<LayerNorm> norm;
  std::optional<Parameter> head;

 private:
  Tensor forward(const Tensor& ids, const Pass& pass, std::vector<KeyValueCache>* caches,
                 std::vector<Tensor>* maps) const {  // [N, T] -> [N, T, V]; with caches [N, 1, V]
    const Scope scope(name());
    const int64_t first = caches ? caches->front().length : 0;
    Stream x(drop(tokens(ids, positions, first), pass));
    for (size_t i = 0; i < blocks.size(); ++i) blocks[i](x, pass, {caches ? &(*caches)[i] : nullptr, maps});
    Tensor normed = x.normed(*norm);
    if (caches) normed = slice(normed, 1, ids.cols() - 1, ids.cols());  // nobody asks what comes after the others
    return linear(normed, head ? head->value : tokens.table.value, {});
  }
};

}  // namespace tapedeck
