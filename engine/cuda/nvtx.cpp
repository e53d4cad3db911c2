// Ranges for NVIDIA's tools (nsys, ncu), by the C interface of NVTX 3: a library of its headers alone, which load a
// tool where NVTX_INJECTION64_PATH names one. That a tool is there costs each range some calls; that none is, one look
// at the environment.
#include <cstdlib>

#include "engine/gpu.h"
#include "engine/trace.h"
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif

namespace tapedeck {

const OutsideTool* outside_tool() {
#if __has_include(<nvtx3/nvToolsExt.h>)
  static const OutsideTool nvtx = {[](const char* name) { nvtxRangePushA(name); }, [] { nvtxRangePop(); },
                                   [](const char* name) { nvtxMarkA(name); }};
  static const char* const tool = std::getenv("NVTX_INJECTION64_PATH");
  return tool && *tool ? &nvtx : nullptr;
#else
  return nullptr;
#endif
}

}  // namespace tapedeck
