#include "app/warnings_out.h"

#include <cstdio>

#include <fmt/format.h>

#include "base/output_capture.h"
#include "base/text.h"

namespace lockstep {

void print_warnings(const Warnings& warnings) {
  for (const Warnings::Entry& entry : warnings.entries()) {
    fmt::print(standard_error(), "lockstep: warning: {}{}\n", printable_lines(entry.text),
               entry.count > 1 ? fmt::format(" ({} times)", entry.count) : "");
  }
}

}  // namespace lockstep
