// mentions(message, words): whether a message holds every word; says which one it lacks. Include it after doctest.
#pragma once
#include <doctest/doctest.h>

#include <initializer_list>
#include <string>
#include <string_view>

inline bool mentions(const std::string& message, std::initializer_list<std::string_view> words) {
  for (std::string_view word : words)
    if (message.find(word) == message.npos) {
      MESSAGE("\"" << message << "\" lacks " << word);
      return false;
    }
  return true;
}
