#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// How many NVLinks join each two of a server's GPUs that have no switches: count[a * gpus + b].
/// Empty where all are joined alike. PRECONDITION of what takes one: symmetric, no link to oneself.
struct LinkMatrix {
  std::int32_t gpus = 0;
  std::vector<std::int32_t> count;
  /// How many rings_over_links() there are over the first 0, 1, 2, … GPUs, once they were counted.
  std::vector<std::int32_t> rings;

  std::int32_t between(std::int32_t a, std::int32_t b) const {
    return count[static_cast<std::size_t>(a) * static_cast<std::size_t>(gpus) +
                 static_cast<std::size_t>(b)];
  }
  /// Of a GPU to the first n.
  std::int32_t of(std::int32_t gpu, std::int32_t n) const;
  /// Of the GPU that has most.
  std::int32_t most_of_a_gpu() const;
  void count_rings();
  friend bool operator==(const LinkMatrix&, const LinkMatrix&) = default;
};

inline constexpr std::int32_t kMostMeshGpus = 16;

/// The most rings through the first n GPUs that can go at once, each of whose hops has a link's one
/// direction to itself: what NCCL's search finds for rings in such a server (src/graph/search.cc).
/// rings[c][j] sends to rings[c][j + 1], the last to the first. Where GPUs cannot be joined so at
/// all, hops may go by way of another of the n (NCCL's path NVB), over a link to it and one from
/// it. A GPU has no more rings than links; the search ends with as many, or after 200,000 steps
/// with the most it has found. PRECONDITION: 2 <= n <= gpus <= kMostMeshGpus.
std::vector<std::vector<std::int32_t>> rings_over_links(const LinkMatrix& links, std::int32_t n);

}  // namespace lockstep
