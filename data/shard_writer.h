// Writes shards (shard.h). The file appears at once and whole: until then it grows under the name FILE.tmp, which a
// failure takes away again.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "data/dataset.h"
#include "data/shard_header.h"

namespace tapedeck {

using ShardProgress = std::function<void(int64_t records_written)>;

// Writes the parts of a data set, training first; bytes stay bytes, in a shard too. Replaces a file of that name.
// Throws Error with path and cause, UsageError for sequences. `progress` is called now and then from the calling
// thread.
void write_shard(const std::string& path, const Dataset& data, const ShardProgress& progress = {});

}  // namespace tapedeck
