// The two streams of Device::cuda, and events that order them. Both are non-blocking: neither waits for the legacy
// default stream, which nothing of ours uses.
#pragma once
#include <cuda_runtime_api.h>

#include "engine/backend.h"

namespace tapedeck::cuda {

cudaStream_t stream(Queue queue);  // made when first asked for

// Makes the chosen GPU that of the calling thread. CUDA keeps this per thread, and a new thread begins with number 0.
void bind_thread();

class StreamEvent final : public Event {
 public:
  StreamEvent();
  ~StreamEvent() override;
  StreamEvent(const StreamEvent&) = delete;
  StreamEvent& operator=(const StreamEvent&) = delete;

  void record(Queue queue);
  void delay(Queue queue) const;  // the queue goes on once the event has happened
  void wait() const;              // the host does
  double seconds_since(const StreamEvent& earlier) const;

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace tapedeck::cuda
