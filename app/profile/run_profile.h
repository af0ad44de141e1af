#pragma once

#include "app/profile/profile_options.h"
#include "base/error.h"

namespace lockstep {

/// Times what the flags describe, or takes it from a file, and writes what follows from it.
ExitCode run_profile(ProfileOptions& options);

}  // namespace lockstep
