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

/// job.gradient_bucket, or Megatron's max(40e6, 1e6 ranks) (distributed_data_parallel.py) where
/// that is 0. Without overlap all parameters of a chunk are one bucket.
std::int64_t bucket_limit(const Job& job, std::int64_t ranks);

}  // namespace lockstep
