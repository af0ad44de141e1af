#pragma once

#include "base/warnings.h"

namespace lockstep {

/// Writes what readers passed over to standard error, one line each with its count.
void print_warnings(const Warnings& warnings);

}  // namespace lockstep
