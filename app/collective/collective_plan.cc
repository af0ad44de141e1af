#include "app/collective/collective_plan.h"

#include "base/error.h"
#include "simulator/collectives/choose.h"

namespace lockstep {

CollectivePlan plan_collective(const CollectiveOptions& options, CommType op, Bytes bytes,
                               const GroupShape& shape) {
  CollectiveRequest request;
  request.op = op;
  request.bytes = bytes;
  request.channels = options.channels;
  request.root = options.root;
  if (request.root >= shape.ranks) {
    throw Error("there is no rank " + std::to_string(request.root))
        .field("--root")
        .expected("0 to " + std::to_string(shape.ranks - 1));
  }
  request.flavour =
      options.flavour == "simai" ? CollectiveFlavour::kSimai : CollectiveFlavour::kDefault;
  const CollectiveAlgorithm* algorithm = nullptr;
  try {
    algorithm = options.algorithm.empty() ? &choose_algorithm(op, shape.ranks)
                                          : &algorithm_named(options.algorithm, op);
  } catch (Error& error) {
    throw std::move(error).field("--algorithm");
  }
  CollectivePlan plan;
  plan.algorithm = algorithm->name;
  plan.protocol = name_of(request.protocol);
  plan.channels = request.channels;
  plan.schedule = std::make_shared<const Schedule>(build_schedule(*algorithm, request, shape));
  return plan;
}

}  // namespace lockstep
