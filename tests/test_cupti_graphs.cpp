// Which mark a node of a CUDA graph was made under, through our CUPTI code, on a double of the library (fake_cupti.h).
#if !__has_include(<cupti.h>)
#include <doctest/doctest.h>
TEST_CASE("cupti graphs: nodes and their marks on a double of the library") { MESSAGE("skipped: no cupti.h"); }
#else
#include <optional>
#include <thread>

#include "engine/cuda/cupti_recorder.h"
#include "tests/fake_cupti.h"

#undef CHECK  // below it is doctest's
#include <doctest/doctest.h>

#include "tests/mentions.h"

using namespace tapedeck;
using namespace tapedeck::test;

namespace {

struct Setting {
  Setting() { fake = {}; }
  uint64_t captured(uintptr_t node) {  // as a kernel's record has it that the node ran
    fake.launch(++calls, "kernel", 100, 200, FakeCupti::node_id(node));
    const std::vector<KernelRecord> records = recorder->take();
    REQUIRE(records.size() == 1);
    return records[0].captured;
  }
  FakeCupti& fake = fake_cupti();
  std::optional<CuptiRecorder> recorder{std::in_place, fake_cupti_functions()};
  uint32_t calls = 0;
};

}  // namespace

TEST_CASE("cupti graphs: a kernel's record has the mark that the original of its node was captured under") {
  Setting s;
  REQUIRE(s.recorder->follow_graphs() == "");
  REQUIRE(s.recorder->follow_graphs() == "");  // it does already
  const uint64_t first = s.recorder->mark();   // nothing is recorded while a step is captured
  s.fake.create_node(1);
  s.fake.create_node(2);
  const uint64_t second = s.recorder->mark();
  s.fake.create_node(3);
  std::thread([&] { s.fake.create_node(4); }).join();  // another thread's
  s.recorder->unmark();
  s.fake.create_node(5);
  for (const uintptr_t node : {1, 2, 3, 4, 5}) s.fake.clone_node(10 + node, node);
  s.fake.clone_node(22, 12);  // a copy of a copy
  REQUIRE(s.recorder->start() == "");
  const uint64_t call = s.recorder->mark();
  CHECK(s.captured(11) == first);
  CHECK(s.captured(12) == first);
  CHECK(s.captured(13) == second);
  CHECK(s.captured(14) == 0);
  CHECK(s.captured(15) == 0);
  CHECK(s.captured(22) == first);
  CHECK(s.captured(1) == first);
  CHECK(s.captured(99) == 0);
  s.fake.launch(77, "kernel", 100, 200, FakeCupti::node_id(13));
  CHECK(s.recorder->take().at(0).mark == call);  // which replay it was
  s.recorder->stop();
  REQUIRE(s.recorder->start() == "");  // as between the repeats of a window
  CHECK(s.captured(13) == second);
}

TEST_CASE("cupti graphs: a graph that is made ready under another mark has its originals' marks all the same") {
  Setting s;
  REQUIRE(s.recorder->follow_graphs() == "");
  REQUIRE(s.recorder->start() == "");
  const uint64_t first = s.recorder->mark();
  s.fake.create_node(1);
  const uint64_t second = s.recorder->mark();
  s.fake.clone_node(11, 1);
  s.fake.tell(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, 12, 1);  // in the other order
  s.fake.tell(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, 12);
  CHECK(second != first);
  CHECK(s.captured(11) == first);
  CHECK(s.captured(12) == first);
}

TEST_CASE("cupti graphs: who does not follow them is told nothing, and who ends leaves no callback behind") {
  Setting s;
  REQUIRE(s.recorder->start() == "");
  s.recorder->mark();
  s.fake.create_node(1);
  s.fake.clone_node(11, 1);
  CHECK(s.captured(11) == 0);
  CHECK_FALSE(s.fake.subscribed());
  REQUIRE(s.recorder->follow_graphs() == "");
  CHECK(s.fake.subscribed());
  CHECK(s.fake.callbacks.size() == 2);
  s.fake.node_result = CUPTI_ERROR_NOT_INITIALIZED;  // the id of a node is not told
  s.fake.create_node(2);
  s.fake.clone_node(12, 2);
  s.fake.node_result = CUPTI_SUCCESS;
  CHECK(s.captured(12) == 0);
  CUpti_ResourceData none{};  // what other resource callbacks may bring
  s.fake.subscriber(s.fake.subscriber_data, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, &none);
  s.recorder.reset();
  CHECK_FALSE(s.fake.subscribed());
}

TEST_CASE("cupti graphs: where another tool has the callbacks, it says so and leaves none switched on") {
  Setting s;
  s.fake.subscribe_result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  CHECK(mentions(s.recorder->follow_graphs(), {"libcupti", "cuptiSubscribe", "another profiler"}));
  s.fake.subscribe_result = CUPTI_SUCCESS;
  s.fake.callback_result = CUPTI_ERROR_UNKNOWN;
  CHECK(mentions(s.recorder->follow_graphs(), {"cuptiEnableCallback", "CUPTI_ERROR_UNKNOWN (999)"}));
  CHECK_FALSE(s.fake.subscribed());
  s.fake.callback_result = CUPTI_SUCCESS;
  CHECK(s.recorder->follow_graphs() == "");
}
#endif
