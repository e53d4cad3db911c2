// What the tests of the block engine share: launches of lambdas, both orders, and the message of a launch that fails.
#pragma once
#include <string>
#include <vector>

#include "engine/check.h"
#include "engine/emulation/block_engine.h"
#include "engine/kernel_name.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

namespace tapedeck::emulation {

// Runs a functor of (block, lane).
template <class F>
void launch(int64_t blocks, int lanes, size_t shared, const F& kernel) {
  run_grid({kernel_name<F>(), blocks, lanes, shared,
            [](const void* f, int64_t block, int lane) { (*static_cast<const F*>(f))(block, lane); }, &kernel});
}

template <class Body>
void in_order(Order order, const Body& body) {
  const Order before = options().order;
  options().order = order;
  CAPTURE((order == Order::forward ? "forward" : "reverse"));
  body();
  options().order = before;
}

template <class Body>
void in_both_orders(const Body& body) {
  in_order(Order::forward, body);
  in_order(Order::reverse, body);
}

// The message with which the launch fails; then the engine has to work as if nothing had been.
template <class F>
std::string failure(int64_t blocks, int lanes, size_t shared, const F& kernel) {
  std::string message = "nothing failed";
  try {
    launch(blocks, lanes, shared, kernel);
  } catch (const Error& e) {
    message = e.what();
  }
  std::vector<float> sums(2);
  launch(2, 64, 64 * sizeof(float), [&](int64_t block, int lane) {
    auto* const s = reinterpret_cast<float*>(shared_memory());
    s[lane] = static_cast<float>(lane);
    barrier(Site::here());
    if (lane == 0)
      for (int i = 0; i < 64; ++i) sums[block] += s[i];
  });
  CHECK_EQ(sums, std::vector<float>{2016, 2016});
  return message;
}

// Every text is in the message.
inline void check_says(const std::string& message, const std::vector<std::string>& texts) {
  CAPTURE(message);
  for (const std::string& wanted : texts) {
    CAPTURE(wanted);
    CHECK_NE(message.find(wanted), std::string::npos);
  }
}

}  // namespace tapedeck::emulation
