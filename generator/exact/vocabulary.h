#pragma once

#include "generator/job.h"

namespace lockstep {

/// The job with its vocabulary padded as Megatron-LM does (arguments.py,
/// vocab_size_with_padding): heads, and the embeddings that have a row for each of a head's
/// outputs, grow to the next multiple of vocab_multiple x tp. Other tables (positions) stay.
/// ERRORS: a multiple out of range.
Job with_padded_vocabulary(Job job);

}  // namespace lockstep
