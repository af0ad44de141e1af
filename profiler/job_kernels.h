#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "generator/exact/operator.h"
#include "generator/job.h"
#include "profiler/kernel.h"

namespace lockstep {

/// The kernels that run a job's operators: a matrix product or attention is its own kernel; what is
/// bound by memory is recognised by its module, and where it is none that is known, a stream of as
/// many bytes.
class JobKernels {
 public:
  /// ERRORS: those of check_job().
  explicit JobKernels(const Job& job);

  /// The kernel of an operator of this job; the operator has work.
  Kernel of(const Operator& op) const;

  /// One rank's kernels of a pass through the modules for one microbatch, in order; transfers are
  /// left out.
  std::vector<Kernel> forward(std::span<const Module> modules) const;
  std::vector<Kernel> backward(std::span<const Module> modules) const;

  const Job& job() const { return job_; }

 private:
  void add_modules(std::span<const Module> modules);
  void add_moe(const Module& module);
  void add_both(const std::string& name, const Kernel& kernel);

  Job job_;
  std::map<std::string, Kernel, std::less<>> memory_bound_;  ///< by the operator's name
};

/// Whether an operator does anything at all.
bool has_work(const Operator& op);

}  // namespace lockstep
