#include "simulator/collectives/nccl_tuner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "base/error.h"
#include "simulator/collectives/building.h"
#include "simulator/collectives/nccl_constants.h"
#include "simulator/collectives/nvswitch.h"

namespace lockstep {
namespace {

constexpr std::array kProtocols = {Protocol::kLl, Protocol::kLl128, Protocol::kSimple};

std::size_t index_of(Protocol protocol) {
  return static_cast<std::size_t>(std::ranges::find(kProtocols, protocol) - kProtocols.begin());
}

double GBps(Bandwidth rate) { return rate.bytes_per_second() / 1e9; }

/// Speeds that the graph search tries, GB/s a channel.
constexpr double kIntraOld[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kIntraHopper[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
constexpr double kIntraBlackwell[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
constexpr double kInterOld[] = {48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
constexpr double kInterHopper[] = {48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3};
constexpr double kInterBlackwell[] = {96, 86, 80, 48,   45.1, 42, 40, 30,
                                      24, 22, 20, 17.5, 15,   12, 6,  3};

using Speeds = std::span<const double>;
Speeds intra_speeds(GpuArch arch) {
  return arch == GpuArch::kBlackwell ? Speeds(kIntraBlackwell)
         : arch == GpuArch::kHopper  ? Speeds(kIntraHopper)
                                     : Speeds(kIntraOld);
}
Speeds inter_speeds(GpuArch arch) {
  return arch == GpuArch::kBlackwell ? Speeds(kInterBlackwell)
         : arch == GpuArch::kHopper  ? Speeds(kInterHopper)
                                     : Speeds(kInterOld);
}

/// What the graph search finds for rings and trees: so many channels of such a speed.
struct Graph {
  std::int32_t channels = 1;
  double speed = 3;        // GB/s
  bool same_order = true;  // all channels pass the ranks in one order (NCCL's sameChannels)
};

/// On symmetric servers: one server fills its NVLinks with as many channels of one speed as carry
/// most, at no less than half of the highest speed; several servers have a channel a NIC. Fast
/// channels are halved and doubled in number. Channels that begin at GPUs beside different NICs, or
/// that take different links of a mesh, pass the ranks in different orders.
Graph search(const NcclGroup& group, const NcclFabric& fabric) {
  Graph graph;
  if (group.servers > 1) {
    graph.channels = std::max(1, std::min(fabric.nics, group.fewest));
    graph.same_order = graph.channels == 1;
    for (const double speed : inter_speeds(fabric.arch)) {
      if (speed <= GBps(fabric.nic)) {
        graph.speed = speed;
        break;
      }
    }
  } else if (fabric.link_rings > 0) {
    graph = {fabric.link_rings, GBps(fabric.nvlink) / fabric.link_rings, group.ranks < 3};
  } else {
    constexpr double kPcie[] = {12, 24, 48, 48};  // x16 of the generation of its time
    const double total = fabric.nvlink > Bandwidth() ? GBps(fabric.nvlink)
                                                     : kPcie[static_cast<std::size_t>(fabric.arch)];
    double fastest = 0;
    for (const double speed : intra_speeds(fabric.arch)) {
      const auto channels = static_cast<std::int32_t>(total / speed);
      fastest = fastest > 0 || channels == 0 ? fastest : speed;
      if (speed >= 0.49 * fastest && channels * speed > graph.channels * graph.speed) {
        graph = {channels, speed, !fabric.mesh || group.ranks < 3};
      }
    }
  }
  const bool hopper = fabric.arch >= GpuArch::kHopper;
  if (graph.speed >= (hopper ? 50 : 25) && (!hopper || graph.channels > 4) && group.servers == 1) {
    graph.channels *= 2;
    graph.speed /= 2;
  }
  return graph;
}

/// Everything the formulas need.
struct Model {
  CommType op;
  double n, servers, ppn;
  Graph graph;
  NcclConstants constants;
  const NcclFabric& fabric;
  NcclVersion version;

  std::size_t column() const { return servers < 2 ? 0 : servers < 3 ? 1 : 2; }
  /// Release 2.8: caps by operation and for all channels together.
  bool is_old() const { return version.number < 20900; }
  /// Releases before 2.18: no cost of posting, LL's hops in a server 1.8 times as long between
  /// servers.
  bool before_2_18() const { return version.number < 21800; }
  bool is_ampere() const { return fabric.arch == GpuArch::kAmpere; }
  double steps() const {
    return op == CommType::kAllReduce                                     ? 2 * (n - 1)
           : op == CommType::kAllGather || op == CommType::kReduceScatter ? n - 1
                                                                          : n;
  }
  double hop(const ByProtocol& nvlink, const ByProtocol& pci, std::size_t p) const {
    const double own = fabric.nvlink > Bandwidth() ? nvlink[p] : pci[p];
    if (before_2_18()) {
      return own * (servers > 1 && p == 0 ? 1.8 : 1);
    }
    const double post = (fabric.amd_host ? 2.0 : 1.0) * (p == 2 ? 3 : 1);
    return servers > 1 ? std::max(own, post) : own;
  }
  double ring_local(std::size_t p) const {
    return hop(constants.ring_nvlink, constants.ring_pci, p);
  }
  double ring_network(std::size_t p) const {
    return ppn < 2 && version.number >= 22300 ? constants.tree_net[p] : constants.ring_net[p];
  }
  double tree_local(std::size_t p) const {
    return hop(constants.tree_nvlink, constants.tree_pci, p);
  }

  /// Release 2.8, of a channel by LL128.
  double old_ll128() const {
    switch (op) {
      case CommType::kBroadcast:
        return 18.8;
      case CommType::kReduce:
        return 12;
      case CommType::kAllGather:
        return 18.3;
      case CommType::kReduceScatter:
        return 15.2;
      default:
        return 16.9;
    }
  }
  double ring_bandwidth(std::size_t p) const {
    constexpr double kOldMost = 235;  // of an A100
    const double all = graph.channels * graph.speed;
    const double bus = before_2_18() && is_ampere() ? std::min(all, kOldMost) : all;
    double bandwidth = bus;
    if (p == 0) {
      const bool far = servers > 1 || op == CommType::kAllReduce || op == CommType::kReduce;
      bandwidth =
          std::min(constants.ll_most[column()],
                   bus * (far ? constants.ring_ll_factor_servers : constants.ring_ll_factor));
    } else if (p == 1) {
      const double most = is_old() ? old_ll128() : constants.ring_ll128_channel[column()];
      bandwidth = std::min(0.92 * bus, graph.channels * most) *
                  (ppn < 2 && version.number >= 22000 ? 0.7 : 1);
    }
    return bandwidth * n / steps();
  }
  /// Releases before 2.18 and 2.20 to 2.22 took a chunk's time for any hop of a tree by Simple.
  double tree_hop(double own, std::size_t p) const {
    return p == 2 && constants.tree_simple_hop > 0 ? constants.tree_simple_hop : own;
  }
  /// Of a chain: one hop where all channels have one order, else one for each rank, which by Simple
  /// is a tree's (a chunk's).
  double chain_latency(std::size_t p) const {
    const bool nvlink = fabric.nvlink > Bandwidth();
    const ByProtocol& ring = servers > 1 ? constants.ring_net
                             : nvlink    ? constants.ring_nvlink
                                         : constants.ring_pci;
    const ByProtocol& tree = servers > 1 ? constants.tree_net
                             : nvlink    ? constants.tree_nvlink
                                         : constants.tree_pci;
    return graph.same_order ? ring[p] : n * (p == 2 ? tree_hop(tree[p], p) : ring[p]);
  }
  double ring_latency(std::size_t p) const {
    const double base = constants.ring_base[p];
    if (op == CommType::kBroadcast || op == CommType::kReduce) {
      return base + chain_latency(p);
    }
    const double across = servers < 2                  ? 0
                          : op == CommType::kAllReduce ? 2 * (servers - constants.ring_servers_less)
                                                       : servers - 1;
    return base + (steps() - across) * ring_local(p) + across * ring_network(p);
  }
  double old_tree_bandwidth(std::size_t p, double all) const {
    const double most =
        is_ampere() && p == 1 ? (servers > 2 ? 105 : 130) : (servers > 2 ? 80 : 110);
    const double bus = std::min(0.9 * (is_ampere() ? std::min(all, 235.0) : all), most);
    return (p == 0   ? bus / 3.8
            : p == 1 ? std::min(bus * (servers < 2 ? 7.0 / 9 : 0.915),
                                graph.channels * old_ll128() * 7 / 9)
                     : bus) /
           2;
  }
  /// Of a tree's channel. On two servers NCCL takes the speed within the servers, which its search
  /// raises, step by step, up to twice that of the network part. In a mesh three of the channels
  /// share the links of one pair of GPUs where a tree's way up and down are at two GPUs (the trees
  /// in the logs of such servers do), which ends that earlier: three times 42 GB/s do not fit into
  /// six links of H100, three times 40 do.
  double tree_speed() const {
    if (servers != 2) {
      return graph.speed;
    }
    const double most = 2 * graph.speed;
    const double pair = GBps(fabric.nvlink) / std::max(1.0, ppn - 1);
    if (!fabric.mesh || fabric.nic_behind_host || ppn < 3 || pair / 3 >= most) {
      return most;
    }
    for (const double speed : inter_speeds(fabric.arch)) {
      if (speed <= pair / 3) {
        return std::max(speed, graph.speed);
      }
    }
    return graph.speed;
  }
  double tree_bandwidth(std::size_t p) const {
    const double speed = tree_speed();
    if (is_old()) {
      return old_tree_bandwidth(p, graph.channels * speed);
    }
    // Without a relay the tree's way up and down is all at one GPU.
    const double one_gpu = servers > 1 && fabric.nic_behind_host ? constants.tree_one_gpu : 1;
    const double bus = one_gpu * std::min(0.92 * graph.channels * speed,
                                          graph.channels * constants.tree_channel[column()]);
    double bandwidth = bus;
    if (p == 0) {
      bandwidth = std::min(bus / 3.8, constants.ll_most[column()]);
    } else if (p == 1) {
      bandwidth = std::min(bus * (servers < 2 ? 7.0 / 9 : 120.0 / 128),
                           graph.channels * constants.tree_ll128_channel[column()]);
    }
    return bandwidth / 2;
  }
  double tree_latency(std::size_t p) const {
    // What posting to the NIC takes is counted in rings alone.
    const ByProtocol& own =
        fabric.nvlink > Bandwidth() ? constants.tree_nvlink : constants.tree_pci;
    const double local = before_2_18() ? tree_local(p) : own[p];
    return constants.tree_base[p] +
           2 * ((ppn - 1) * tree_hop(local, p) +
                std::floor(std::log2(servers)) * tree_hop(constants.tree_net[p], p));
  }
  /// One channel a head.
  double nvls_channels() const { return std::max(ppn, 2.0); }
  double nvls_intra() const {
    const double c = nvls_channels();
    const double gain = op == CommType::kAllReduce ? 2 : (ppn - 1) / ppn;
    return GBps(fabric.nvlink) / c * constants.nvls_efficiency * (c - 1) / c * gain;
  }
  double nvls_bandwidth() const {
    return nvls_channels() * nvls_intra() * (op == CommType::kAllReduce ? n / steps() : 1);
  }
  double nvls_tree_bandwidth() const {
    const double speed = std::min(
        {nvls_intra(), graph.speed * (servers < 3 ? 2 : 1), constants.nvls_tree_channel[column()]});
    return graph.channels * speed * n / steps();
  }
  double nvls_tree_latency() const {
    const double rounds = version.number < 22000 ? servers - 1 : std::floor(std::log2(servers));
    return constants.nvls_base + constants.nvls_nvlink + 2 * rounds * constants.nvls_tree_net;
  }
  double pat_latency() const {
    return pat_launch() + std::floor(std::log2(servers)) * constants.pat_net / 3.5;
  }
  double pat_launch() const { return constants.pat_base + 2.8 * n; }
};

/// Of the tree's bandwidth (and of NVLSTree's on Blackwell beside x86), by floor(log2(size / 64
/// B)).
/// The last place, of 512 MiB, is for NVLSTree alone.
using BySize = std::array<double, 24>;
constexpr std::array<BySize, 3> kTreeBySize = {{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
     .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}};

/// The same of release 2.8.
constexpr std::array<BySize, 3> kOldTreeBySize = {{
    kTreeBySize[0],
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .5, .6, .6, .7, .7, .8, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .5, .5, .6, .6, .7, .8, .9, 1, 1},
}};

double tree_by_size(std::size_t protocol, Bytes bytes, bool old, bool nvls) {
  const std::int64_t units = bytes.count() / 64;
  if (units < 1) {
    return 1;
  }
  const BySize& table = old ? kOldTreeBySize[protocol] : kTreeBySize[protocol];
  const auto place = static_cast<std::size_t>(std::log2(static_cast<double>(units)));
  return place < table.size() - (nvls ? 0 : 1) ? table[place] : 1;
}

Model model_of(CommType op, const NcclGroup& group, const NcclFabric& fabric, NcclVersion version) {
  return {op,
          static_cast<double>(group.ranks),
          static_cast<double>(group.servers),
          std::max(1.0, static_cast<double>(group.ranks) / group.servers),
          search(group, fabric),
          nccl_constants(version, fabric),
          fabric,
          version};
}

bool point_to_point(CommType op) {
  return op == CommType::kAllToAll || op == CommType::kSendRecv || op == CommType::kBarrier;
}

/// As many channels as leave the threads of each, by protocol, their least bytes, and each channel
/// its least traffic (that of LL counts four times).
std::int32_t channels_for(const Model& model, const NcclChoice& choice, Bytes bytes) {
  if (choice.algorithm == NcclAlgorithm::kNvls || choice.algorithm == NcclAlgorithm::kNvlsTree) {
    return nvls_channels(model.fabric.arch, static_cast<std::int32_t>(model.servers));
  }
  constexpr double kThreads[] = {512, 640, 512};
  constexpr double kLeastTraffic = 32 << 10;
  const std::size_t p = index_of(choice.protocol);
  std::array<double, 3> least = {8, 8, 64};
  if (choice.algorithm == NcclAlgorithm::kRing) {
    least[0] *= model.n;
  }
  const auto size = static_cast<double>(bytes.count());
  const double traffic = size * (model.op == CommType::kAllReduce ? 2 : 1) * (p == 0 ? 4 : 1);
  const double busy = model.version.number < 22600 || point_to_point(model.op)
                          ? choice.channels_of_all
                          : std::ceil(traffic / kLeastTraffic);
  auto channels =
      static_cast<std::int32_t>(std::clamp(busy, 1.0, static_cast<double>(choice.channels_of_all)));
  while (channels > 1 && size < channels * kThreads[p] * least[p]) {
    --channels;
  }
  return channels;
}

HopLatency hops_us(double local, double network) {
  return {Time::seconds(local * 1e-6), Time::seconds(network * 1e-6), Time()};
}

void set_latencies(const Model& model, NcclChoice& choice) {
  const std::size_t p = index_of(choice.protocol);
  const NcclConstants& c = model.constants;
  double launch = 0;
  switch (choice.algorithm) {
    case NcclAlgorithm::kRing:
    case NcclAlgorithm::kPointToPoint:
      launch = c.ring_base[p];
      choice.hops = hops_us(model.ring_local(p), model.ring_network(p));
      break;
    case NcclAlgorithm::kTree:
      launch = c.tree_base[p];
      choice.hops = hops_us(model.tree_local(p), c.tree_net[p]);
      break;
    case NcclAlgorithm::kNvls:  // to the switch, to the head, and the same back
      launch = c.nvls_base;
      choice.hops = hops_us(c.nvls_nvlink / 4, 18.0 / 2);
      break;
    case NcclAlgorithm::kNvlsTree:
      launch = c.nvls_base;
      choice.hops = hops_us(c.nvls_nvlink / 4, c.nvls_tree_net);
      break;
    case NcclAlgorithm::kPat:
      launch = model.pat_launch();
      choice.hops = hops_us(model.tree_local(p), c.pat_net / 3.5);
      break;
    case NcclAlgorithm::kCollnetDirect:
      choice.hops = hops_us(c.collnet_direct_nvlink, c.collnet_direct_net / 2);
      break;
    case NcclAlgorithm::kCollnetChain:
      choice.hops = hops_us(c.collnet_chain_nvlink, c.collnet_chain_net / 2);
      break;
  }
  choice.hops.launch = Time::seconds(launch * 1e-6);
}

}  // namespace

NcclGroup nccl_group(const GroupShape& shape) {
  return {shape.ranks, *std::ranges::max_element(shape.server) + 1, fewest_a_server(shape)};
}

std::vector<NcclCandidate> nccl_candidates(CommType op, Bytes bytes, const NcclGroup& group,
                                           const NcclFabric& fabric, const NcclWishes& wishes) {
  const Model model = model_of(op, group, fabric, wishes.version);
  const bool scatters = op == CommType::kAllGather || op == CommType::kReduceScatter;
  const bool reduces = op == CommType::kAllReduce;
  const bool multicasts = model.constants.has_nvls && fabric.nvswitch &&
                          fabric.arch >= GpuArch::kHopper && model.ppn > 1;
  std::vector<NcclCandidate> candidates;
  const auto offer = [&](NcclAlgorithm algorithm, std::size_t p, double latency, double bandwidth) {
    const Protocol protocol = kProtocols[p];
    if ((wishes.algorithm && *wishes.algorithm != algorithm) ||
        (wishes.protocol && *wishes.protocol != protocol)) {
      return;
    }
    double time = latency, share = 1;
    if (algorithm == NcclAlgorithm::kTree ||
        (algorithm == NcclAlgorithm::kNvlsTree && model.constants.nvls_tree_by_size)) {
      share = tree_by_size(p, bytes, model.is_old(), algorithm == NcclAlgorithm::kNvlsTree);
    }
    const double plateau =
        model.before_2_18() ? 4096 * model.n : 64.0 * nccl_channels(group, fabric) * model.n;
    if (algorithm == NcclAlgorithm::kRing && p == 2 && reduces && model.servers > 1 &&
        static_cast<double>(bytes.count()) >= plateau) {
      time *= fabric.arch >= GpuArch::kAmpere && !model.before_2_18() ? 1.4 : 1.9;
    }
    time += static_cast<double>(bytes.count()) / (bandwidth * share * 1e3);
    candidates.push_back({algorithm, protocol, latency, bandwidth, time});
  };
  for (std::size_t p = 0; p < kProtocols.size(); ++p) {
    // Release 2.27 took Grace's link to its GPUs for no worse than a PCIe switch.
    const bool far = model.servers > 1 && fabric.nic_behind_host &&
                     (fabric.arch < GpuArch::kHopper || wishes.version.number < 22700);
    const bool ll128_off = p == 1 && (fabric.nvlink == Bandwidth() || far) && !wishes.protocol;
    if (point_to_point(op) || ll128_off) {
      continue;
    }
    offer(NcclAlgorithm::kRing, p, model.ring_latency(p), model.ring_bandwidth(p));
    if (reduces) {
      offer(NcclAlgorithm::kTree, p, model.tree_latency(p), model.tree_bandwidth(p));
    }
  }
  if ((reduces || scatters) && multicasts && model.servers < 2) {
    offer(NcclAlgorithm::kNvls, 2, model.constants.nvls_base + model.constants.nvls_nvlink,
          model.nvls_bandwidth());
  }
  if (reduces && multicasts && model.servers > 1) {
    offer(NcclAlgorithm::kNvlsTree, 2, model.nvls_tree_latency(), model.nvls_tree_bandwidth());
  }
  if (scatters && model.constants.has_pat && model.ppn < 2) {
    offer(NcclAlgorithm::kPat, 2, model.pat_latency(),
          model.graph.channels * model.graph.speed * model.constants.pat_factor);
  }
  return candidates;
}

NcclChoice nccl_choice(CommType op, Bytes bytes, const NcclGroup& group, const NcclFabric& fabric,
                       const NcclWishes& wishes) {
  NcclChoice choice;
  const Model model = model_of(op, group, fabric, wishes.version);
  const bool in_switches = wishes.algorithm && (*wishes.algorithm == NcclAlgorithm::kCollnetChain ||
                                                *wishes.algorithm == NcclAlgorithm::kCollnetDirect);
  const auto candidates = nccl_candidates(op, bytes, group, fabric, wishes);
  if (point_to_point(op)) {
    choice.algorithm = NcclAlgorithm::kPointToPoint;
    // All-to-alls: of what goes to each peer. Sends go over two channels at least.
    const std::int32_t parts = op == CommType::kSendRecv ? 2 : group.ranks;
    const bool small = op == CommType::kBarrier || bytes.count() / parts <= std::int64_t{16} * 1024;
    choice.protocol = wishes.protocol.value_or(small ? Protocol::kLl : Protocol::kSimple);
  } else if (!candidates.empty()) {
    const auto best = std::ranges::min_element(candidates, {}, &NcclCandidate::time_us);
    choice.algorithm = best->algorithm;
    choice.protocol = best->protocol;
  } else if (wishes.algorithm) {  // what NCCL would not do here, but the user asks for
    choice.algorithm = *wishes.algorithm;
    choice.protocol = wishes.protocol.value_or(Protocol::kSimple);
  } else {
    throw Error("NCCL has no way to do " + std::string(name_of(op)) + " here")
        .hint("name another protocol or an algorithm");
  }
  if (in_switches || choice.algorithm == NcclAlgorithm::kNvls ||
      choice.algorithm == NcclAlgorithm::kNvlsTree || choice.algorithm == NcclAlgorithm::kPat) {
    if (choice.protocol != Protocol::kSimple) {
      throw Error("NCCL does " + std::string(our_name(choice.algorithm, op, group.ranks)) +
                  " by the protocol simple only");
    }
  }
  choice.same_order = model.graph.same_order;
  choice.channels_of_all = nccl_channels(group, fabric);
  choice.channels = channels_for(model, choice, bytes);
  set_latencies(model, choice);
  return choice;
}

std::int32_t nccl_channels(const NcclGroup& group, const NcclFabric& fabric) {
  const Graph graph = search(group, fabric);
  std::int32_t channels = 2 * graph.channels;
  if (fabric.arch >= GpuArch::kHopper && group.servers > 1 && graph.speed > 45 && channels < 16) {
    channels *= 2;
  }
  return std::min(channels, 64);
}

std::string_view our_name(NcclAlgorithm algorithm, CommType op, std::int32_t ranks) {
  switch (algorithm) {
    case NcclAlgorithm::kRing:
      return op == CommType::kBroadcast || op == CommType::kReduce ? "chain" : "ring";
    case NcclAlgorithm::kTree:
      return "tree";
    case NcclAlgorithm::kNvls:
      return "nvls";
    case NcclAlgorithm::kNvlsTree:
      return "nvls-tree";
    case NcclAlgorithm::kPat:
      return "pat";
    case NcclAlgorithm::kCollnetDirect:
      return "collnet-direct";
    case NcclAlgorithm::kCollnetChain:
      return "collnet-chain";
    case NcclAlgorithm::kPointToPoint:
      return op == CommType::kAllToAll   ? "pairwise"
             : op == CommType::kSendRecv ? (ranks == 2 ? "send" : "shift")
                                         : "dissemination";
  }
  LOCKSTEP_CHECK(false, "every algorithm of NCCL has one of ours");
}

std::optional<NcclAlgorithm> nccl_algorithm_named(std::string_view our_name) {
  constexpr std::pair<std::string_view, NcclAlgorithm> kNames[] = {
      {"ring", NcclAlgorithm::kRing},
      {"chain", NcclAlgorithm::kRing},
      {"tree", NcclAlgorithm::kTree},
      {"nvls", NcclAlgorithm::kNvls},
      {"nvls-tree", NcclAlgorithm::kNvlsTree},
      {"pat", NcclAlgorithm::kPat},
      {"collnet-direct", NcclAlgorithm::kCollnetDirect},
      {"collnet-chain", NcclAlgorithm::kCollnetChain},
      {"pairwise", NcclAlgorithm::kPointToPoint},
      {"direct", NcclAlgorithm::kPointToPoint},
      {"send", NcclAlgorithm::kPointToPoint},
      {"shift", NcclAlgorithm::kPointToPoint},
      {"dissemination", NcclAlgorithm::kPointToPoint}};
  for (const auto& [name, algorithm] : kNames) {
    if (name == our_name) {
      return algorithm;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
