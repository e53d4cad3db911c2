// A double of CUPTI's activity API, written from its documentation (cupti_activity.h of CUDA 13.0): it takes buffers,
// fills them with the records that a test queues, of the kinds that are enabled, and delivers them when it is flushed,
// from a thread of its own as CUPTI does.
#pragma once
#include <cupti.h>

#include <cstring>
#include <set>
#include <vector>

#include "engine/cuda/cupti_functions.h"

namespace tapedeck::test {

struct FakeCupti {
  uint32_t version = CUPTI_API_VERSION;
  CUptiResult clock_result = CUPTI_SUCCESS, enable_result = CUPTI_SUCCESS;
  CUpti_ActivityKind refused = CUPTI_ACTIVITY_KIND_INVALID;  // enabling it gives enable_result
  size_t records_a_buffer = 1000;
  size_t drops = 0;  // records that it says it dropped, told once
  // What happened:
  std::set<CUpti_ActivityKind> enabled;
  std::vector<uint64_t> ids;  // pushed and not popped
  int buffers = 0;            // filled so far
  CUpti_TimestampCallbackFunc clock = nullptr;

  template <class Record>
  void queue(const Record& record) {
    std::vector<char> bytes(sizeof record);
    std::memcpy(bytes.data(), &record, sizeof record);
    queued.push_back(std::move(bytes));
  }
  // As a launch by the runtime leaves them: the id of the calling thread before the call, and the kernel behind it.
  void launch(uint32_t correlation, const char* name, uint64_t begin, uint64_t end, uint64_t graph_node = 0);

  std::vector<std::vector<char>> queued;
};

FakeCupti& fake_cupti();  // there is one, since C functions have no place for another
const CuptiFunctions& fake_cupti_functions();

}  // namespace tapedeck::test
