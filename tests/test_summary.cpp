// summary.json read back: a repeat that goes on takes the seeds that are done from it.
#include "apps/summary.h"

#include <nlohmann/json.hpp>

#include "apps/record.h"
#include "engine/check.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;

namespace {

// Replaces every null of a document by a value of the field's type, each another one.
Json filled(Json document, int& next) {
  Summary some;
  some.noise_scale.emplace();
  const Json measured = to_json(some);
  for (auto& [key, value] : document.items()) {
    if (value.is_object())
      value = filled(value, next);
    else if (key == "metric")
      value = "loss";
    else if (key == "noise_scale")
      value = filled(measured["noise_scale"], next);
    else if (key == "how" || key == "reason")
      value = "some words";
    else if (key == "reached")
      value = true;
    else if (value.is_null())
      value = ++next;
  }
  return document;
}

}  // namespace

TEST_CASE("a summary comes back from its file with every field, set or not") {
  const Json empty = to_json(Summary{});
  CHECK(to_json(summary_from_json(empty)) == empty);
  CHECK(empty["step_ms"]["p95"].is_null());

  int fields = 0;
  const Json full = filled(empty, fields);
  CHECK(fields > 40);  // else the rest proves little
  CHECK(to_json(summary_from_json(Json::parse(json_text(full)))) == full);

  Summary some;
  some.command = "train", some.status = "interrupted", some.seed = 7, some.final.test_loss = 0.1;
  some.time.data_load = 2.5, some.step_ms = StepTimeSummary{1, 0.5, 2, 10};
  const Summary back = summary_from_json(to_json(some));
  CHECK(back.status == "interrupted");
  CHECK(back.time.data_load == 2.5);
  CHECK(back.step_ms->p05_ms == 0.5);
  CHECK_FALSE(back.final.train_loss);
}

TEST_CASE("a summary of an older program lacks fields, which are then unset") {
  Json old = to_json(Summary{});
  old["time"].erase("data_load"), old.erase("loss_scale");
  CHECK_FALSE(summary_from_json(old).time.data_load);
}

TEST_CASE("a summary whose field has the wrong type is refused by the field's name") {
  for (const auto& change : {std::pair<const char*, Json>{"/seed", 1.5},
                             {"/seed", "1"},
                             {"/epochs", "two"},
                             {"/status", 3},
                             {"/target/reached", 1},
                             {"/step_ms/n", 2.5}}) {
    Json document = to_json(Summary{});
    document[Json::json_pointer(change.first)] = change.second;
    CAPTURE(change.first);
    try {
      summary_from_json(document);
      FAIL("accepted");
    } catch (const Error& e) {
      CHECK(mentions(e.what(), {change.first, change.second.dump()}));
    }
  }
  CHECK_THROWS_AS(summary_from_json(Json::array()), Error);
}
