#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "base/units.h"
#include "generator/compute/gpu_spec.h"
#include "generator/compute/profile_json.h"
#include "generator/exact/operator.h"

namespace lockstep {

/// Times of a job's operators: measured where the profile has exactly that operator, between two
/// measured ones where it has a smaller and a larger one (between_measured.h), else by the
/// roofline. Counts which, so that a report can say what a prediction rests on. Calls count, so an
/// object serves one thread; wrap it in std::ref where a function object is copied.
class ComputeTimes {
 public:
  struct Counts {
    std::int64_t measured = 0, between = 0, modelled = 0;
    friend bool operator==(const Counts&, const Counts&) = default;
  };

  /// ERRORS: the GPU has not the precision; a profile of another GPU type (a name that gpu_spec()
  /// does not know is taken as it is).
  ComputeTimes(const GpuSpec& gpu, Precision precision,
               std::shared_ptr<const OperatorProfile> profile = nullptr);

  /// The median of the profile, between_measured() or operator_time(). O(log size of the profile),
  /// or O(its size) the first time that an operator which it lacks is asked for. ERRORS: as
  /// operator_time().
  Time operator()(const Operator& op);
  const Counts& counts() const { return counts_; }

 private:
  GpuSpec gpu_;
  Precision precision_;
  std::shared_ptr<const OperatorProfile> profile_;      ///< may be none
  std::map<OperatorKey, std::optional<Time>> between_;  ///< of what was asked for and not measured
  Counts counts_;
};

}  // namespace lockstep
