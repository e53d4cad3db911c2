#include "apps/commands.h"
#include "engine/check.h"

namespace tapedeck {

int run_bench_loader(const Config&) { throw Error("being written"); }

}  // namespace tapedeck
