// A step captured as a CUDA graph: launched again as a whole, with the arguments that its kernels had.
#pragma once
#include <functional>
#include <memory>

#include "engine/backend.h"

namespace tapedeck::cuda {

bool capturing();
// Records what `work` asks of the compute stream, and of streams that join it, without running it. What work throws
// ends the capture and comes through.
std::unique_ptr<Graph> capture(const std::function<void()>& work);

}  // namespace tapedeck::cuda
