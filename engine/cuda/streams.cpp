#include "engine/cuda/streams.h"

#include "engine/cuda/error.h"
#include "engine/gpu.h"

namespace tapedeck::cuda {
namespace {

cudaStream_t new_stream() {
  bind_thread();
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  return stream;
}

}  // namespace

void bind_thread() {
  thread_local const bool bound = (check(cudaSetDevice(chosen_gpu()), "cudaSetDevice"), true);
  (void)bound;
}

cudaStream_t stream(Queue queue) {
  static cudaStream_t const compute = new_stream();
  static cudaStream_t const transfer = new_stream();
  return queue == Queue::compute ? compute : transfer;
}

StreamEvent::StreamEvent() {
  bind_thread();
  check(cudaEventCreate(&event_), "cudaEventCreate");
}

StreamEvent::~StreamEvent() { cudaEventDestroy(event_); }

void StreamEvent::record(Queue queue) { check(cudaEventRecord(event_, stream(queue)), "cudaEventRecord"); }

void StreamEvent::delay(Queue queue) const {
  check(cudaStreamWaitEvent(stream(queue), event_, cudaEventWaitDefault), "cudaStreamWaitEvent");
}

void StreamEvent::wait() const { check(cudaEventSynchronize(event_), "cudaEventSynchronize"); }

double StreamEvent::seconds_since(const StreamEvent& earlier) const {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "cudaEventElapsedTime");
  return milliseconds / 1e3;
}

}  // namespace tapedeck::cuda
