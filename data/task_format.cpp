#include "data/task_format.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "engine/check.h"
#include "engine/random.h"

namespace tapedeck {
namespace {

constexpr uint64_t data_seed = 1;

std::vector<std::string> characters(std::string_view all) {
  std::vector<std::string> names;
  for (const char c : all) names.emplace_back(1, c);
  return names;
}

std::vector<std::string> symbol_names(int64_t symbols, const char* separator) {
  const std::string_view all = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  return characters(std::string(all.substr(0, static_cast<size_t>(symbols))) + separator);
}

TaskFormat string_task(const TaskSpec& spec) {
  const auto n = static_cast<int64_t>(spec["length"]), symbols = static_cast<int64_t>(spec["symbols"]);
  const auto rearrange = [name = spec.kind->name](int32_t* begin, int32_t* end) {
    if (name == "reverse") std::reverse(begin, end);
    if (name == "sort") std::sort(begin, end);
  };
  const auto make = [=](const TaskDraw& draw, int32_t* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = draw(i, symbols);
    out[n] = static_cast<int32_t>(symbols);  // the separator
    std::copy_n(out, n, out + n + 1);
    rearrange(out + n + 1, out + 2 * n + 1);
  };
  return {.names = symbol_names(symbols, "="),
          .form = text("{} symbols and =", n),
          .question = n + 1,
          .answer = n,
          .different = std::pow(symbols, n),
          .make = make};
}

TaskFormat addition(const TaskSpec& spec) {
  const auto digits = static_cast<int64_t>(spec["digits"]);
  constexpr int32_t plus = 10, equals = 11;
  const auto make = [=](const TaskDraw& draw, int32_t* out) {
    int32_t *a = out, *b = out + digits + 1, *sum = b + digits + 1;
    a[digits] = plus, b[digits] = equals;
    int32_t carry = 0;
    for (int64_t i = digits - 1; i >= 0; --i) {
      a[i] = draw(2 * i, 10), b[i] = draw(2 * i + 1, 10);
      const int32_t place = a[i] + b[i] + carry;
      *sum++ = place % 10;
      carry = place / 10;
    }
    *sum = carry;
  };
  return {.names = characters("0123456789+="),
          .form = text("{} digits, +, {} digits and =", digits, digits),
          .question = 2 * digits + 2,
          .answer = digits + 1,
          .different = std::pow(100, digits),
          .make = make};
}

TaskFormat induction(const TaskSpec& spec) {
  const auto n = static_cast<int64_t>(spec["length"]), symbols = static_cast<int64_t>(spec["symbols"]);
  const auto make = [=](const TaskDraw& draw, int32_t* out) {
    for (int64_t i = 0; i < n; ++i) out[i] = out[n + i] = draw(i, symbols);
  };
  return {.names = symbol_names(symbols, ""),
          .form = text("{} symbols and the first of them again", n),
          .question = n + 1,
          .answer = n - 1,
          .different = std::pow(symbols, n),
          .begins_again = true,
          .make = make};
}

// A row is a pair, a p + b.
TaskFormat modadd(const TaskSpec& spec) {
  const auto p = static_cast<int32_t>(spec["p"]);
  std::vector<std::string> names;
  for (int32_t i = 0; i < p; ++i) names.push_back(std::to_string(i));
  names.emplace_back("=");
  const auto make = [p](const TaskDraw& draw, int32_t* out) {
    const auto row = static_cast<int32_t>(draw.row);
    out[0] = row / p, out[1] = row % p, out[2] = p, out[3] = (out[0] + out[1]) % p;
  };
  return {.names = std::move(names),
          .form = text("two numbers from 0 to {} and =", p - 1),
          .question = 3,
          .answer = 1,
          .different = std::pow(p, 2),
          .by_row = true,
          .make = make};
}

}  // namespace

int32_t TaskDraw::operator()(int64_t i, int64_t n) const {
  const auto block = static_cast<uint64_t>(row) << 16 | static_cast<uint64_t>(i / 4);
  const Random4 bits = random_bits(data_seed, static_cast<uint64_t>(attempt), site, block);
  return static_cast<int32_t>(bounded(bits.word[i % 4], static_cast<uint32_t>(n)));
}

TaskFormat task_format(const TaskSpec& spec) {
  const std::string& name = spec.kind->name;
  if (name == "addition") return addition(spec);
  if (name == "modadd") return modadd(spec);
  if (name == "induction") return induction(spec);
  return string_task(spec);
}

}  // namespace tapedeck
