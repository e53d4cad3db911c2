#include "apps/pages/html.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/utf8.h"

namespace tapedeck {

std::string html_text(std::string_view text) {
  constexpr std::string_view no_character = "\xEF\xBF\xBD";
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view before = text;
    const auto c = take_character(text);
    if (!c) {
      out += no_character;
      text.remove_prefix(1);
    } else if (*c == '<') {
      out += "&lt;";
    } else if (*c == '>') {
      out += "&gt;";
    } else if (*c == '&') {
      out += "&amp;";
    } else if (*c == '"') {
      out += "&quot;";
    } else if (*c == '\'') {
      out += "&#39;";
    } else if ((*c < 32 && *c != '\n' && *c != '\t') || (*c >= 127 && *c < 160) || *c == 0xfffe || *c == 0xffff) {
      out += no_character;
    } else {
      out += before.substr(0, before.size() - text.size());
    }
  }
  return out;
}

std::string html_page(std::string_view title, const std::string& body) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
      "{}\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
      generator_mark, html_text(title), style_sheet, body);
}

std::string heading(int level, std::string_view text) {
  return fmt::format("<h{0}>{1}</h{0}>\n", std::clamp(level, 1, 4), html_text(text));
}

std::string paragraph(std::string_view text, std::string_view style_class) {
  if (style_class.empty()) return fmt::format("<p>{}</p>\n", html_text(text));
  return fmt::format("<p class=\"{}\">{}</p>\n", html_text(style_class), html_text(text));
}

namespace {
std::string cell_html(const TableCell& cell, std::string_view column) {
  std::string attributes = fmt::format(" data-column=\"{}\"", html_text(column));
  if (cell.number) attributes += " class=\"number\"";
  std::string inner = html_text(cell.text);
  if (!cell.link.empty()) inner = fmt::format("<a href=\"{}\">{}</a>", html_text(cell.link), inner);
  if (cell.bar >= 0)
    inner =
        fmt::format("<span class=\"bar\" style=\"--share:{:.1f}%\">{}</span>", 100 * std::min(cell.bar, 1.0), inner);
  return fmt::format("<td{}>{}</td>", attributes, inner);
}
}  // namespace

std::string html_table(const Table& table, std::string_view caption) {
  std::string out = "<table class=\"cards\">\n";
  if (!caption.empty()) out += fmt::format("<caption>{}</caption>\n", html_text(caption));
  out += "<thead><tr>";
  for (size_t i = 0; i < table.columns.size(); ++i) {
    const bool number = !table.rows.empty() && i < table.rows.front().size() && table.rows.front()[i].number;
    out += fmt::format("<th scope=\"col\"{}>{}</th>", number ? " class=\"number\"" : "", html_text(table.columns[i]));
  }
  out += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    out += "<tr>";
    for (size_t i = 0; i < row.size(); ++i) out += cell_html(row[i], i < table.columns.size() ? table.columns[i] : "");
    out += "</tr>\n";
  }
  return out + "</tbody>\n</table>\n";
}

std::string facts(const std::vector<std::pair<std::string, std::string>>& rows, bool many) {
  std::string out = many ? "<dl class=\"many\">\n" : "<dl class=\"facts\">\n";
  for (const auto& [name, value] : rows)
    out += fmt::format("{}<dt>{}</dt> <dd>{}</dd>{}\n", many ? "<div>" : "", html_text(name), html_text(value),
                       many ? "</div>" : "");
  return out + "</dl>\n";
}

std::string details(std::string_view summary, const std::string& inner) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", html_text(summary), inner);
}

std::string beside(const std::vector<std::string>& figures) {
  std::string out = "<div class=\"figures\">\n";
  for (const std::string& figure : figures) out += figure;
  return out + "</div>\n";
}

}  // namespace tapedeck
