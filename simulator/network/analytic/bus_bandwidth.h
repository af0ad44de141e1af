#pragma once

#include "workloads/comm.h"

namespace lockstep {

/// How the ranks of one group lie on servers.
template <class Real>
struct GroupPlacement {
  Real nodes = 1;            ///< servers the group spans
  Real ranks_per_node = 1;   ///< on each of them
  Real nics_per_node = 1;    ///< the group's share of a server's NICs
  Real fewest_per_node = 1;  ///< ranks, where servers have different numbers of them
};

/// The bandwidth of a link that a collective's bus bandwidth (the term of nccl-tests) is limited
/// by.
template <class Real>
struct BusBandwidth {
  Real rate = 0;                ///< in the unit of the arguments
  bool nvlink_limited = false;  ///< as SimAI counts it: false inside one server
};

/// The bus bandwidth of a ring (all-reduce, all-gather, reduce-scatter, …) or of an all-to-all over
/// the shape, for NVLink bus bandwidth V a GPU and B a NIC; g = ranks_per_node, x = nics_per_node:
///
///   one node            V
///   ring, g = 1         B x
///   ring, B x <= V      B x
///   ring, B x >  V      min(V g / (g - 1), B x)    rings may change NIC between servers, so that
///                                                  each uses only g - 1 of a server's g NVLinks
///   all-to-all          B x / g * (n - 1) / (n - g),  n = nodes g:  each GPU sends the part
///                       (n - g) / n of its buffer through its share B x / g of the NICs; for
///                       servers with equal numbers of ranks (collective_time.cc has the others)
template <class Real>
BusBandwidth<Real> bus_bandwidth(CommType op, const GroupPlacement<Real>& shape, Real nvlink,
                                 Real nic);

}  // namespace lockstep
