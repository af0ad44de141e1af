#pragma once

#include <string_view>
#include <utility>

#include "base/error.h"

namespace lockstep {

/// Runs a parser of the unit library on a flag's value; its error names the flag.
template <class Parse>
auto flag_value(const char* name, std::string_view text, Parse parse) {
  try {
    return parse(text);
  } catch (Error& error) {
    if (error.file().empty()) {
      throw std::move(error).field(name);
    }
    throw;  // of a file that the flag names, which says itself what is wrong
  }
}

}  // namespace lockstep
