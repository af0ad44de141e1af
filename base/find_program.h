#pragma once

#include <filesystem>
#include <string>

namespace lockstep {

/// A program of ours: beside the running program first, then on PATH; empty if it is in neither.
std::filesystem::path find_program(const std::string& name);

}  // namespace lockstep
