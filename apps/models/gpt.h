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
#include <utility>
#include <vector>

#include "apps/models/network.h"
#include "engine/check.h"
#include "engine/recompute.h"
#include "ops/key_value_cache.h"
#include "ops/layers.h"

namespace tapedeck {

struct GptShape {
  int64_t vocabulary, context, layers, heads, width;
  bool tied = true;  // the head's weight is the embedding's
  double dropout = 0;
  bool composed = false;  // attention of single ops, with T × T weights, not fused
};

// What flows from block to block: a sum to which each adds. A sum and the norm of it are one pass over memory.
class Stream {
 public:
  explicit Stream(const Tensor& x, const Tensor& branch = {}) : sum_(x), branch_(branch) {}
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
  std::vector<Tensor> terms() const { return {sum_, branch_}; }
  Tensor joined() const { return branch_ ? tapedeck::add(sum_, branch_) : sum_; }

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
        heads(s.heads),
        composed(s.composed) {}

  void operator()(Stream& x, const Pass& pass, const Extras& extras) const {
    const Scope scope(name());
    add_branch(x, norm1, pass.training && made_again.attention,
               [this, pass, extras](const Tensor& normed) { return attend(normed, pass, extras); });
    add_branch(x, norm2, pass.training && made_again.mlp,
               [this, pass](const Tensor& normed) { return drop2(shrink(grow(normed)), pass); });
  }
  Tensor attend(const Tensor& normed, const Pass& pass, const Extras& extras) const {
    const Tensor seen = qkv(normed);
    if (extras.weights) extras.weights->push_back(attention_weights(seen, heads, {}));
    const Tensor mixed = extras.cache ? cached_attention(seen, heads, *extras.cache)
                         : composed   ? composed_attention(seen, heads, {})
                                      : attention(seen, heads, {});
    return drop1(mix(mixed), pass);
  }
  // x += branch(norm(x)). Recomputed, only x is kept of it.
  template <class F>
  static void add_branch(Stream& x, const LayerNorm& norm, bool recomputed, const F& branch) {
    if (!recomputed) return x.add(branch(x.normed(norm)));
    const Tensor sum = x.joined();
    x = Stream(sum, recompute([&norm, branch](const Tensor& in) { return branch(norm(in)); }, sum));
  }

  struct MadeAgain {  // by backward: outputs of these, a branch with its norm, or all of the block
    bool norm1 = false, norm2 = false, gelu = false, attention = false, mlp = false, block = false;
  };
  void save(const MadeAgain& what) {
    made_again = what;
    norm1.remade = what.norm1, norm2.remade = what.norm2, grow.remade = what.gelu;
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
  bool composed;
  MadeAgain made_again;
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

  int64_t parts() const override { return shape.layers; }
  const char* part_name() const override { return "blocks"; }
  int64_t pieces() const override { return shape.layers; }
  std::vector<Saving> ways() const override {
    std::vector<Saving> all;
    for (const auto& [what, made_again] : ways_of_block()) all.push_back({what, flops_again(made_again)});
    return all;
  }
  void save(int64_t piece, size_t way) override {
    blocks[static_cast<size_t>(piece)].save(ways_of_block()[way].second);
  }

  GptShape shape;
  Embedding tokens, positions;
  Dropout drop;
  std::deque<GptBlock> blocks;  // a deque: its elements never move, and parents know them by address
  std::optional<LayerNorm> norm;
  std::optional<Parameter> head;

 private:
  static std::vector<std::pair<const char*, GptBlock::MadeAgain>> ways_of_block() {
    return {{"nothing", {}},
            {"norms", {.norm1 = true, .norm2 = true}},
            {"gelu", {.gelu = true}},
            {"norms and gelu", {.norm1 = true, .norm2 = true, .gelu = true}},
            {"the mlp", {.mlp = true}},
            {"the mlp and norm1", {.norm1 = true, .mlp = true}},
            {"attention", {.attention = true}},
            {"attention and norm2", {.norm2 = true, .attention = true}},
            {"attention, norm2 and gelu", {.norm2 = true, .gelu = true, .attention = true}},
            {"attention and the mlp", {.attention = true, .mlp = true}},
            {"the whole block", {.block = true}}};
  }
  double flops_again(const GptBlock::MadeAgain& s) const {  // of a block and an example, but for last products
    const double c = static_cast<double>(shape.width), t = static_cast<double>(shape.context);
    const double norm = again_flops * c, gelu = again_flops * 4 * c;
    const double attention = norm + 6 * c * c + 2 * t * c, mlp = norm + 8 * c * c + gelu;
    double a_token = s.norm1 * norm + s.norm2 * norm + s.gelu * gelu + s.attention * attention + s.mlp * mlp;
    if (s.block) a_token = attention + 2 * c * c + norm + mlp;  // and the sum between the branches
    return t * a_token;
  }
  Tensor forward(const Tensor& ids, const Pass& pass, std::vector<KeyValueCache>* caches,
                 std::vector<Tensor>* maps) const {  // [N, T] -> [N, T, V]; with caches [N, 1, V]
    const Scope scope(name());
    const int64_t first = caches ? caches->front().length : 0;
    Stream x(drop(tokens(ids, positions, first), pass));
    for (int64_t i = 0, end = 0; i < parts(); i = end) {
      GptBlock const& block = blocks[static_cast<size_t>(i)];
      const int64_t step = !pass.training ? 0 : recompute_every > 0 ? recompute_every : block.made_again.block ? 1 : 0;
      end = std::min(i + std::max<int64_t>(step, 1), parts());
      if (step > 0)
        x = again(x, i, end, pass);
      else
        block(x, pass, {caches ? &(*caches)[static_cast<size_t>(i)] : nullptr, maps});
    }
    Tensor normed = x.normed(*norm);
    if (caches) normed = slice(normed, 1, ids.cols() - 1, ids.cols());  // nobody asks what comes after the others
    return linear(normed, head ? head->value : tokens.table.value, {});
  }
  // Blocks first … end − 1, of which only the stream before them is kept: added up, one tensor instead of two.
  Stream again(const Stream& before, int64_t first, int64_t end, const Pass& pass) const {
    const auto part = [this, first, end, pass](const std::vector<Tensor>& in) {
      Stream x(in[0]);
      for (auto i = static_cast<size_t>(first); i < static_cast<size_t>(end); ++i) blocks[i](x, pass, {});
      return x.terms();
    };
    const std::vector<Tensor> after = recompute(part, {before.joined()});
    return Stream(after[0], after[1]);
  }
};

}  // namespace tapedeck
