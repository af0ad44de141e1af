// CPU seconds of one collective alone on the flow engine, stage by stage, with the topology given.
//
//   lone_collective TOPOLOGY OP ALGORITHM PROTOCOL CHANNELS SIZE [spray] [full] [every] [repeat=N]
//
// ALGORITHM, PROTOCOL and CHANNELS may be "-": as NCCL chooses. `full`: no symmetry; `every`: no
// fast-forward; `repeat=N`: the least of N runs of each stage.

#include "simulator/replay/lone_collective.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <numeric>
#include <optional>
#include <string>
#include <sys/resource.h>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/tune.h"
#include "simulator/replay/fabric_of.h"
#include "simulator/replay/flow_graph.h"
#include "simulator/replay/flow_graph_run.h"
#include "simulator/replay/switch_node.h"
#include "simulator/replay/symmetry.h"
#include "topologies/topology_file.h"

namespace {

using namespace lockstep;

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

struct Stages {
  double schedule = 1e9, graph = 1e9, symmetry = 1e9, run = 1e9;
};

template <class F>
auto timed(double& least, F f) {
  const double begin = cpu_seconds();
  auto result = f();
  least = std::min(least, cpu_seconds() - begin);
  return result;
}

std::optional<std::string> given(const char* argument) {
  return std::string(argument) == "-" ? std::nullopt : std::optional<std::string>(argument);
}

int bench(int argc, char** argv) {
  const auto has = [&](const std::string& word) {
    return std::find(argv + 7, argv + argc, word) != argv + argc;
  };
  int repeats = 1;
  for (int i = 7; i < argc; ++i) {
    std::sscanf(argv[i], "repeat=%d", &repeats);
  }
  const Topology topology = topology_from(argv[1]);
  std::vector<NodeId> nodes;
  for (std::size_t node = 0; node < topology.nodes.size(); ++node) {
    if (topology.nodes[node].kind == NodeKind::kGpu) {
      nodes.emplace_back(node);
    }
  }
  const GroupShape shape = shape_of_nodes(topology, nodes);
  CollectiveRequest request;
  request.op = *comm_type_named(argv[2]);
  request.bytes = parse_bytes(argv[6]);
  request.channels = given(argv[5]) ? std::stoi(argv[5]) : 0;
  NcclWishes wishes;
  if (const auto protocol = given(argv[4])) {
    wishes.protocol = protocol_named(*protocol);
  }
  const CollectiveAlgorithm* named =
      given(argv[3]) ? &algorithm_named(argv[3], request.op) : nullptr;
  const Adjacency adjacency(topology);
  FlowOptions flow;
  flow.routes.spray = has("spray");
  Stages stages;
  FlowGraphTimes times;
  std::int64_t slots = 0, classes = 0;
  for (int i = 0; i < repeats; ++i) {
    const Schedule schedule = timed(stages.schedule, [&] {
      const TunedRequest tuned = tune(request, shape, fabric_of(topology, nodes), wishes, named);
      return build_schedule(*tuned.algorithm, tuned.request, shape);
    });
    const FlowGraph graph = timed(stages.graph, [&] {
      FlowGraphBuilder builder(topology, flow);
      FlowGraphBuilder::Setting setting;
      setting.nodes = nodes;
      for (const SwitchPlace& place : schedule.switches) {
        setting.nodes.push_back(
            switch_node(topology, adjacency, nodes[static_cast<std::size_t>(place.near)], place));
      }
      builder.add(schedule, setting);
      return builder.finish();
    });
    const auto partition = timed(stages.symmetry, [&]() -> std::optional<Partition> {
      return has("full") ? std::nullopt : find_symmetry(graph);
    });
    slots = std::ssize(graph.slots);
    classes = partition ? partition->slot_classes : slots;
    times = timed(stages.run, [&] {
      return run_flow_graph(partition ? fold(graph, *partition) : graph, !has("every"));
    });
  }
  Time end;
  for (std::size_t i = 0; i < times.sent.size(); ++i) {
    end = std::max({end, times.sent[i], times.delivered[i]});
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{:>8} GPUs  {:>9} slots {:>7} classes {:>11} transfers {:>10} simulated   schedule {:.4f} "
      "graph {:.4f} symmetry {:.4f} run {:.4f}  sum {:.4f} s CPU  {} MB   ends {:.9f} ms\n",
      nodes.size(), slots, classes, times.transfers, times.simulated, stages.schedule, stages.graph,
      stages.symmetry, stages.run, stages.schedule + stages.graph + stages.symmetry + stages.run,
      usage.ru_maxrss / 1024, static_cast<double>(end.count_ps()) * 1e-9);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 7) {
    std::fprintf(stderr,
                 "lone_collective TOPOLOGY OP ALGORITHM PROTOCOL CHANNELS SIZE [spray] [full] "
                 "[every] [repeat=N]\n");
    return 2;
  }
  try {
    return bench(argc, argv);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
