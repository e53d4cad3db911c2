// Examples that are sequences of tokens, read or made as they are asked for, by several threads at once.
#pragma once
#include <cstdint>
#include <span>

namespace tapedeck {

// Every example has as many tokens as the data set has features, and an answer for each: the token that should come
// next there, or no_answer where none is asked for, which neither loss nor accuracy counts.
class Sequences {
 public:
  static constexpr int32_t no_answer = -1;

  virtual ~Sequences() = default;
  virtual int64_t count() const = 0;
  // Tokens and answers of these examples, each row-major [rows.size(), features]. Throws Error for a row outside
  // 0 … count() − 1.
  virtual void read(std::span<const int32_t> rows, int32_t* tokens, int32_t* answers) const = 0;
  // Asked for in every example, the same number in each: so a mean over examples is one over answers.
  virtual int64_t answers_each() const = 0;
  virtual uint64_t content_hash() const = 0;
};

}  // namespace tapedeck
