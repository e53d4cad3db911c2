// A double of CUPTI's activity API, written from its documentation (cupti_activity.h of CUDA 13.0): it takes buffers,
// fills them with the records that a test queues, of the kinds that are enabled, and delivers them when it is flushed,
// from a thread of its own as CUPTI does. And of its callback API (cupti_callbacks.h), as far as it tells of the nodes
// of graphs: to one subscriber, in the thread that makes them.
#pragma once
#include <cupti.h>

#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "engine/cuda/cupti_functions.h"

namespace tapedeck::test {

struct FakeCupti {
  uint32_t version = CUPTI_API_VERSION;
  CUptiResult clock_result = CUPTI_SUCCESS, enable_result = CUPTI_SUCCESS;
  CUptiResult subscribe_result = CUPTI_SUCCESS, callback_result = CUPTI_SUCCESS, node_result = CUPTI_SUCCESS;
  CUpti_ActivityKind refused = CUPTI_ACTIVITY_KIND_INVALID;  // enabling it gives enable_result
  size_t records_a_buffer = 1000;
  size_t drops = 0;  // records that it says it dropped, told once
  // What happened:
  std::set<CUpti_ActivityKind> enabled;
  std::vector<uint64_t> ids;  // pushed and not popped
  int buffers = 0;            // filled so far
  CUpti_TimestampCallbackFunc clock = nullptr;
  CUpti_CallbackFunc subscriber = nullptr;
  void* subscriber_data = nullptr;
  std::set<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>> callbacks;  // that are enabled

  template <class Record>
  void queue(const Record& record) {
    std::vector<char> bytes(sizeof record);
    std::memcpy(bytes.data(), &record, sizeof record);
    queued.push_back(std::move(bytes));
  }
  // As a launch by the runtime leaves them: the id of the calling thread before the call, and the kernel behind it.
  void launch(uint32_t correlation, const char* name, uint64_t begin, uint64_t end, uint64_t graph_node = 0);

  // A node is captured, and copied by making its graph ready, of which CUPTI tells twice. Their ids are node_id(node).
  void create_node(uintptr_t node) { tell(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node); }
  void clone_node(uintptr_t node, uintptr_t original) {
    tell(CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, node);
    tell(CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED, node, original);
  }
  bool subscribed() const { return subscriber != nullptr; }
  static uint64_t node_id(uintptr_t node) { return 7'000'000'000 + node; }
  void tell(CUpti_CallbackIdResource what, uintptr_t node, uintptr_t original = 0);

  std::vector<std::vector<char>> queued;
};

FakeCupti& fake_cupti();  // there is one, since C functions have no place for another
const CuptiFunctions& fake_cupti_functions();

}  // namespace tapedeck::test
