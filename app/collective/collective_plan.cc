#include "app/collective/collective_plan.h"

#include <optional>
#include <utility>

#include "app/real_rates.h"
#include "base/error.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/tune.h"

namespace lockstep {
namespace {

/// Calls f; an Error that leaves it names the flag.
template <class F>
auto flag(const char* name, F&& f) {
  try {
    return f();
  } catch (Error& error) {
    throw std::move(error).field(name);
  }
}

CollectiveRequest request_of(const CollectiveOptions& options, const PlanSetting& setting,
                             Bytes bytes) {
  CollectiveRequest request;
  request.op = setting.op;
  request.bytes = bytes;
  request.channels = options.channels;
  request.root = options.root;
  request.sizes = setting.sizes;
  if (options.flavour == "simai") {
    request.flavour = CollectiveFlavour::kSimai;
    request.relays = options.pxn;
  }
  if (request.root >= setting.shape.ranks) {
    throw Error("there is no rank " + std::to_string(request.root))
        .field("--root")
        .expected("0 to " + std::to_string(setting.shape.ranks - 1));
  }
  return request;
}

/// The algorithm that the flags name, if they name one.
const CollectiveAlgorithm* named_algorithm(const CollectiveOptions& options,
                                           const PlanSetting& setting) {
  std::string name = algorithm_name(options, setting.op);
  if (name.empty() && !setting.sizes.empty() && setting.op != CommType::kAllToAll) {
    name = "ring";  // the one that can
  }
  if (name.empty() || setting.user) {
    return nullptr;
  }
  return flag("--algorithm", [&] { return &algorithm_named(name, setting.op); });
}

}  // namespace

CollectivePlan plan_collective(const CollectiveOptions& options, const PlanSetting& setting,
                               Bytes bytes) {
  const GroupShape& shape = setting.shape;
  CollectiveRequest request = request_of(options, setting, bytes);
  const NcclWishes wishes = nccl_wishes(options);
  const CollectiveAlgorithm* algorithm = named_algorithm(options, setting);
  CollectivePlan plan;
  if (request.flavour == CollectiveFlavour::kSimai) {
    algorithm = algorithm != nullptr ? algorithm : &choose_algorithm(setting.op, shape.ranks);
  } else {
    TunedRequest tuned = flag("--protocol", [&] {
      return tune(request, shape, setting.fabric, wishes, algorithm, setting.user.has_value());
    });
    use_all_ports(tuned, shape, setting.ports);
    algorithm = tuned.algorithm;
    request = std::move(tuned.request);
    plan.channels = options.channels > 0 ? options.channels : tuned.channels;
    if (!options.send_latency.empty()) {
      request.hop_latency.reset();
    } else if (setting.rates) {
      take_real_latencies(*setting.rates, request);
    }
  }
  plan.protocol = name_of(request.protocol);
  plan.algorithm = setting.user ? setting.user->name() : std::string(algorithm->name);
  if (!setting.user && algorithm->build_leaving != nullptr && request.sizes.empty()) {
    plan.leaving = [algorithm, request, &shape](std::int32_t rank) {
      return mark_schedule(algorithm->build_leaving(request, shape, rank), request, shape);
    };
  }
  plan.schedule = [algorithm, request = std::move(request), &setting] {
    return std::make_shared<const Schedule>(
        setting.user
            ? mark_schedule(setting.user->build(request, setting.shape), request, setting.shape)
            : build_schedule(*algorithm, request, setting.shape));
  };
  return plan;
}

}  // namespace lockstep
