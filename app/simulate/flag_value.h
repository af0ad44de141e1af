#pragma once

#include <string>
#include <utility>

#include "base/error.h"

namespace lockstep {

/// Runs a parser of the unit library on a flag's value; its error names the flag.
template <class Parse>
auto flag_value(const char* name, const std::string& text, Parse parse) {
  try {
    return parse(text);
  } catch (Error& error) {
    throw std::move(error).field(name);
  }
}

}  // namespace lockstep
