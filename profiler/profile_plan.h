#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "generator/compute/profile_json.h"
#include "generator/job.h"
#include "profiler/kernel.h"

namespace lockstep {

/// A section of AICB's AIOB file: the time of its kernels one after the other.
struct AiobPart {
  std::string name;
  std::vector<Kernel> kernels;
  friend bool operator==(const AiobPart&, const AiobPart&) = default;
};

/// An operator that the exact workload of the job asks a time for, and the kernels that run it
/// (several where operators with one key are different kernels).
struct PlannedOperator {
  std::string name;  ///< the first one's
  std::vector<Kernel> kernels;
};

/// What is to be measured for a job, and what for.
struct ProfilePlan {
  std::vector<Kernel> kernels;  ///< each once, in the order of first use
  /// How often a step has each, of a rank with its share of the layers; without recomputation.
  std::vector<std::int64_t> times;
  std::map<OperatorKey, PlannedOperator> operators;
  /// Names of operators that no kernel of ours does (is_all_in_its_key()): the roofline times them.
  std::set<std::string> not_measured;
  std::vector<AiobPart> aiob;
};

/// Every operator that exact_workload() prices (recomputed ones and the optimizer too), and every
/// section of the AIOB file. PRECONDITION: the vocabulary is padded as it shall be.
/// ERRORS: those of check_job() and exact_workload().
ProfilePlan plan_profile(const Job& job);

/// The sections, from the block of the model that has most layers. Beside AICB's own (specification
/// of AICB, section 3) rotary embeddings, routers and permutations of tokens have sections whose
/// names AICB's reader adds to attention or MLP. Forward passes only, as AICB measures them.
std::vector<AiobPart> aiob_parts(const Job& job);

}  // namespace lockstep
