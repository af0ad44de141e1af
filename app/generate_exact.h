#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "generator/argparse.h"
#include "generator/compute/compute_times.h"
#include "generator/exact/memory.h"
#include "generator/exact/operator.h"
#include "generator/job.h"
#include "generator/megatron_args/aicb_job.h"
#include "generator/model/parameters.h"
#include "generator/process/process_workload.h"

namespace lockstep {

/// One of a job's operators and how long it takes.
struct TimedOperator {
  Operator op;
  Time time;
};

/// A job as a command line describes it, and what follows from it.
struct ExactJob {
  Job job;
  ParameterTotals parameters;         ///< of the model, its vocabulary as it is
  std::vector<StageMemory> memory;    ///< of each pipeline stage
  std::vector<std::string> warnings;  ///< what is not modelled; what does not fit into memory
  std::vector<std::string> notes;     ///< what of a script was passed over; for a terminal
  std::string profile;                ///< what profile_files.h has read; empty: nothing
  std::shared_ptr<const OperatorProfile> measured;  ///< by that; or none
  std::optional<Process> process;                   ///< nothing: the built-in step
  std::optional<Sharding> held;  ///< how a built-in process holds states; memory's
  bool with_init = false;        ///< the process's init items too
  std::map<std::int64_t, std::int64_t> logged_parameters;  ///< by stage, as the job's log counts
  bool gpu_type_given = false;           ///< by a flag; else job.gpu_type is a default
  std::vector<TimedOperator> operators;  ///< each name and size once; of exact_workload_of()
  ComputeTimes::Counts counts;           ///< where its operators' times are from; likewise
};

/// All flags that describe a job: where it comes from, the model's sizes, job_flags().
std::vector<ArgSpec> described_job_flags();

/// Whether these are flags of a job, whatever is missing. ERRORS: as described_job(), of the words.
void check_job_words(std::span<const std::string> words);

/// The job as words describe it, before anything is checked against the model: no memory, and the
/// vocabulary as it is. ERRORS: those of the flags, the script, the model and the process.
ExactJob described_job(std::span<const std::string> words);

/// What follows from a job as it is described. ERRORS: check_job().
ExactJob worked_out(ExactJob described);

/// A model (--model NAME, --model-file F, --hf-config F, or a Megatron-LM script's own) and the
/// flags of a job; --from-megatron-args F reads those that the words do not give from a script. The
/// training process is --process's, or the model file's own, where one is given.
/// ERRORS: those of the flags, the script, the model, the process and check_job().
ExactJob exact_job(std::span<const std::string> words);
/// The same of a job that AICB's flags describe. ERRORS: and a model named beside them.
ExactJob exact_job(const AicbJob& aicb);

/// What its operators take: by its profile, where it has one. ERRORS: those of the profile.
ComputeTimes compute_times_of(const ExactJob& job);

/// Its workload; `init_ops` is empty without a process. Warns if a profile was given that has none
/// of its operators. ERRORS: those of the workload, the process and the profile.
ProcessWorkload exact_workload_of(ExactJob& job);

/// memory_table() with the GPU's memory below.
std::string memory_text(const ExactJob& job);

/// The same for "memory" of docs/formats/simulate-json.md.
Json memory_json(const ExactJob& job);

/// The flags, for --help.
std::string exact_flags_help();

}  // namespace lockstep
