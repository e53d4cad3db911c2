// What `tapedeck profile` prints: a table of ops, one of ranges, and the same as JSON.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/peaks.h"
#include "apps/profile_rows.h"

namespace tapedeck {

// `top`: rows of each table; what is left out is said with its sum. Without peaks there are no roofs.
std::string op_table(const Profile& profile, const std::optional<Peaks>& peaks, int64_t top);
std::string range_table(const Profile& profile, int64_t top);
Json profile_json(const Profile& profile, const std::optional<Peaks>& peaks);

}  // namespace tapedeck
