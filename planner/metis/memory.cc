#include "planner/metis/memory.h"

#include <algorithm>
#include <utility>

namespace lockstep::metis {
namespace {

/// What Metis multiplies the profiles' memory by, and adds to it.
constexpr double kFactor = 5.0, kBaseMb = 0.001;

/// Types of the first GPUs of the dp groups that Metis shares a mixed stage's samples out to when
/// it estimates memory: of all servers, each with as many GPUs as the hostfile's first.
std::vector<std::string> leaders_of_all(const Problem& problem, const std::vector<Rank>& ranks,
                                        int dp) {
  std::vector<std::string> types;
  int last = -1;
  for (const Rank& rank : ranks) {
    if (rank.node != last) {
      last = rank.node;
      types.insert(types.end(), static_cast<std::size_t>(problem.nodes.front().gpus),
                   problem.nodes[static_cast<std::size_t>(last)].type);
    }
  }
  std::vector<std::string> leaders;
  const std::size_t size = types.size() / static_cast<std::size_t>(dp);
  for (int d = 0; d < dp; ++d) {
    leaders.push_back(types[static_cast<std::size_t>(d) * size]);
  }
  return leaders;
}

}  // namespace

StageMemory::StageMemory(const Problem& problem, const std::vector<Rank>& ranks, int first,
                         int gpus, Strategy strategy, std::int64_t batches) {
  const bool strict = problem.flavour == Flavour::kStrict;
  for (int r = first; r < first + gpus; ++r) {
    const Node& node =
        problem.nodes[static_cast<std::size_t>(ranks[static_cast<std::size_t>(r)].node)];
    room_ += (strict ? node.type_memory : node.memory) * 1024;
  }
  std::vector<std::string> leaders = leaders_of(problem, ranks, first, strategy);
  const std::string& type =
      strict ? problem.nodes[static_cast<std::size_t>(ranks.front().node)].type : leaders[0];
  if (alike(problem, ranks, first, gpus, strict)) {
    if (const Profile* profile = problem.profiles.find(
            type, strategy.tp, problem.global_batch / strategy.dp / batches)) {
      groups_ = {profile->layer_mb};
    }
    return;
  }
  if (strict) {
    leaders = leaders_of_all(problem, ranks, strategy.dp);
  }
  const std::vector<std::int64_t> shares =
      balance(problem, leaders, strategy.tp, problem.global_batch / batches, nullptr);
  std::vector<double> sums(static_cast<std::size_t>(problem.layers), 0.0);
  for (std::size_t d = 0; d < shares.size(); ++d) {
    if (!add_pieces(problem, strict ? type : leaders[d], strategy.tp, shares[d], &Profile::layer_mb,
                    sums, nullptr)) {
      groups_.clear();
      return;
    }
    if (!strict || d + 1 == shares.size()) {
      groups_.push_back(std::exchange(sums, std::vector<double>(sums.size(), 0.0)));
    }
  }
}

double StageMemory::demand_mb(std::int64_t begin, std::int64_t end) const {
  double most = 0;
  for (const std::vector<double>& group : groups_) {
    double sum = 0;
    for (std::int64_t layer = begin; layer < end; ++layer) {
      sum += group[static_cast<std::size_t>(layer)];
    }
    most = std::max(most, sum);
  }
  return kBaseMb + kFactor * most;
}

}  // namespace lockstep::metis
