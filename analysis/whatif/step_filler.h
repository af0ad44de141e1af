#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/whatif/op_table.h"

namespace lockstep::whatif {

/// The lane of a row's worker within its step.
std::size_t lane_of(const OpTable& table, const Trace& trace, std::size_t row);
/// What a step lacks whose rows are [begin, end); "" if every rank has some.
std::string absent_rank(const OpTable& table, const Trace& trace, std::size_t begin,
                        std::size_t end);
/// That a step is left out, and why. `warnings` may be null.
void warn_of_step(const std::string& problem, const std::string& file, Warnings* warnings);

/// Lays the rows of one step after the other into a table, whose nodes are those of a reference
/// step. Complexity: O(rows).
class StepFiller {
 public:
  /// Refers to both for as long as it lives. `reference`: that step.
  StepFiller(const Trace& trace, std::int64_t reference, OpTable& table);

  /// Rows [begin, end) are those of step number `index`. Returns what is wrong with the step;
  /// nothing if all is well. `repeated` grows by the rows that stand twice.
  std::string fill(std::size_t begin, std::size_t end, std::size_t index, std::int64_t& repeated);

 private:
  std::string fill_worker(std::size_t row, std::size_t end, std::size_t lane,
                          std::int64_t& repeated);
  bool same_op(std::size_t a, std::size_t b) const;
  std::string lacks(std::size_t row, std::size_t node) const;
  std::string mismatch(std::size_t row, std::size_t node, std::size_t last) const;

  const Trace& trace_;
  std::int64_t reference_;
  OpTable& table_;
  std::vector<std::size_t> stage_begin_;
  std::size_t workers_ = 0;
};

}  // namespace lockstep::whatif
