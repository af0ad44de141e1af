#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/sweep/grid.h"

namespace lockstep {

/// A condition on the flags of a point: an expression (generator/model/expression.h) over them,
/// with texts in quotes: "tp * pp <= 8", "if(engine == 'packet', gpus <= 16, 1)". Dashes in flags'
/// names become underscores. A value that is a number counts as that, with a unit in bits a second,
/// bytes or seconds, in quotes or not (nic >= 200GBps, server_mtbf < 2w); any other text is only
/// equal to itself, and to compare it otherwise is an error; a flag that is left out is 0, a bare
/// one 1.
class Condition {
 public:
  /// ERRORS: an unclosed quote.
  Condition(std::string text, std::string file, std::size_t line);

  /// Whether it holds. ERRORS: those of evaluate(), with the place in the grid; a text that is
  /// compared by < or reckoned with.
  bool holds(const std::vector<std::pair<std::string, FlagValue>>& inputs) const;

 private:
  double value(const std::vector<std::pair<std::string, FlagValue>>& inputs, double sign,
               bool& has_texts) const;

  std::string text_, file_;
  std::size_t line_;
  std::string expression_;                       // texts and quantities replaced by variables
  std::map<std::string, std::string> literals_;  // variable -> text
};

}  // namespace lockstep
