// When a run knew its training examples, and when the others.
#include "apps/milestones.h"

#include "tests/runs.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

using namespace tapedeck;
using namespace tapedeck::test;

TEST_CASE("milestones are the first evaluations that reach them, and say what is missing") {
  const TemporaryFolder folder;
  const auto of = [&](const std::vector<std::pair<double, double>>& accuracies) {
    std::ofstream out(folder / "metrics.jsonl");
    int step = 0;
    for (const auto& [training, validation] : accuracies)
      out << Json{{"step", ++step}, {"train_loss", 1}}.dump() << "\n"
          << Json{{"step", step}, {"validation_accuracy", validation}, {"train_accuracy", training}}.dump() << "\n";
    out.close();
    return milestones(folder / "metrics.jsonl");
  };
  CHECK(of({}) == "");
  CHECK(of({{0.5, 0.1}}) ==
        "training examples not known yet (50.0 % at step 1); validation's not yet (10.0 % at step 1)\n");
  CHECK(
      of({{0.5, 0.1}, {0.991, 0.2}, {1, 0.3}, {1, 0.96}, {1, 1}}) ==
      "training examples known at step 2 (99.1 % of them, of validation's 20.0 %); validation's at step 4 (96.0 %)\n");
  CHECK(milestones(folder / "nothing") == "");
}

TEST_CASE("a task whose examples come again is scored on them too") {
  const TemporaryFolder folder;
  const auto train = [&](const std::string& task, const std::string& name) {
    return run_tapedeck({"train", "--data", task, "--layers", "1", "--heads", "1", "--width", "8", "--batch", "32",
                         "--steps", "3", "--eval-every", "2", "--quiet", "--out", folder / name});
  };
  const Outcome again = train("task:modadd:p=11,train=0.5", "again");
  CHECK(again.code == exit_done);
  CHECK(contains(again.out, "training examples not known yet"));
  CHECK(curve(folder / "again", "train_accuracy").size() == 2);
  CHECK_FALSE(contains(train("task:copy", "endless").out, "known"));
}
