#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "base/units.h"

namespace lockstep {

/// How much one input may be: a file, what comes through a pipe, what a packed file unpacks to.
/// 4 GiB, unless LOCKSTEP_MAX_INPUT or --max-input (which goes before) says otherwise. So a wrong
/// path or a bomb ends with a message while there is memory left.
Bytes input_limit();

/// What a reader is to keep to whose files are never larger than `usual`: that, unless the user has
/// said a limit. ERRORS: LOCKSTEP_MAX_INPUT is no size.
Bytes input_limit(Bytes usual);

/// The Error of an input beyond its limit; names the limit and what raises it.
Error input_too_large(const std::string& path, const std::string& what, Bytes limit);

/// While it lives, the limit of the whole process is this; none changes nothing. For --max-input.
class InputLimit {
 public:
  explicit InputLimit(std::optional<Bytes> limit);
  ~InputLimit();
  InputLimit(const InputLimit&) = delete;
  InputLimit& operator=(const InputLimit&) = delete;

 private:
  std::int64_t before_;
};

}  // namespace lockstep
