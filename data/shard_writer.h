// Writes shards (shard.h). The file appears at once and whole: until then it grows under the name FILE.tmp, which a
// failure takes away again.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "data/dataset.h"
#include "data/shard_header.h"
#include "data/text.h"

namespace tapedeck {

using ShardProgress = std::function<void(int64_t records_written)>;

// Writes the parts of a data set, training first; bytes stay bytes, in a shard too. Replaces a file of that name.
// Throws Error with path and cause. `progress` is called now and then from the calling thread.
void write_shard(const std::string& path, const Dataset& data, const ShardProgress& progress = {});

// Writes a text, a token a record and no answers: the beginning trains, then so many tokens validate and test. They are
// bytes when the vocabulary has at most 256 characters. Throws as above, and where nothing is left to train on.
void write_shard(const std::string& path, const std::string& name, const Text& text, int64_t validation, int64_t test,
                 const ShardProgress& progress = {});

}  // namespace tapedeck
