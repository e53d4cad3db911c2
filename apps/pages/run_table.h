// Runs as rows: for a page, a CSV file, markdown or JSON.
#pragma once
#include <string>

#include "apps/pages/html.h"
#include "apps/pages/run_charts.h"

namespace tapedeck {

// A row a run: name, what it is, status, time to the target, results. Options that differ between runs are columns.
// `links`: relative addresses, one a group, or none.
Table runs_table(const Groups& groups, const std::vector<std::string>& links = {});

std::string csv_of(const Table& table);       // RFC 4180: quoted where it must be; numbers as they are
std::string markdown_of(const Table& table);  // | a | b |
// Every run with all that its summary holds, in numbers: for spreadsheets and scripts.
Table full_table(const Groups& groups);
Json runs_json(const Groups& groups);

}  // namespace tapedeck
