// CUPTI's functions as a table, loaded when a profile asks for them: the program starts where CUPTI is absent, and a
// test gives a table of its own. Its records are structs that grow with its versions, so only a library of the major
// version is taken that the headers had.
#pragma once
#include <cupti.h>

#include <string>

namespace tapedeck {

struct CuptiFunctions {
  decltype(&::cuptiGetVersion) version;
  decltype(&::cuptiGetResultString) result_name;
  decltype(&::cuptiActivityRegisterTimestampCallback) use_clock;
  decltype(&::cuptiActivityRegisterCallbacks) use_buffers;
  decltype(&::cuptiActivityEnable) enable;
  decltype(&::cuptiActivityDisable) disable;
  decltype(&::cuptiActivityFlushAll) flush;
  decltype(&::cuptiActivityGetNextRecord) next_record;
  decltype(&::cuptiActivityGetNumDroppedRecords) dropped;
  decltype(&::cuptiActivityPushExternalCorrelationId) push;
  decltype(&::cuptiActivityPopExternalCorrelationId) pop;
  decltype(&::cuptiSubscribe) subscribe;
  decltype(&::cuptiUnsubscribe) unsubscribe;
  decltype(&::cuptiEnableCallback) enable_callback;
  decltype(&::cuptiGetGraphNodeId) graph_node;
};

// The library's own, loaded at the first call. Null where there is none that fits: the reason is then in `why_not`.
const CuptiFunctions* cupti_functions(std::string& why_not);

// "" where the library's records are those of our headers.
std::string why_not_this_cupti(const CuptiFunctions& functions);

// A sentence of what `call` gave, and of what to do about it.
std::string cupti_refusal(const CuptiFunctions& functions, const char* call, CUptiResult status);

}  // namespace tapedeck
