#include "generator/simai_row.h"

#include <iterator>

#include <fmt/format.h>

namespace lockstep {

void append(std::string& text, const SimaiRow& line) {
  const auto phase = [&](const SimaiPhase& p) {
    fmt::format_to(std::back_inserter(text), "\t{}\t{}\t{}", p.time.value, p.comm, p.bytes.value);
  };
  fmt::format_to(std::back_inserter(text), "{}\t-1", line.name);
  phase(line.forward);
  phase(line.input_grad);
  phase(line.weight_grad);
  fmt::format_to(std::back_inserter(text), "\t{}\n", line.update.value);
}

std::string to_text(const SimaiRow& line) {
  std::string text;
  append(text, line);
  return text;
}

}  // namespace lockstep
