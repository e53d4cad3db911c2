// What a test reads off a picture: its texts with the boxes that they take, and how its tags nest.
#pragma once
#include <map>
#include <regex>
#include <string>
#include <vector>

#include "apps/pages/label.h"

namespace tapedeck::test {

inline std::string unescaped(std::string text) {
  const std::pair<const char*, const char*> all[] = {
      {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}};
  for (const auto& [entity, character] : all)
    for (size_t at; (at = text.find(entity)) != text.npos;) text.replace(at, std::string(entity).size(), character);
  return text;
}

struct SvgText {
  std::string text;
  Box box;
};
inline std::vector<SvgText> svg_texts(const std::string& svg) {
  static const std::regex pattern(
      R"re(<text x="([^"]*)" y="([^"]*)" font-size="([^"]*)" text-anchor="([a-z]*)"[^>]*>([^<]*)<)re");
  std::vector<SvgText> out;
  for (auto m = std::sregex_iterator(svg.begin(), svg.end(), pattern); m != std::sregex_iterator(); ++m) {
    const std::string anchor = (*m)[4], text = unescaped((*m)[5]);
    out.push_back({text, text_area(std::stod((*m)[1]), std::stod((*m)[2]), text, std::stod((*m)[3]),
                                   anchor == "start"    ? Svg::Anchor::start
                                   : anchor == "middle" ? Svg::Anchor::middle
                                                        : Svg::Anchor::end)});
  }
  return out;
}

// "": each text is within the picture and touches no other; else the first that is or does not.
inline std::string text_trouble(const std::string& svg) {
  std::smatch size;
  if (!std::regex_search(svg, size, std::regex(R"re(viewBox="0 0 ([0-9.]+) ([0-9.]+)")re"))) return "no viewBox";
  const Box picture = {-0.1, -0.1, std::stod(size[1]) + 0.1, std::stod(size[2]) + 0.1};
  const std::vector<SvgText> texts = svg_texts(svg);
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!texts[i].box.within(picture)) return "clipped: " + texts[i].text;
    for (size_t j = 0; j < i; ++j)
      if (texts[i].box.meets(texts[j].box)) return texts[j].text + " meets " + texts[i].text;
  }
  return "";
}

// "": every tag is closed in its order; else what is not.
inline std::string tag_trouble(const std::string& html) {
  static const std::regex pattern(R"re(<(/?)([a-zA-Z][a-z0-9]*)((?:"[^"]*"|[^">])*?)(/?)>)re");
  std::vector<std::string> open;
  const auto style = html.find("</style>");  // no tags within it
  const std::string text =
      style == html.npos ? html : html.substr(html.rfind("<style>", style) == html.npos ? 0 : style + 8);
  for (auto m = std::sregex_iterator(text.begin(), text.end(), pattern); m != std::sregex_iterator(); ++m) {
    const std::string name = (*m)[2];
    if ((*m)[4] == "/" || name == "meta" || name == "link" || name == "br") continue;
    if ((*m)[1] != "/") {
      open.push_back(name);
    } else if (!open.empty() && open.back() == name) {
      open.pop_back();
    } else if (!(open.empty() && (name == "head" || name == "body" || name == "html"))) {
      return "</" + name + "> closes " + (open.empty() ? "nothing" : open.back());
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> stays open";
}

}  // namespace tapedeck::test
