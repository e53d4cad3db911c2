// A tool as NVTX loads one where NVTX_INJECTION64_PATH names it: it writes on stderr what it is told of.
#include <nvtx3/nvToolsExt.h>

#include <cstdio>

namespace {

int push(const char* name) { return std::fprintf(stderr, "nvtx +%s\n", name); }
int pop() { return std::fputs("nvtx -\n", stderr); }
void mark(const char* name) { std::fprintf(stderr, "nvtx %s\n", name); }

template <class F>
void take(NvtxFunctionTable table, NvtxCallbackIdCore id, F* function) {
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

extern "C" int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (!callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &size)) return 0;
  take(table, NVTX_CBID_CORE_RangePushA, push);
  take(table, NVTX_CBID_CORE_RangePop, pop);
  take(table, NVTX_CBID_CORE_MarkA, mark);
  return 1;
}
