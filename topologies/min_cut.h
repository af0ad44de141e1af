#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

/// Maximum flow = minimum cut between two nodes of a graph with capacities (Dinic: Algorithm for
/// solution of a problem of maximum flow in networks with power estimation, 1970). O(V^2 E) at
/// worst, near linear on the shallow graphs of fabrics.
class MinCut {
 public:
  explicit MinCut(std::size_t nodes) : edges_of_(nodes) {}

  /// `forward` from a to b and `backward` from b to a, in any unit. PRECONDITION: none negative.
  void connect(std::size_t a, std::size_t b, std::int64_t forward, std::int64_t backward);
  /// Uses the capacities up: once for each object.
  std::int64_t between(std::size_t source, std::size_t sink);

 private:
  struct Edge {
    std::size_t to;
    std::int64_t room;
  };
  bool label(std::size_t source, std::size_t sink);
  std::int64_t augment(std::size_t source, std::size_t sink);

  std::vector<Edge> edges_;  // edge i and its reverse i ^ 1
  std::vector<std::vector<std::size_t>> edges_of_;
  std::vector<std::int32_t> level_;
  std::vector<std::size_t> next_;
};

}  // namespace lockstep
