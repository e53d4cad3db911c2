#include "apps/commands.h"
#include "engine/check.h"

namespace tapedeck {

int run_export(const Config&) { throw Error("being written"); }

}  // namespace tapedeck
