#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "workloads/simai_header.h"
#include "workloads/workload.h"

namespace lockstep {

/// Reads one layer line in its common shape: plain decimal numbers of at most 15 digits and the
/// usual spellings between any blanks. Returns where the next line begins; nullptr for anything
/// else, valid or not, which SimaiLine then reads or explains. Sets all of `layer` but its name.
const char* scan_simai_line(const char* begin, const char* end, Layer& layer,
                            std::string_view& name);

/// One layer line, whatever stands there. Every member throws an Error with file, line, column,
/// field and what was expected about the first fault it meets.
class SimaiLine {
 public:
  /// `customized`: there is a 13th column, the layer's own policy. `at_file_end`: no line follows.
  SimaiLine(std::string_view line, LinePlace place, bool customized, bool at_file_end);

  /// Fills all of `layer` but its name, which is returned.
  std::string_view read(Layer& layer) const;
  std::string_view policy() const;
  void check_name() const;

 private:
  LayerPhase phase(std::size_t first, GroupKind plain) const;
  Time time(std::size_t column) const;
  std::int64_t integer(std::size_t column, std::int64_t low, std::int64_t high,
                       std::string_view unit = "") const;
  class Error error(std::size_t column, std::string message) const;

  std::string_view line_;
  LinePlace place_;
  std::vector<std::string_view> words_;
};

}  // namespace lockstep
