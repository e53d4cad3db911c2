// The tables of a sweep's page and of a fit's.
#pragma once
#include <string>

#include "apps/pages/sweep_read.h"

namespace tapedeck {

std::string sizes_table(const Json& summary);           // one row a batch size
std::string cells_table(const Json& summary);           // every cell, folded away
std::string broken_cells(const Json& summary);          // those that diverged or failed, with their reasons
std::string again_words(const Json& summary);           // the same size twice
std::string horizons_table(const Json& summary);        // "" without horizons: sweep_horizons.cpp
std::string searched_twice_words(const Json& summary);  // again_words with horizons
std::string four_definitions(const Json& fit);          // four critical sizes
std::string fit_warnings(const Json& fit);
std::string rows_table(const Json& fit);  // medians against the law
std::string law_facts(const Json& fit);   // Smin, Emin, sigma, bootstrap, …

}  // namespace tapedeck
