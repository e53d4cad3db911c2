// Pages of HTML that need nothing but themselves: no script, no font, no network. Colours are variables of the style
// sheet, so that text, tables and inline SVG follow the reader's dark or light setting, and paper is always light.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tapedeck {

// As content or as a quoted attribute: < > & and both quotes as entities; what is no UTF-8, and control characters but
// line break and tab, as U+FFFD.
std::string html_text(std::string_view text);

// A whole document. `body` is HTML, the title text.
std::string html_page(std::string_view title, const std::string& body);
extern const char* const style_sheet;                                                                 // style.cpp
inline constexpr std::string_view generator_mark = "<meta name=\"generator\" content=\"tapedeck\">";  // in every page

// <h2>text</h2>; level 1 to 4.
std::string heading(int level, std::string_view text);
std::string paragraph(std::string_view text, std::string_view style_class = {});  // classes: lead, note, warn

struct TableCell {
  std::string text;
  bool number = false;    // set to the right, digits of one width
  std::string link = {};  // relative address, for <a href>
  double bar = -1;        // from 0 to 1: a bar behind the text, of that share of the cell; below 0: none
};
inline TableCell number_cell(std::string text) { return {.text = std::move(text), .number = true}; }
struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<TableCell>> rows;
};
// On a narrow screen each row is a block of lines "column: value", so that a table never scrolls sideways.
std::string html_table(const Table& table, std::string_view caption = {});

// Two columns, names on the left; many short ones in as many columns as there is room for. Values are text.
std::string facts(const std::vector<std::pair<std::string, std::string>>& rows, bool many = false);
// Folded away until it is opened, and open on paper. `inner` is HTML.
std::string details(std::string_view summary, const std::string& inner);
// Figures (chart.h) side by side where there is room.
std::string beside(const std::vector<std::string>& figures);

}  // namespace tapedeck
