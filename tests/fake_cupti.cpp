#if __has_include(<cupti.h>)
#include "tests/fake_cupti.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace tapedeck::test {
namespace {

CUpti_BuffersCallbackRequestFunc wanted = nullptr;
CUpti_BuffersCallbackCompleteFunc filled = nullptr;

size_t size_of_record(CUpti_ActivityKind kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return sizeof(CUpti_ActivityExternalCorrelation);
    default: return sizeof(CUpti_ActivityAPI);
  }
}

CUptiResult version(uint32_t* out) { return *out = fake_cupti().version, CUPTI_SUCCESS; }
CUptiResult result_name(CUptiResult result, const char** name) {
  *name = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
                                                                   : "CUPTI_ERROR_UNKNOWN";
  return CUPTI_SUCCESS;
}
CUptiResult use_clock(CUpti_TimestampCallbackFunc clock) {
  fake_cupti().clock = clock;
  return fake_cupti().clock_result;
}
CUptiResult use_buffers(CUpti_BuffersCallbackRequestFunc request, CUpti_BuffersCallbackCompleteFunc complete) {
  wanted = request, filled = complete;
  return request && complete ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
CUptiResult enable(CUpti_ActivityKind kind) {
  if (kind == fake_cupti().refused) return fake_cupti().enable_result;
  fake_cupti().enabled.insert(kind);
  return CUPTI_SUCCESS;
}
CUptiResult disable(CUpti_ActivityKind kind) {
  return fake_cupti().enabled.erase(kind) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_KIND;
}

void deliver() {
  FakeCupti& fake = fake_cupti();
  std::vector<std::vector<char>> queued = std::exchange(fake.queued, {});
  for (size_t i = 0; i < queued.size();) {
    uint8_t* buffer = nullptr;
    size_t bytes = 0, most = 0, used = 0, records = 0;
    wanted(&buffer, &bytes, &most);
    if (!buffer) return;
    for (; i < queued.size() && records < fake.records_a_buffer && used + queued[i].size() <= bytes; ++i, ++records) {
      std::memcpy(buffer + used, queued[i].data(), queued[i].size());
      used += queued[i].size();
    }
    ++fake.buffers;
    filled(nullptr, 0, buffer, bytes, used);
  }
}
CUptiResult flush(uint32_t) {
  if (!filled) return CUPTI_ERROR_INVALID_OPERATION;
  std::thread(deliver).join();
  return CUPTI_SUCCESS;
}
CUptiResult next_record(uint8_t* buffer, size_t bytes, CUpti_Activity** record) {
  char* next =
      *record ? reinterpret_cast<char*>(*record) + size_of_record((*record)->kind) : reinterpret_cast<char*>(buffer);
  if (next >= reinterpret_cast<char*>(buffer) + bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}
CUptiResult dropped(CUcontext, uint32_t, size_t* out) {
  *out = std::exchange(fake_cupti().drops, 0);
  return CUPTI_SUCCESS;
}
CUptiResult push(CUpti_ExternalCorrelationKind, uint64_t id) {
  fake_cupti().ids.push_back(id);
  return CUPTI_SUCCESS;
}
CUptiResult pop(CUpti_ExternalCorrelationKind, uint64_t*) {
  if (fake_cupti().ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  fake_cupti().ids.pop_back();
  return CUPTI_SUCCESS;
}
CUptiResult subscribe(CUpti_SubscriberHandle* handle, CUpti_CallbackFunc callback, void* data) {
  FakeCupti& fake = fake_cupti();
  if (fake.subscribe_result != CUPTI_SUCCESS) return fake.subscribe_result;
  if (fake.subscriber) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  fake.subscriber = callback, fake.subscriber_data = data;
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(&fake);
  return CUPTI_SUCCESS;
}
CUptiResult unsubscribe(CUpti_SubscriberHandle) {
  if (!fake_cupti().subscriber) return CUPTI_ERROR_INVALID_PARAMETER;
  fake_cupti().subscriber = nullptr, fake_cupti().callbacks.clear();
  return CUPTI_SUCCESS;
}
CUptiResult enable_callback(uint32_t on, CUpti_SubscriberHandle, CUpti_CallbackDomain domain, CUpti_CallbackId what) {
  if (on && fake_cupti().callback_result == CUPTI_SUCCESS) fake_cupti().callbacks.emplace(domain, what);
  return fake_cupti().callback_result;
}
CUptiResult graph_node(CUgraphNode node, uint64_t* id) {
  *id = FakeCupti::node_id(reinterpret_cast<uintptr_t>(node));
  return node ? fake_cupti().node_result : CUPTI_ERROR_INVALID_PARAMETER;
}

}  // namespace

void FakeCupti::launch(uint32_t correlation, const char* name, uint64_t begin, uint64_t end, uint64_t graph_node) {
  if (!ids.empty()) {
    CUpti_ActivityExternalCorrelation id{};
    id.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    id.externalKind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
    id.externalId = ids.back(), id.correlationId = correlation;
    queue(id);
  }
  CUpti_ActivityAPI call{};
  call.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  call.start = begin - 5, call.end = begin - 2, call.correlationId = correlation;
  queue(call);
  CUpti_ActivityKernel10 kernel{};
  kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  kernel.name = name, kernel.start = begin, kernel.end = end;
  kernel.streamId = 7, kernel.correlationId = correlation, kernel.graphNodeId = graph_node;
  queue(kernel);
}

void FakeCupti::tell(CUpti_CallbackIdResource what, uintptr_t node, uintptr_t original) {
  if (!subscriber || !callbacks.contains({CUPTI_CB_DOMAIN_RESOURCE, what})) return;
  CUpti_GraphData graph{};
  graph.node = reinterpret_cast<CUgraphNode>(node), graph.originalNode = reinterpret_cast<CUgraphNode>(original);
  CUpti_ResourceData data{};
  data.resourceDescriptor = &graph;
  subscriber(subscriber_data, CUPTI_CB_DOMAIN_RESOURCE, what, &data);
}

FakeCupti& fake_cupti() {
  static FakeCupti fake;
  return fake;
}

const CuptiFunctions& fake_cupti_functions() {
  static const CuptiFunctions functions = {.version = version,
                                           .result_name = result_name,
                                           .use_clock = use_clock,
                                           .use_buffers = use_buffers,
                                           .enable = enable,
                                           .disable = disable,
                                           .flush = flush,
                                           .next_record = next_record,
                                           .dropped = dropped,
                                           .push = push,
                                           .pop = pop,
                                           .subscribe = subscribe,
                                           .unsubscribe = unsubscribe,
                                           .enable_callback = enable_callback,
                                           .graph_node = graph_node};
  return functions;
}

}  // namespace tapedeck::test
#endif
