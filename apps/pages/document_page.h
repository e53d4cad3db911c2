// Pages of documents that are no runs: what compare, profile and bench saved.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "apps/config.h"
#include "apps/pages/html.h"

namespace tapedeck {

enum class DocumentKind : uint8_t { compare, profile, bench, sweep, fit, none };
DocumentKind kind_of(const Json& document);

std::string compare_page(const std::string& name, const Json& document);
std::string profile_page(const std::string& name, const Json& document);
std::string bench_page(const std::string& name, const Json& document);

// The main table of a document, for CSV and markdown.
Table document_table(const Json& document);
Table bench_table(const Json& rows);              // bench_page.cpp
std::string document_lead(const Json& document);  // a sentence

// What a document that may have been changed by hand holds: NaN, "" and an empty array where it is something else.
double number_at(const Json& object, const char* key);
std::string text_at(const Json& object, const char* key);
const Json& list_at(const Json& object, const char* key);
const Json& object_at(const Json& object, const char* key);

}  // namespace tapedeck
