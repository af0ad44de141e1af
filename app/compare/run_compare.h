#pragma once

#include "app/compare/compare_options.h"

namespace lockstep {

/// Declares the flags of `lockstep compare` itself and returns what it does.
CommandBody define_comparison(CLI::App& app);

/// "10%", "0.1" or "10 %" as 0.1. ERRORS: anything else, or a negative number.
double parse_share(std::string_view text);

}  // namespace lockstep
