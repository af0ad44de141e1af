#include "generator/exact/pass_order.h"

#include <algorithm>

namespace lockstep {
namespace {

PipelineSlot pass(const PipelineShape& shape, std::int64_t k, bool backward) {
  if (shape.vpp == 1) {
    return PipelineSlot{backward, 0, static_cast<std::int32_t>(k)};
  }
  const std::int64_t round = k / (shape.pp * shape.vpp), place = k % (shape.pp * shape.vpp);
  const std::int64_t chunk = place / shape.pp;
  return PipelineSlot{backward, static_cast<std::int32_t>(backward ? shape.vpp - 1 - chunk : chunk),
                      static_cast<std::int32_t>(round * shape.pp + place % shape.pp)};
}

}  // namespace

std::vector<PipelineSlot> one_forward_one_backward(const PipelineShape& shape, std::int64_t ahead,
                                                   bool side_by_side) {
  const std::int64_t total = shape.microbatches * shape.vpp;
  ahead = std::min(ahead, total);
  std::vector<PipelineSlot> slots;
  for (std::int64_t k = 0; k < ahead; ++k) {
    slots.push_back(pass(shape, k, false));
  }
  for (std::int64_t k = ahead; k < total; ++k) {
    slots.push_back(pass(shape, k, false));
    slots.back().beside_next = side_by_side;
    slots.push_back(pass(shape, k - ahead, true));
  }
  for (std::int64_t k = total - ahead; k < total; ++k) {
    slots.push_back(pass(shape, k, true));
  }
  return slots;
}

}  // namespace lockstep
