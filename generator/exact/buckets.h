#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "generator/job.h"

namespace lockstep {

/// Some parameters in a row whose gradients are reduced together.
struct GradientBucket {
  std::int64_t parameters = 0;
  std::size_t first = 0, last = 0;  ///< items it holds parameters of; complete after `last`
  std::size_t piece = 0;            ///< of the chunk (reduction.h)
  friend bool operator==(const GradientBucket&, const GradientBucket&) = default;
};

/// Fills buckets with items in the order in which their gradients become ready: a bucket is closed
/// by the item that brings it to `limit` parameters (Megatron Core, param_and_grad_buffer.py).
/// Items without parameters go with the bucket at hand. PRECONDITION: limit > 0.
std::vector<GradientBucket> make_buckets(std::span<const std::int64_t> parameters,
                                         std::int64_t limit);

/// Parameters that close a bucket, of dense layers and experts alike: job.gradient_bucket, or
/// max(40e6, 1e6 dp cp) where that is 0. No limit, so that all of a piece is one bucket, without
/// overlap; and behind the model's first virtual stage (`first` false), whose reductions alone are
/// on the critical path (Megatron Core, distributed_data_parallel.py; training.py for chunks). With
/// ZeRO-2, which Megatron's has not, every stage has the limit: it keeps no gradients whole.
std::int64_t bucket_limit(const Job& job, bool first);

}  // namespace lockstep
