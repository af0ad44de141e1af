#include "simulator/collectives/choose.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace lockstep {
namespace {

bool does(const CollectiveAlgorithm& algorithm, CommType op) {
  return std::find(algorithm.ops.begin(), algorithm.ops.end(), op) != algorithm.ops.end();
}

std::string_view name_for(CommType op, std::int32_t ranks) {
  switch (op) {
    case CommType::kAllReduce:
    case CommType::kAllGather:
    case CommType::kReduceScatter:
      return "ring";
    case CommType::kAllToAll:
      return "direct";
    case CommType::kBroadcast:
    case CommType::kReduce:
      return "chain";
    case CommType::kSendRecv:
      return ranks == 2 ? "send" : "shift";
    case CommType::kBarrier:
      return "dissemination";
    case CommType::kNone:
      break;
  }
  LOCKSTEP_CHECK(false, "no communication, no algorithm");
}

}  // namespace

const CollectiveAlgorithm& choose_algorithm(CommType op, std::int32_t ranks) {
  return algorithm_named(name_for(op, ranks), op);
}

const CollectiveAlgorithm& algorithm_named(std::string_view name, CommType op) {
  std::vector<std::string_view> able;
  for (const CollectiveAlgorithm* algorithm : collective_algorithms()) {
    if (!does(*algorithm, op)) {
      continue;
    }
    if (algorithm->name == name) {
      return *algorithm;
    }
    able.push_back(algorithm->name);
  }
  throw Error("no algorithm '" + printable(name) + "' for " + std::string(name_of(op)))
      .expected(join(able, ", "));
}

std::shared_ptr<const Schedule> ScheduleCache::get(const CollectiveRequest& request,
                                                   const GroupShape& shape,
                                                   const CollectiveAlgorithm* algorithm) {
  if (algorithm == nullptr) {
    algorithm = &choose_algorithm(request.op, shape.ranks);
  }
  Key key(algorithm->name, request, shape);
  auto place = entries_.find(key);
  if (place == entries_.end()) {
    auto schedule = std::make_shared<const Schedule>(build_schedule(*algorithm, request, shape));
    make_room(schedule->memory_bytes());
    held_ += schedule->memory_bytes();
    place = entries_.emplace(std::move(key), Entry{std::move(schedule)}).first;
  }
  place->second.last_use = ++uses_;
  return place->second.schedule;
}

void ScheduleCache::make_room(std::size_t bytes) {
  while (!entries_.empty() && held_ + bytes > budget_) {
    const auto oldest = std::min_element(
        entries_.begin(), entries_.end(),
        [](const auto& a, const auto& b) { return a.second.last_use < b.second.last_use; });
    held_ -= oldest->second.schedule->memory_bytes();
    entries_.erase(oldest);
  }
}

}  // namespace lockstep
