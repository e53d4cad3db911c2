#if __has_include(<cupti.h>)
#include "engine/cuda/cupti_recorder.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <mutex>
#include <unordered_map>

#include "engine/check.h"

namespace tapedeck {
namespace {

constexpr CUpti_ActivityKind kinds[] = {
    CUPTI_ACTIVITY_KIND_RUNTIME,           CUPTI_ACTIVITY_KIND_DRIVER, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET};
constexpr CUpti_ExternalCorrelationKind ours = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0;
constexpr size_t buffer_bytes = 2 << 20;  // CUPTI's manual: 1 to 10 MB

// Filled by CUPTI's threads. Never destroyed: a buffer may come back while the program ends.
struct Store {
  std::mutex mutex;
  const CuptiFunctions* functions = nullptr;
  std::vector<uint8_t*> free_buffers;
  std::vector<KernelRecord> records;
  std::unordered_map<uint32_t, uint64_t> marks;  // by correlation
  std::unordered_map<uint32_t, int64_t> asked;
  std::map<std::string, std::string> names;  // readable by mangled; addresses stay
  int64_t lost = 0;

  const char* name(const char* mangled) {
    const auto [found, is_new] = names.try_emplace(mangled ? mangled : "");
    if (is_new) found->second = mangled ? readable_kernel(mangled) : "kernel";
    return found->second.c_str();
  }
  void forget() { records.clear(), marks.clear(), asked.clear(); }
};
Store& store() {
  static Store& store = *new Store;
  return store;
}

const char* copy_name(uint8_t kind) {
  return kind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD   ? "copy from the host"
         : kind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ? "copy to the host"
                                                   : "copy";
}

// The last version of each struct that our headers know; a newer library of the same major appends to it.
template <class Activity>
void keep(Store& s, const CUpti_Activity* record, KernelRecord::Kind kind, const char* name) {
  const auto& a = *reinterpret_cast<const Activity*>(record);
  if (a.end == 0 || a.end < a.start) return;  // still running, or its times are unknown
  s.records.push_back({.kind = kind,
                       .name = name,
                       .begin = static_cast<int64_t>(a.start),
                       .end = static_cast<int64_t>(a.end),
                       .stream = a.streamId,
                       .correlation = a.correlationId,
                       .graph_node = a.graphNodeId});
}

void read(Store& s, const CUpti_Activity* record) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return keep<CUpti_ActivityKernel10>(s, record, KernelRecord::Kind::kernel,
                                          s.name(reinterpret_cast<const CUpti_ActivityKernel10*>(record)->name));
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return keep<CUpti_ActivityMemcpy6>(s, record, KernelRecord::Kind::copy,
                                         copy_name(reinterpret_cast<const CUpti_ActivityMemcpy6*>(record)->copyKind));
    case CUPTI_ACTIVITY_KIND_MEMSET: return keep<CUpti_ActivityMemset4>(s, record, KernelRecord::Kind::fill, "fill");
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: {
      const auto& a = *reinterpret_cast<const CUpti_ActivityExternalCorrelation*>(record);
      if (a.externalKind == ours) s.marks[a.correlationId] = a.externalId;
      return;
    }
    case CUPTI_ACTIVITY_KIND_RUNTIME:
    case CUPTI_ACTIVITY_KIND_DRIVER: {
      const auto& a = *reinterpret_cast<const CUpti_ActivityAPI*>(record);
      s.asked[a.correlationId] = static_cast<int64_t>(a.start);
      return;
    }
    default: return;
  }
}

uint64_t CUPTIAPI clock_of_host() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

void CUPTIAPI buffer_wanted(uint8_t** buffer, size_t* bytes, size_t* most_records) {
  Store& s = store();
  const std::lock_guard lock(s.mutex);
  if (!s.free_buffers.empty()) {
    *buffer = s.free_buffers.back();
    s.free_buffers.pop_back();
  } else {
    *buffer = static_cast<uint8_t*>(std::aligned_alloc(64, buffer_bytes));  // null: CUPTI drops records and counts them
  }
  *bytes = *buffer ? buffer_bytes : 0;
  *most_records = 0;  // as many as fit
}

void CUPTIAPI buffer_filled(CUcontext context, uint32_t stream, uint8_t* buffer, size_t, size_t bytes) {
  Store& s = store();
  const std::lock_guard lock(s.mutex);
  CUpti_Activity* record = nullptr;
  while (bytes > 0 && s.functions->next_record(buffer, bytes, &record) == CUPTI_SUCCESS) try {
      read(s, record);
    } catch (const std::bad_alloc&) {  // nothing may be thrown through CUPTI, whose thread this is
      ++s.lost;
    }
  size_t dropped = 0;
  if (s.functions->dropped(context, stream, &dropped) == CUPTI_SUCCESS) s.lost += static_cast<int64_t>(dropped);
  try {
    s.free_buffers.push_back(buffer);
  } catch (const std::bad_alloc&) {
    std::free(buffer);
  }
}

}  // namespace

std::string CuptiRecorder::start() {
  if (enabled_ == std::size(kinds)) return "";
  Store& s = store();
  {
    const std::lock_guard lock(s.mutex);
    s.functions = &f_;
    s.forget();
  }
  if (const CUptiResult status = f_.use_clock(clock_of_host); status != CUPTI_SUCCESS)
    return cupti_refusal(f_, "cuptiActivityRegisterTimestampCallback", status);
  if (const CUptiResult status = f_.use_buffers(buffer_wanted, buffer_filled); status != CUPTI_SUCCESS)
    return cupti_refusal(f_, "cuptiActivityRegisterCallbacks", status);
  for (; enabled_ < std::size(kinds); ++enabled_)
    if (const CUptiResult status = f_.enable(kinds[enabled_]); status != CUPTI_SUCCESS) {
      stop();
      return cupti_refusal(f_, "cuptiActivityEnable", status);
    }
  return "";
}

void CuptiRecorder::stop() noexcept {
  if (enabled_ == 0) return;
  unmark();
  while (enabled_ > 0) f_.disable(kinds[--enabled_]);
  f_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  Store& s = store();
  const std::lock_guard lock(s.mutex);
  s.forget();
}

std::vector<KernelRecord> CuptiRecorder::take() {
  f_.flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  Store& s = store();
  const std::lock_guard lock(s.mutex);
  std::vector<KernelRecord> taken = std::move(s.records);
  s.records.clear();
  const auto find = [](const auto& map, uint32_t correlation) {
    const auto found = map.find(correlation);
    return found == map.end() ? 0 : found->second;
  };
  for (KernelRecord& k : taken) {
    k.mark = find(s.marks, k.correlation);
    k.asked = find(s.asked, k.correlation);
    if (k.graph_node != 0) k.captured = graphs_.mark_of(k.graph_node);
  }
  s.marks.clear(), s.asked.clear();
  std::sort(taken.begin(), taken.end(), [](const KernelRecord& a, const KernelRecord& b) { return a.begin < b.begin; });
  return taken;
}

int64_t CuptiRecorder::lost() const {
  Store& s = store();
  const std::lock_guard lock(s.mutex);
  return s.lost;
}

std::string CuptiRecorder::follow_graphs() { return graphs_.follow(); }

void CuptiRecorder::push(uint64_t mark) noexcept {
  f_.push(ours, mark);
  CuptiGraphs::capture_under(mark);
}
void CuptiRecorder::pop() noexcept {
  f_.pop(ours, nullptr);
  CuptiGraphs::capture_under(0);
}

}  // namespace tapedeck
#endif
