#include "apps/milestones.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace tapedeck {

std::string milestones(const std::filesystem::path& metrics) {
  struct Moment {
    int64_t step;
    double training, validation;
  };
  std::optional<Moment> first, second, last;
  std::ifstream in(metrics);
  for (std::string text; std::getline(in, text);) {
    const nlohmann::json line = nlohmann::json::parse(text, nullptr, false);
    if (!line.is_object() || !line.value("train_accuracy", nlohmann::json()).is_number()) continue;
    last = {line["step"], line["train_accuracy"], line["validation_accuracy"]};
    if (!first && last->training >= by_heart) first = last;
    if (!second && last->validation >= understood) second = last;
  }
  if (!last) return "";
  std::string out =
      first ? fmt::format("training examples known at step {} ({:.1f} % of them, of validation's {:.1f} %)",
                          first->step, 100 * first->training, 100 * first->validation)
            : fmt::format("training examples not known yet ({:.1f} % at step {})", 100 * last->training, last->step);
  out += second ? fmt::format("; validation's at step {} ({:.1f} %)", second->step, 100 * second->validation)
                : fmt::format("; validation's not yet ({:.1f} % at step {})", 100 * last->validation, last->step);
  return out + "\n";
}

}  // namespace tapedeck
