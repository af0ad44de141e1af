#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "generator/block_writer.h"
#include "generator/generator.h"
#include "generator/training_flags.h"

namespace lockstep {

/// What a framework does in each part of a training run; every part appends its rows. Parts may
/// carry state from one call to the next (DeepSpeed's buckets do).
struct CsvProgram {
  std::function<void(BlockWriter&)> init, forward, backward, step;
  std::function<void(BlockWriter&)> pipeline;  ///< all microbatches of a stage; may be absent
};

/// Writes AICB's general-purpose CSV: header, init, then every epoch. Without a pipeline an epoch
/// is microbatches x (forward, backward) and a step; with pp > 1 (unless the frame is
/// collective_test) it is the pipeline, if there is one, and the step twice, as AICB does it.
void write_csv(const TrainingArgs& args, const CsvProgram& program, BlockWriter& out);

/// "megatron_gpt_7B_sp_True_…_8n_workload.csv".
std::string training_csv_name(std::string_view generator, const TrainingArgs& args);

/// Whether an epoch is a pipeline's.
bool runs_pipeline(const TrainingArgs& args);

/// The rows appended to `text` by f, as a block for BlockWriter.
template <class F>
std::string rows(F&& f) {
  std::string text;
  std::forward<F>(f)(text);
  return text;
}

}  // namespace lockstep
