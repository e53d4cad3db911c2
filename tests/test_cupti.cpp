// What the GPU ran, through our CUPTI code, on a double of the library (fake_cupti.h): records, refusals, loading.
#if !__has_include(<cupti.h>)
#include <doctest/doctest.h>
TEST_CASE("cupti: records and refusals on a double of the library") { MESSAGE("skipped: no cupti.h"); }
#else
#include <chrono>
#include <iostream>

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
  FakeCupti& fake = fake_cupti();
  CuptiRecorder recorder{fake_cupti_functions()};
};

}  // namespace

TEST_CASE("cupti: kernels, copies and fills come with their times, stream, mark and the time of their call") {
  Setting s;
  REQUIRE(s.recorder.start() == "");
  CHECK(s.fake.enabled.contains(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  CHECK_FALSE(s.fake.enabled.contains(CUPTI_ACTIVITY_KIND_KERNEL));  // it would run one kernel at a time
  s.fake.launch(1, "cuda_function", 100, 200);                       // before any mark
  const uint64_t first = s.recorder.mark();
  s.fake.launch(2, "_ZN8tapedeck4cuda10run_on_gpuINS_10RowsKernelINS_14SoftmaxForwardIfEEEEEEvT_", 300, 450, 17);
  const uint64_t second = s.recorder.mark();
  CHECK(second > first);
  CHECK(s.fake.ids == std::vector<uint64_t>{second});  // one id at a time
  CUpti_ActivityExternalCorrelation id{};
  id.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  id.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, id.externalId = second, id.correlationId = 3;
  s.fake.queue(id);
  id.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_OPENACC, id.externalId = 12345;  // somebody else's
  s.fake.queue(id);
  CUpti_ActivityMemcpy6 copy{};
  copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY, copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_HTOD;
  copy.start = 250, copy.end = 260, copy.streamId = 8, copy.correlationId = 3;
  s.fake.queue(copy);
  CUpti_ActivityMemset4 fill{};
  fill.kind = CUPTI_ACTIVITY_KIND_MEMSET, fill.start = 500, fill.end = 501, fill.streamId = 7, fill.correlationId = 4;
  s.fake.queue(fill);
  fill.start = 600, fill.end = 0;  // still running when the buffers were flushed
  s.fake.queue(fill);
  const std::vector<KernelRecord> records = s.recorder.take();
  REQUIRE(records.size() == 4);  // by begin
  CHECK(std::string(records[0].name) == "cuda_function");
  CHECK(records[0].mark == 0);
  CHECK(std::string(records[1].name) == "copy from the host");
  CHECK(records[1].kind == KernelRecord::Kind::copy);
  CHECK(records[1].mark == second);
  CHECK(records[1].stream == 8);
  CHECK(records[1].asked == 0);
  CHECK(std::string(records[2].name) == "SoftmaxForward<float>");
  CHECK(records[2].mark == first);
  CHECK(records[2].begin == 300);
  CHECK(records[2].end == 450);
  CHECK(records[2].asked == 295);
  CHECK(records[2].correlation == 2);
  CHECK(records[2].graph_node == 17);
  CHECK(records[3].kind == KernelRecord::Kind::fill);
  CHECK(s.recorder.take().empty());
  s.recorder.unmark();
  s.fake.launch(2, "cuda_function", 700, 800);  // numbers may come again
  CHECK(s.recorder.take().at(0).mark == 0);
  s.recorder.stop();
  CHECK(s.fake.enabled.empty());
  CHECK(s.fake.ids.empty());
}

TEST_CASE("cupti: records that fill many buffers all come, and those that it dropped are counted") {
  Setting s;
  s.fake.records_a_buffer = 7;
  REQUIRE(s.recorder.start() == "");
  for (int round = 1; round <= 2; ++round) {
    const uint64_t mark = s.recorder.mark();
    for (uint32_t i = 1; i <= 1000; ++i) s.fake.launch(i, "kernel", 10 * i, 10 * i + 9);
    s.fake.drops = 5;
    const int64_t lost = s.recorder.lost();
    const std::vector<KernelRecord> records = s.recorder.take();
    REQUIRE(records.size() == 1000);
    int64_t ours = 0;
    for (const KernelRecord& k : records) ours += k.mark == mark && k.end - k.begin == 9;
    CHECK(ours == 1000);
    CHECK(s.fake.buffers >= round * 400);
    CHECK(s.recorder.lost() == lost + 5);
  }
}

TEST_CASE("cupti: the clock that it is given is the host's steady one") {
  Setting s;
  REQUIRE(s.recorder.start() == "");
  const auto now = [] {
    return static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  };
  const uint64_t before = now(), told = s.fake.clock(), after = now();
  CHECK(before <= told);
  CHECK(told <= after);
}

TEST_CASE("cupti: where another profiler has it, it says so and leaves nothing switched on") {
  Setting s;
  s.fake.refused = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  s.fake.enable_result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  const std::string why = s.recorder.start();
  CHECK(mentions(why, {"libcupti", "another profiler", "MULTIPLE_SUBSCRIBERS"}));
  CHECK(s.fake.enabled.empty());
  s.fake.enable_result = CUPTI_ERROR_UNKNOWN;
  CHECK(mentions(s.recorder.start(), {"cuptiActivityEnable", "CUPTI_ERROR_UNKNOWN (999)"}));
  s.fake.refused = CUPTI_ACTIVITY_KIND_INVALID;
  s.fake.clock_result = CUPTI_ERROR_NOT_INITIALIZED;
  CHECK(mentions(s.recorder.start(), {"cuptiActivityRegisterTimestampCallback"}));
  s.fake.clock_result = CUPTI_SUCCESS;
  CHECK(s.recorder.start() == "");
}

TEST_CASE("cupti: a library of another major version is refused, since its records are other structs") {
  Setting s;
  CHECK(why_not_this_cupti(fake_cupti_functions()) == "");
  s.fake.version = CUPTI_API_VERSION + 199;  // a later minor one
  CHECK(why_not_this_cupti(fake_cupti_functions()) == "");
  for (const uint32_t version : {uint32_t{28}, uint32_t{CUPTI_API_VERSION + 10000}}) {
    s.fake.version = version;
    CHECK(mentions(why_not_this_cupti(fake_cupti_functions()),
                   {"libcupti", std::to_string(version), "install CUPTI of CUDA 13"}));
  }
}

TEST_CASE("cupti: the library of this machine has every function, or there is a reason") {
  std::string why;
  const CuptiFunctions* const functions = cupti_functions(why);
  CHECK((functions != nullptr) == why.empty());
  if (!functions) {
    std::cout << "skipped: " << why << "\n";
    return;
  }
  uint32_t version = 0;
  CHECK(functions->version(&version) == CUPTI_SUCCESS);
  CHECK(version / 10000 == CUPTI_API_VERSION / 10000);
}

TEST_CASE("cupti: names of kernels are read as a person writes them") {
  CHECK(readable_kernel("_ZN8tapedeck4cuda10run_on_gpuINS_10EachKernelINS_6detail3MapILb0EfNS_4ReluEJfEEEEEEEvT_") ==
        "detail::Map<false, float, Relu, float>");
  CHECK(readable_kernel("_Z6vecAddPKfS0_Pfi") == "vecAdd");
  CHECK(readable_kernel("sm90_xmma_gemm_f32f32") == "sm90_xmma_gemm_f32f32");
}
#endif
