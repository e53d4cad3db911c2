#include "engine/check.h"

#include <fmt/args.h>
#include <fmt/format.h>

#include "engine/scope.h"

namespace tapedeck {

std::string format_text(const char* format, std::initializer_list<CheckValue> values) {
  fmt::dynamic_format_arg_store<fmt::format_context> store;
  for (const CheckValue& value : values) switch (value.kind()) {
      case CheckValue::Kind::integer: store.push_back(value.integer()); break;
      case CheckValue::Kind::natural: store.push_back(static_cast<uint64_t>(value.integer())); break;
      case CheckValue::Kind::real: store.push_back(value.real()); break;
      case CheckValue::Kind::text: store.push_back(value.text()); break;
    }
  try {
    return fmt::vformat(format, store);
  } catch (const fmt::format_error& e) {  // our own mistake must not hide the failure that the text is about
    return fmt::format("{} (this text does not fit its values: {})", format, e.what());
  }
}

void check_failed(const char* file, int line, const char* format, std::initializer_list<CheckValue> values) {
  std::string_view place = file;  // CMake compiles by absolute path; a person wants the path inside the project
  for (std::string_view folder : {"engine/", "ops/", "data/", "apps/", "tests/"})
    if (const size_t at = place.rfind(folder); at != std::string_view::npos) place = place.substr(at);
  const std::string& layer = Scope::path();
  throw Error(
      fmt::format("{}    (at {}{}{}:{})", format_text(format, values), layer, layer.empty() ? "" : ", ", place, line));
}

}  // namespace tapedeck
