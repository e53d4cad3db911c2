// What can be wrong with a page that was made of a document: tags, texts that touch, numbers that are none, words
// missed.
#pragma once
#include <fmt/format.h>

#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/config.h"
#include "tests/svg_texts.h"

namespace tapedeck::test {

inline std::vector<std::string> pictures(const std::string& page) {
  std::vector<std::string> out;
  for (size_t from = page.find("<svg"); from != page.npos; from = page.find("<svg", from + 1))
    out.push_back(page.substr(from, page.find("</svg>", from) + 6 - from));
  return out;
}

// "": the page is whole. Pages of documents have no bare number that is none.
inline std::string page_trouble(const std::string& page) {
  if (const std::string tags = tag_trouble(page); !tags.empty()) return tags;
  for (const std::string& picture : pictures(page))
    if (const std::string text = text_trouble(picture); !text.empty()) return text;
  const std::string body = page.substr(page.find("<main>"));
  for (const char* bad : {"http://", "https://", "<script", "src=", "@import", "url(", ">nan", " nan", "nan ", ">inf<",
                          " inf ", "-inf", "null", "e38"})
    if (body.find(bad) != body.npos)
      return fmt::format("{} in: {}", bad, body.substr(body.find(bad) < 60 ? 0 : body.find(bad) - 60, 120));
  return "";
}

inline std::string lacks(const std::string& page, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words)
    if (page.find(word) == page.npos) return std::string(word);
  return "";
}

// Every number and list in turn is null.
inline void each_null(Json& part, const std::function<void()>& then) {
  if (part.is_array() && part.size() > 1) part.erase(part.begin() + 1, part.end());  // others are alike
  for (Json& item : part) {
    if (item.is_structured()) each_null(item, then);
    const Json before = item;
    item = Json();
    then();
    item = before;
  }
}

}  // namespace tapedeck::test
