#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "simulator/collectives/link_rings.h"
#include "simulator/collectives/nccl_tuner.h"

namespace lockstep {

/// What sets a real cluster apart from NCCL's tables: few numbers, each of something physical. They
/// are what `lockstep compare calibrate` fits; the presets hold those of known systems.
struct NcclRates {
  double floor_us = 5;               ///< a collective that moves nothing: kernel start and end
  double local_latency = 1;          ///< of a hop in the server, in NCCL's tables' values
  double network_latency = 1;        ///< of a hop between servers, likewise
  double local_efficiency = 0.95;    ///< data rate of a GPU's links in the server, of the nominal
  double nvls_efficiency = 0.85;     ///< the same where the switches add and multicast
  double network_efficiency = 0.95;  ///< data rate of the NICs, of the nominal
  double pair_GBps = 25;     ///< send/receive between two GPUs of different servers, at most
  double channel_GBps = 40;  ///< send/receive within a server by one channel
  double ll_GBps = 4;      ///< payload of LL that a rank's proxy, which reads the flags, sends out
  double ll128_GBps = 20;  ///< the same of LL128
  double duplex = 1;       ///< data rate of NICs that send and receive at once, of one-way's
  double local_overlap = 0.9;    ///< how hops and bytes in a server overlap, see nccl_time
  double network_overlap = 1.2;  ///< the same where NICs are the narrowest
  double rendezvous_us = 0;      ///< of each network hop of messages above 4 KiB, besides
  double simple_penalty = 1;     ///< of the network hops by the protocol Simple (rendezvous)
  double local_simple = 1;       ///< the same of the hops in the server
  double step_us = 0;            ///< of a ring's step over NICs by Simple, at least: one at a time
  double ring_overlap = 1.2;     ///< network_overlap of rings by Simple
  double local_ring_overlap = 0.9;  ///< local_overlap of rings by Simple
  double pair_overlap = 1.2;        ///< network_overlap of send/receives and all-to-alls
  double local_duplex = 1;  ///< data rate of a GPU's links in rings, which pass on, of one-way's
  double pair_latency = 1;  ///< network_latency of a round of all-to-alls, of other hops'
  /// Data rate of NICs in trees of three servers on, and in trees by LL128, of a ring's.
  double tree_efficiency = 1;
  double chunk_us = 0;  ///< of each chunk that a tree's NICs pass on by LL128, besides its bytes

  /// What a hop takes for which NCCL's tables say `us`, by Simple or another protocol; between
  /// servers that of a message of so many bytes, which from 4 KiB on takes a rendezvous.
  double local_hop(double us, bool simple) const {
    return local_latency * (simple ? local_simple : 1) * us;
  }
  double network_hop(double us, bool simple, double bytes) const {
    return network_latency * us * (simple ? simple_penalty : 1) +
           (bytes >= 4096 ? rendezvous_us : 0);
  }
};

/// One of NcclRates' numbers: its name in files (where times are seconds and rates bytes per
/// second: `unit` times ours), bounds of what is sensible, and where it is.
struct NcclRateField {
  std::string_view name, meaning;
  double least, most;
  double NcclRates::*value;
  double unit = 1;
};
std::span<const NcclRateField> nccl_rate_fields();

/// A cluster as NCCL sees it, with its measured rates.
struct NcclSystem {
  NcclFabric fabric;
  std::int32_t gpus_per_server = 8;
  std::int32_t nics_per_server = 8;
  LinkMatrix nvlinks;  ///< of a server, where its GPUs are not joined alike, rings counted
  NcclRates rates;
};

/// What a collective takes, and of what that consists.
struct NcclTime {
  NcclChoice choice;
  double latency_us = 0;       ///< floor and hops
  double wire_us = 0;          ///< bytes over the rate of the narrowest link
  double fill_us = 0;          ///< filling and draining the pipeline
  double time_us = 0;          ///< the sum
  bool network_bound = false;  ///< the narrowest link is a NIC
};

/// One collective on `servers` servers with equally many ranks each.
struct NcclTask {
  CommType op = CommType::kNone;
  Bytes bytes;
  std::int32_t ranks = 2, servers = 1;
  NcclWishes wishes;
};

/// So many ranks, the same number on each server (the last one has the rest).
/// PRECONDITION: 1 <= servers <= ranks.
NcclGroup even_group(std::int32_t ranks, std::int32_t servers);

/// What NCCL would do on this system. It depends on the fabric alone, not on the rates.
/// PRECONDITION: 1 <= servers <= ranks. ERRORS: as nccl_choice. O(1).
NcclChoice nccl_choice_on(const NcclTask& task, const NcclSystem& system);

/// Time of a collective when NCCL does it in this way.
/// With L = hops and W = bytes / rate: T = floor + (L^p + W^p)^(1/p). p = 1 is a stream that waits
/// for every hop, larger p a pipeline whose hops hide behind its bytes, smaller p one whose pieces
/// are too few to keep it full.
///
///   ring        L = steps of NCCL's tables; rate = min(NVLink, NICs) over nsteps/n
///   tree        L = 2((k-1) local + log2 N network); network: S per NIC set on two servers, 2S on
///               more, at tree_efficiency; by LL128 chunk_us a chunk besides
///   NVLS        a GPU sends S + S/k (S (k-1)/k + S/k for gather and scatter)
///   NVLSTree    NVLS in the servers, the tree's network part between them
///   pairwise    the part of S that leaves the server over min(NICs, pair limit), the rest NVLink
///
/// A ring's step is the mean of its n hops, of which N leave a server (at least step_us by Simple).
/// Between servers chains (broadcast, reduce) and trees by Simple forward whole chunks, 512 KiB a
/// channel or less: each network hop of the longest way, in a chain those after the first, adds one
/// chunk of half the channels (a NIC carries two, which take turns) to T; a chain's chunks by LL
/// and LL128 are 32 KiB and 576,000 B. A chain has L = one hop, as ranks run ahead in a loop of
/// broadcasts; but where several channels pass the ranks in different orders (NICs beside different
/// GPUs, a mesh) L = n - 1 hops, N of them between servers, where p = 1 then: the last byte follows
/// the first over the whole way.
///
/// k = ranks / servers. O(1).
NcclTime nccl_time(const NcclTask& task, const NcclSystem& system, const NcclChoice& choice);
/// The same at other rates than the system's.
NcclTime nccl_time(const NcclTask& task, const NcclSystem& system, const NcclRates& rates,
                   const NcclChoice& choice);
/// The same by NCCL's own choice.
NcclTime nccl_time(const NcclTask& task, const NcclSystem& system);

}  // namespace lockstep
