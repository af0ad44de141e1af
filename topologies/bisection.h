#pragma once

#include <cstdint>
#include <string>

#include "topologies/topology.h"

namespace lockstep {

/// The least capacity, one way, between two halves of the GPUs.
///
/// Of one split into halves the exact minimum cut is found (max-flow over the switches; GPUs are on
/// their half's side, each NVSwitch on its cheaper one). The smallest over many splits is returned:
/// the first against the second half of the servers; with p servers in a block, the first against
/// the second half of each block, for every p that divides their number (along each dimension of a
/// torus, for example); the first against the second half of the GPUs of every server. Halves are
/// whole servers: they differ by one server if the number is odd.
///
/// Over all splits the minimum is hard to find (NP-hard), so in general this is an upper bound. It
/// is exact, and said to be, where it meets a lower bound: one switch, a full mesh, two-tier Clos
/// fabrics whose leaves are alike (clos_lower_bound in the source has the proof). For k-ary fat
/// trees (k^3/8 links) and tori with an even longest dimension it is known to be tight too, though
/// called a bound here.
struct Bisection {
  Bandwidth bandwidth;
  bool exact = false;
  std::string split;         ///< which split was least, in words
  std::int64_t smaller = 0;  ///< GPUs of its smaller side, half of all where servers can be halved
};

/// PRECONDITION: validate(topology) passes and there are two GPUs or more.
Bisection bisect(const Topology& topology);

}  // namespace lockstep
