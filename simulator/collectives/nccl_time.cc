#include "simulator/collectives/nccl_time.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "simulator/collectives/nccl_constants.h"

namespace lockstep {
namespace {

constexpr NcclRateField kFields[] = {
    {"floor_s", "a collective that moves nothing", 0.5, 2000, &NcclRates::floor_us, 1e-6},
    {"network_efficiency", "data rate of the NICs, of the nominal", 0.01, 1,
     &NcclRates::network_efficiency},
    {"local_efficiency", "data rate in the server, of the nominal", 0.05, 1.3,
     &NcclRates::local_efficiency},
    {"nvls_efficiency", "the same where the switches add", 0.05, 1.3, &NcclRates::nvls_efficiency},
    {"network_latency", "of a hop between servers, in NCCL's values", 0.05, 50,
     &NcclRates::network_latency},
    {"local_latency", "of a hop in the server, in NCCL's values", 0.05, 20,
     &NcclRates::local_latency},
    {"pair_Bps", "send/receive between two GPUs of different servers", 0.05, 500,
     &NcclRates::pair_GBps, 1e9},
    {"channel_Bps", "send/receive within a server by one channel", 0.1, 500,
     &NcclRates::channel_GBps, 1e9},
    {"ll_Bps", "payload of LL that one rank sends to the network", 0.01, 100, &NcclRates::ll_GBps,
     1e9},
    {"ll128_Bps", "payload of LL128 that one rank sends to the network", 0.01, 200,
     &NcclRates::ll128_GBps, 1e9},
    {"local_overlap", "how hops and bytes in a server overlap", 0.5, 4, &NcclRates::local_overlap},
    {"network_overlap", "the same where NICs are the narrowest", 0.5, 4,
     &NcclRates::network_overlap},
    {"rendezvous_s", "of each network hop of messages above 4 KiB, besides", 0, 1000,
     &NcclRates::rendezvous_us, 1e-6},
    {"simple_penalty", "of network hops by the protocol Simple", 0.1, 50,
     &NcclRates::simple_penalty},
    {"local_simple", "of hops in the server by the protocol Simple", 0.02, 50,
     &NcclRates::local_simple},
    {"duplex", "data rate of NICs that send and receive at once, of one-way's", 0.3, 1,
     &NcclRates::duplex},
    {"step_s", "of a ring's step over NICs by Simple, at least", 0, 1000, &NcclRates::step_us,
     1e-6},
    {"ring_overlap", "network_overlap of rings by Simple", 0.5, 8, &NcclRates::ring_overlap},
    {"local_ring_overlap", "local_overlap of rings by Simple", 0.5, 8,
     &NcclRates::local_ring_overlap},
    {"pair_overlap", "network_overlap of send/receives and all-to-alls", 0.5, 4,
     &NcclRates::pair_overlap},
    {"local_duplex", "data rate in the server of rings, of one-way's", 0.3, 1.1,
     &NcclRates::local_duplex},
    {"pair_latency", "of a round of all-to-alls over NICs, of other hops'", 0.1, 20,
     &NcclRates::pair_latency},
    {"tree_efficiency", "data rate of NICs in trees of three servers on or by LL128, of a ring's",
     0.1, 1.2, &NcclRates::tree_efficiency},
    {"chunk_s", "of each chunk that NICs pass on in trees by LL128, besides its bytes", 0, 100,
     &NcclRates::chunk_us, 1e-6},
};

double GBps(Bandwidth rate) { return rate.bytes_per_second() / 1e9; }

std::size_t index_of(Protocol protocol) {
  return protocol == Protocol::kLl ? 0 : protocol == Protocol::kLl128 ? 1 : 2;
}

/// Payload over wire bytes.
double payload(Protocol protocol) {
  const WireRatio ratio = wire_ratio(protocol);
  return static_cast<double>(ratio.data) / ratio.wire;
}

double us(double bytes, double rate_GBps) { return bytes / std::max(rate_GBps, 1e-6) / 1e3; }

/// Everything a formula needs, in microseconds and GB/s.
struct Setting {
  CommType op;
  double bytes, n, servers, k;  // k: ranks of a server
  const NcclFabric& fabric;
  const LinkMatrix& nvlinks;
  const NcclRates& rates;
  const NcclConstants& constants;
  NcclChoice choice;
  std::size_t p;

  bool has_nvlink() const { return fabric.nvlink > Bandwidth(); }
  bool chain() const { return op == CommType::kBroadcast || op == CommType::kReduce; }
  /// Whether a chain takes the time of its whole way. In a loop of broadcasts the first ranks are
  /// at the next one while the last still get this one; but where channels pass the ranks in
  /// different orders, a rank that is early in one channel is late in another, and waits for it.
  /// Some channel then begins behind its root's server and leaves every server.
  bool whole_way() const { return chain() && choice.channels > 1 && !choice.same_order; }
  double pcie() const {
    constexpr double kPcie[] = {12, 24, 48, 48};
    return rates.local_efficiency * kPcie[static_cast<std::size_t>(fabric.arch)];
  }
  /// What a GPU sends, or gets, within its server.
  double local() const {
    return has_nvlink() ? rates.local_efficiency * GBps(fabric.nvlink) : pcie();
  }
  bool has_unlike_links() const { return fabric.link_rings > 0; }
  /// GB/s of so many of a server's links that are not alike; of none: over the host.
  double links(std::int32_t count) const {
    const double one = GBps(fabric.nvlink) / fabric.link_rings;
    return count > 0 ? rates.local_efficiency * count * one : pcie();
  }
  /// What a GPU sends to the next of its server, the last to the first.
  double to_next() const {
    double least = local();
    const auto gpus = static_cast<std::int32_t>(k);
    for (std::int32_t gpu = 0; has_unlike_links() && gpu < gpus; ++gpu) {
      least = std::min(least, links(nvlinks.between(gpu, (gpu + 1) % gpus)));
    }
    return least;
  }
  /// What takes longest when each GPU sends so many bytes to each other of its server.
  double to_each_us(double bytes_to_each) const {
    double most = has_unlike_links() ? 0 : us(bytes_to_each * (k - 1), local());
    const auto gpus = static_cast<std::int32_t>(k);
    for (std::int32_t a = 0; has_unlike_links() && a < gpus; ++a) {
      std::int32_t by_host = 0;
      for (std::int32_t b = 0; b < gpus; ++b) {
        const std::int32_t count = b == a ? 1 : nvlinks.between(a, b);
        by_host += count == 0 ? 1 : 0;
        most = b == a ? most : std::max(most, us(bytes_to_each, links(count)));
      }
      most = std::max(most, us(by_host * bytes_to_each, pcie()));
    }
    return most;
  }
  /// What the NICs that the group's ranks use send from one server; of payload by LL and LL128.
  double network() const {
    const double nics = fabric.nics;
    const double wire =
        rates.network_efficiency * (chain() ? 1 : rates.duplex) * nics * GBps(fabric.nic);
    const double proxy = p == 0 ? rates.ll_GBps : rates.ll128_GBps;
    return p == 2 ? wire : std::min(wire * payload(choice.protocol), std::min(k, nics) * proxy);
  }
  /// Bytes of the chunks that take a hop together where whole chunks are forwarded.
  double chunks() const {
    constexpr double kChunk = 512 << 10;
    return p == 2 ? std::min(kChunk * choice.channels, bytes) / 2 : 0;
  }
  /// The same of a chain, which forwards whole slots of the buffer by any protocol.
  double chain_chunks() const {
    const auto slot = static_cast<double>(piece_limit(choice.protocol).count());
    return std::min(slot * choice.channels, bytes) / 2;
  }
  /// Bytes of a chunk of a tree by LL128: 15/16 of a step of the buffer, halved while the message
  /// has too few of them to fill the tree (enqueue.cc).
  double ll128_chunk() const {
    const double depth = 1 + std::floor(std::log2(servers)) + 0.1 * k;
    double chunk = 576000;
    while (chunk > 131072 && bytes / (choice.channels * chunk) < 64 * depth / k) {
      chunk /= 2;
    }
    while (chunk > 32768 && bytes / (choice.channels * chunk) < 16 * depth / k) {
      chunk /= 2;
    }
    return chunk;
  }
  /// One on each channel.
  double ll128_chunks() const { return std::min(ll128_chunk() * choice.channels, bytes); }
  double tree_network() const {
    return network() * (servers > 2 || p == 1 ? rates.tree_efficiency : 1);
  }
  double local_hop(const ByProtocol& nvlink, const ByProtocol& pci) const {
    return rates.local_hop(has_nvlink() ? nvlink[p] : pci[p], p == 2);
  }
  double network_hop(const ByProtocol& net) const {
    return rates.network_hop(net[p], p == 2, bytes);
  }
  double steps() const {
    return op == CommType::kAllReduce                                     ? 2 * (n - 1)
           : op == CommType::kAllGather || op == CommType::kReduceScatter ? n - 1
                                                                          : n;
  }
  /// Share of the links that the channels in use can fill: small messages use fewer.
  double share() const {
    const double all = std::max(1, choice.channels_of_all);
    return std::min(1.0, choice.channels / all);
  }
};

struct Parts {
  double hops = 0, local_us = 0, network_us = 0;
  double fill_us = 0;  // until the pipeline of chunks is full
};

Parts ring(const Setting& s) {
  Parts parts;
  const bool chain = s.chain();
  // By Simple a chain waits for whole chunks as a tree does (tuning.cc takes the tree's hop, too).
  const bool chunks = chain && s.p == 2;
  const double local = chunks ? s.local_hop(s.constants.tree_nvlink, s.constants.tree_pci)
                              : s.local_hop(s.constants.ring_nvlink, s.constants.ring_pci);
  const double network =
      s.network_hop(chunks || s.k < 2 ? s.constants.tree_net : s.constants.ring_net);
  // Of the n hops of a lap as many leave a server as there are servers.
  const double across = s.servers < 2 ? 0 : s.servers / s.n;
  const double step = (1 - across) * local + across * network;
  const double crossings = s.servers < 2 ? 0 : s.whole_way() ? s.servers : s.servers - 1;
  parts.hops = !chain
                   ? s.steps() * (across > 0 && s.p == 2 ? std::max(step, s.rates.step_us) : step)
               : s.whole_way() ? crossings * network + (s.n - 1 - crossings) * local
               : s.servers > 1 ? network
                               : local;
  const double data = s.bytes * s.steps() / s.n / s.share();
  const double duplex = chain ? 1 : s.rates.local_duplex;
  parts.local_us = s.k > 1 ? us(data / payload(s.choice.protocol), duplex * s.local()) : 0;
  parts.network_us = s.servers > 1 ? us(data, s.network()) : 0;
  if (chain && s.servers > 1) {
    parts.fill_us = (crossings - 1) * us(s.chain_chunks(), s.network());
  }
  return parts;
}

/// Bytes that a server's NICs send in a tree, of those of the tensor: a double binary tree over N
/// servers has 2(N-1) directed edges a tree and halves the data over two trees.
double tree_share(const Setting& s) { return s.servers < 3 ? 1 : 2 * (s.servers - 1) / s.servers; }

/// The same of the busiest server, which NVLSTree waits for: of more than three some have two
/// children and a parent in one tree, to whom they send three halves, and a parent alone in the
/// other. (In trees of GPUs tree_efficiency is fitted to the mean.)
double busiest_share(const Setting& s) { return s.servers < 3 ? 1 : s.servers < 4 ? 1.5 : 2; }

Parts tree(const Setting& s) {
  Parts parts;
  const double local = s.local_hop(s.constants.tree_nvlink, s.constants.tree_pci);
  const double levels = s.servers < 2 ? 0 : std::log2(s.servers);
  parts.hops = 2 * ((s.k - 1) * local + levels * s.network_hop(s.constants.tree_net));
  const double data = s.bytes / s.share();
  parts.local_us = s.k > 1 ? us(2 * data / payload(s.choice.protocol), s.local()) : 0;
  parts.network_us = s.servers > 1 ? us(tree_share(s) * data, s.tree_network()) : 0;
  if (s.servers > 1 && s.p == 1) {
    parts.network_us += s.rates.chunk_us * s.bytes / (s.choice.channels * s.ll128_chunk());
  }
  if (s.servers > 1) {  // by LL128 GPUs pass on what they get line by line, NICs by chunks
    parts.fill_us =
        2 * levels *
        (s.p == 1 ? us(s.ll128_chunks(), s.tree_network()) : us(s.chunks(), s.network()));
  }
  return parts;
}

Parts nvls(const Setting& s) {
  Parts parts;
  const bool tree = s.choice.algorithm == NcclAlgorithm::kNvlsTree;
  const double levels = s.servers < 2 ? 0 : std::log2(s.servers);
  parts.hops = s.rates.local_latency * s.constants.nvls_nvlink;
  if (tree) {
    parts.hops +=
        2 * levels * s.rates.network_latency * s.rates.simple_penalty * s.constants.nvls_tree_net;
    parts.network_us = us(busiest_share(s) * s.bytes, s.network());
  }
  const double rate = GBps(s.fabric.nvlink) * s.rates.nvls_efficiency;
  parts.local_us = us(s.op == CommType::kAllReduce ? s.bytes * (1 + 1 / s.k) : s.bytes, rate);
  return parts;
}

Parts pat(const Setting& s) {
  Parts parts;
  parts.hops = std::log2(s.n) * s.network_hop(s.constants.tree_net) / 3.5 + 2.8 * s.n;
  parts.network_us = us(s.bytes * (s.n - 1) / s.n, s.network());
  return parts;
}

/// Channels that NCCL gives to one peer: 16 shared by all peers, twice as many while a channel's
/// part is above 32 MiB (enqueue.cc: 64 steps of 512 KiB), 32 at most.
double pair_channels(double ranks, double bytes) {
  double channels = std::max(1.0, std::exp2(std::floor(std::log2(16 / ranks))));
  while (bytes / channels > 32.0 * (1 << 20) && channels < 32) {
    channels *= 2;
  }
  return channels;
}

Parts pairwise(const Setting& s) {
  Parts parts;
  const double local = s.local_hop(s.constants.ring_nvlink, s.constants.ring_pci);
  const double network = s.network_hop(s.constants.ring_net);
  const double wire = 1 / payload(s.choice.protocol);
  if (s.op == CommType::kSendRecv) {  // nccl-tests: rank i to i + 1, the last of a server outside
    parts.hops = s.servers > 1 ? network : local;
    const double rate = std::min(s.to_next(), pair_channels(s.n, s.bytes) * s.rates.channel_GBps);
    parts.local_us = s.k > 1 ? us(s.bytes * wire, rate) : 0;
    parts.network_us = s.servers > 1 ? us(s.bytes, std::min(s.rates.pair_GBps, s.network())) : 0;
    return parts;
  }
  const double rounds = std::ceil(s.n / 8);  // eight peers under way
  parts.hops = s.servers > 1 ? rounds * s.rates.pair_latency * network + local : rounds * local;
  const double far = s.bytes * (s.n - s.k) / s.n;
  parts.local_us = s.to_each_us(s.bytes * wire / s.n);
  const double peers = std::min(8.0, s.n - s.k);
  parts.network_us =
      s.servers > 1 ? us(far, std::min(s.network() / s.k, peers * s.rates.pair_GBps)) : 0;
  return parts;
}

Parts parts_of(const Setting& s) {
  switch (s.choice.algorithm) {
    case NcclAlgorithm::kTree:
    case NcclAlgorithm::kCollnetChain:
    case NcclAlgorithm::kCollnetDirect:
      return tree(s);
    case NcclAlgorithm::kNvls:
    case NcclAlgorithm::kNvlsTree:
      return nvls(s);
    case NcclAlgorithm::kPat:
      return pat(s);
    case NcclAlgorithm::kPointToPoint:
      return pairwise(s);
    case NcclAlgorithm::kRing:
      break;
  }
  return ring(s);
}

/// How hops and bytes overlap, by what is the narrowest and who waits for it.
double overlap_of(const Setting& s, bool network_bound) {
  if (s.whole_way() && s.servers > 1) {
    return 1;
  }
  if (s.choice.algorithm == NcclAlgorithm::kRing && s.p == 2) {
    return network_bound ? s.rates.ring_overlap
           : s.chain()   ? s.rates.local_overlap
                         : s.rates.local_ring_overlap;
  }
  if (!network_bound) {
    return s.rates.local_overlap;
  }
  return s.choice.algorithm == NcclAlgorithm::kPointToPoint ? s.rates.pair_overlap
                                                            : s.rates.network_overlap;
}

/// NICs of a server that so many of its ranks use.
NcclFabric fabric_for(const NcclTask& task, const NcclSystem& system) {
  NcclFabric fabric = system.fabric;
  const double share =
      static_cast<double>(task.ranks) / task.servers / std::max(1, system.gpus_per_server);
  fabric.nics = std::max(
      1, static_cast<std::int32_t>(std::lround(std::min(1.0, share) * system.nics_per_server)));
  const auto local = static_cast<std::size_t>(std::max(2, task.ranks / task.servers));
  if (local < system.nvlinks.rings.size()) {
    fabric.link_rings = system.nvlinks.rings[local];
    fabric.nvlink = Bandwidth::bytes_per_second(system.fabric.nvlink.bytes_per_second() *
                                                fabric.link_rings / system.nvlinks.most_of_a_gpu());
  }
  return fabric;
}

/// Those asked for last are kept: most calls come in runs of one release and fabric.
const NcclConstants& constants_of(NcclVersion version, const NcclFabric& fabric) {
  struct Last {
    NcclVersion version;
    NcclFabric fabric;
    NcclConstants constants;
  };
  thread_local std::optional<Last> last;
  if (!last || last->version != version || last->fabric != fabric) {
    last = {version, fabric, nccl_constants(version, fabric)};
  }
  return last->constants;
}

}  // namespace

std::span<const NcclRateField> nccl_rate_fields() { return kFields; }

NcclGroup even_group(std::int32_t ranks, std::int32_t servers) {
  return {ranks, servers, ranks / servers};
}

NcclChoice nccl_choice_on(const NcclTask& task, const NcclSystem& system) {
  LOCKSTEP_CHECK(task.servers >= 1 && task.servers <= task.ranks, "ranks on servers");
  if (task.ranks < 2) {
    return {};
  }
  return nccl_choice(task.op, task.bytes, even_group(task.ranks, task.servers),
                     fabric_for(task, system), task.wishes);
}

NcclTime nccl_time(const NcclTask& task, const NcclSystem& system, const NcclRates& rates,
                   const NcclChoice& choice) {
  NcclTime time;
  time.choice = choice;
  if (task.ranks < 2) {
    time.latency_us = time.time_us = rates.floor_us;
    return time;
  }
  const NcclFabric fabric = fabric_for(task, system);
  const Setting setting{task.op,
                        static_cast<double>(task.bytes.count()),
                        static_cast<double>(task.ranks),
                        static_cast<double>(task.servers),
                        static_cast<double>(task.ranks) / task.servers,
                        fabric,
                        system.nvlinks,
                        rates,
                        constants_of(task.wishes.version, fabric),
                        choice,
                        index_of(choice.protocol)};
  const Parts parts = parts_of(setting);
  time.latency_us = rates.floor_us + parts.hops;
  time.wire_us = std::max(parts.local_us, parts.network_us);
  time.network_bound = parts.network_us > parts.local_us;
  time.fill_us = parts.fill_us;
  const double overlap = overlap_of(setting, time.network_bound);
  const double most = std::max({parts.hops, time.wire_us, 1e-9});
  const auto power = [&](double part) { return part == most ? 1 : std::pow(part / most, overlap); };
  time.time_us = rates.floor_us + parts.fill_us +
                 most * std::pow(power(parts.hops) + power(time.wire_us), 1 / overlap);
  return time;
}

NcclTime nccl_time(const NcclTask& task, const NcclSystem& system, const NcclChoice& choice) {
  return nccl_time(task, system, system.rates, choice);
}

NcclTime nccl_time(const NcclTask& task, const NcclSystem& system) {
  return nccl_time(task, system, nccl_choice_on(task, system));
}

}  // namespace lockstep
