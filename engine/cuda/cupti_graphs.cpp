#if __has_include(<cupti.h>)
#include "engine/cuda/cupti_graphs.h"

#include <utility>

namespace tapedeck {
namespace {

constexpr CUpti_CallbackIdResource kinds[] = {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED,
                                              CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED};
thread_local constinit uint64_t current = 0;

}  // namespace

void CuptiGraphs::capture_under(uint64_t mark) { current = mark; }

CuptiGraphs::~CuptiGraphs() {
  if (subscriber_) f_.unsubscribe(subscriber_);
}

std::string CuptiGraphs::follow() {
  if (subscriber_) return "";
  if (const CUptiResult status = f_.subscribe(&subscriber_, &CuptiGraphs::told, this); status != CUPTI_SUCCESS) {
    subscriber_ = nullptr;
    return cupti_refusal(f_, "cuptiSubscribe", status);
  }
  for (const CUpti_CallbackIdResource kind : kinds)
    if (const CUptiResult status = f_.enable_callback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, kind);
        status != CUPTI_SUCCESS) {
      f_.unsubscribe(std::exchange(subscriber_, nullptr));
      return cupti_refusal(f_, "cuptiEnableCallback", status);
    }
  return "";
}

void CUPTIAPI CuptiGraphs::told(void* self, CUpti_CallbackDomain domain, CUpti_CallbackId what, const void* data) {
  if (domain != CUPTI_CB_DOMAIN_RESOURCE || !data) return;
  const void* const graph = static_cast<const CUpti_ResourceData*>(data)->resourceDescriptor;
  if (graph) static_cast<CuptiGraphs*>(self)->told(what, *static_cast<const CUpti_GraphData*>(graph));
}

void CuptiGraphs::told(CUpti_CallbackId what, const CUpti_GraphData& graph) {
  uint64_t node = 0, original = 0;
  const bool clones = what == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED;
  if (!clones && (what != CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED || current == 0)) return;
  if (f_.graph_node(graph.node, &node) != CUPTI_SUCCESS) return;  // its kernels are then the call's
  if (clones && f_.graph_node(graph.originalNode, &original) != CUPTI_SUCCESS) return;
  const std::lock_guard lock(mutex_);
  if (clones)
    marks_.cloned(node, original);
  else
    marks_.created(node, current);
}

uint64_t CuptiGraphs::mark_of(uint64_t node) const {
  const std::lock_guard lock(mutex_);
  return marks_.of(node);
}

}  // namespace tapedeck
#endif
