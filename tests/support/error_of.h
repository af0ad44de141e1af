#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace lockstep::testing {

/// What the Error says that is thrown, "no error" where none is.
inline std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace lockstep::testing
