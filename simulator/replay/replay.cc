#include "simulator/replay/replay.h"

#include <cmath>
#include <utility>

#include "simulator/network/flow/path_finder.h"
#include "simulator/replay/replay_run.h"
#include "simulator/replay/step_fold.h"

namespace lockstep {

ReplayResult replay(const RankPrograms& work, const std::vector<NodeId>& node_of_rank,
                    const Topology& topology, NetworkEngine& network,
                    const ScheduleSource& schedules, const ReplayOptions& options) {
  return ReplayRun(work, node_of_rank, topology, network, schedules, options).run();
}

ReplayResult replay_by_formula(const RankPrograms& work, const CommFormula& formula,
                               const ReplayOptions& options) {
  return ReplayRun(work, formula, options).run();
}

FoldedResult replay_folded(const StepFolder& folder, std::shared_ptr<StepFold> first,
                           bool with_ports) {
  const StepPlace& place = folder.place();
  ReplayRun replay(place.work, folder, std::move(first), place.options);
  FoldedResult result;
  result.replay = replay.run();
  if (!with_ports) {
    return result;
  }
  const std::vector<std::vector<double>> carried = replay.carried_bits();
  std::vector<double> bits(2 * place.topology.links.size());
  for (std::size_t phase = 0; phase < carried.size(); ++phase) {
    add_port_bits(*replay.folds()[phase], carried[phase], place.topology, place.flow, bits);
  }
  const PathFinder paths(place.topology, place.flow);
  for (std::size_t port = 0; port < bits.size(); ++port) {
    PortUse& use = result.ports.emplace_back();
    use.bytes = Bytes(std::llround(bits[port] / 8));
    if (bits[port] > 0) {
      use.busy = Time::seconds(bits[port] / paths.capacity(PortId(port)));
    }
  }
  return result;
}

}  // namespace lockstep
