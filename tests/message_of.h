// message_of(f): the message of the Error that f throws.
#pragma once
#include <string>

#include "engine/check.h"

namespace tapedeck::test {

template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

}  // namespace tapedeck::test
