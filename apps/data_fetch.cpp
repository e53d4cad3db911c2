#include "apps/commands.h"
#include "engine/check.h"

namespace tapedeck {

int run_data_fetch(const Config&) { throw Error("being written"); }

}  // namespace tapedeck
