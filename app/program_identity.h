#pragma once

#include <string>

namespace lockstep {

/// What tells one build of this program from another: its version and the linker's build id, which
/// changes with any change of the code.
std::string program_identity();

}  // namespace lockstep
