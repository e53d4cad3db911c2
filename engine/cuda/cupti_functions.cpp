#if __has_include(<cupti.h>)
#include "engine/cuda/cupti_functions.h"

#include <dlfcn.h>

#include "engine/check.h"
#include "engine/cuda/find_library.h"

namespace tapedeck {
namespace {

constexpr uint32_t toolkit(uint32_t version) { return version / 10000; }  // 130001: of CUDA 13; 28: of 12 or before

std::string load(CuptiFunctions& f) {
  std::string reason;
  const std::string file = text("libcupti.so.{}", int64_t{toolkit(CUPTI_API_VERSION)});
  void* const library = cuda::open_library({file, "libcupti.so"}, file, reason);
  if (!library)
    return text("libcupti does not load ({}): install CUPTI of the CUDA toolkit, or name its folder in LD_LIBRARY_PATH",
                reason);
  std::string missing;
  const auto get = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (!function && missing.empty()) missing = name;
  };
  get(f.version, "cuptiGetVersion");
  get(f.result_name, "cuptiGetResultString");
  get(f.use_clock, "cuptiActivityRegisterTimestampCallback");
  get(f.use_buffers, "cuptiActivityRegisterCallbacks");
  get(f.enable, "cuptiActivityEnable");
  get(f.disable, "cuptiActivityDisable");
  get(f.flush, "cuptiActivityFlushAll");
  get(f.next_record, "cuptiActivityGetNextRecord");
  get(f.dropped, "cuptiActivityGetNumDroppedRecords");
  get(f.push, "cuptiActivityPushExternalCorrelationId");
  get(f.pop, "cuptiActivityPopExternalCorrelationId");
  get(f.subscribe, "cuptiSubscribe");
  get(f.unsubscribe, "cuptiUnsubscribe");
  get(f.enable_callback, "cuptiEnableCallback");
  get(f.graph_node, "cuptiGetGraphNodeId");
  if (!missing.empty()) return text("libcupti has no function {}: install that of {}", missing, file);
  return why_not_this_cupti(f);
}

}  // namespace

std::string why_not_this_cupti(const CuptiFunctions& functions) {
  uint32_t version = 0;
  if (functions.version(&version) != CUPTI_SUCCESS) return "libcupti does not tell its version";
  if (toolkit(version) == toolkit(CUPTI_API_VERSION)) return "";
  return text("libcupti is of API version {}, and this program reads the records of {}: install CUPTI of CUDA {}",
              int64_t{version}, int64_t{CUPTI_API_VERSION}, int64_t{toolkit(CUPTI_API_VERSION)});
}

std::string cupti_refusal(const CuptiFunctions& f, const char* call, CUptiResult status) {
  const char* name = nullptr;
  f.result_name(status, &name);
  const char* const hint =
      status == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED || status == CUPTI_ERROR_NOT_COMPATIBLE
          ? ": another profiler has it; end that one"
      : status == CUPTI_ERROR_INSUFFICIENT_PRIVILEGES ||
              status == CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES
          ? ": this user may not profile the GPU; see NVIDIA's ERR_NVGPUCTRPERM"
          : "";
  return text("libcupti refuses, {}: {} ({}){}", call, name ? name : "unknown", int64_t{status}, hint);
}

const CuptiFunctions* cupti_functions(std::string& why_not) {
  static CuptiFunctions functions{};
  static const std::string failed = load(functions);
  why_not = failed;
  return failed.empty() ? &functions : nullptr;
}

}  // namespace tapedeck
#endif
