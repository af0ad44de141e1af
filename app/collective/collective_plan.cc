#include "app/collective/collective_plan.h"

#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "simulator/collectives/choose.h"
#include "simulator/collectives/nccl_tuner.h"
#include "simulator/collectives/rings.h"
#include "simulator/collectives/trees.h"

namespace lockstep {
namespace {

/// Above this a ring's chunk goes in two slices, as NCCL's Simple protocol does.
constexpr std::int64_t kSlicedChunk = 128 * 1024;

/// Calls f; an Error that leaves it names the flag.
template <class F>
auto flag(const char* name, F&& f) {
  try {
    return f();
  } catch (Error& error) {
    throw std::move(error).field(name);
  }
}

NcclWishes wishes_of(const CollectiveOptions& options) {
  NcclWishes wishes;
  if (!options.nccl_version.empty()) {
    wishes.version =
        flag("--nccl-version", [&] { return parse_nccl_version(options.nccl_version); });
  }
  if (!options.protocol.empty()) {
    wishes.protocol = protocol_named(to_lower(options.protocol));
    if (!wishes.protocol) {
      throw Error("unknown protocol '" + printable(options.protocol) + "'")
          .field("--protocol")
          .expected("simple, ll or ll128");
    }
  }
  return wishes;
}

/// Channels that differ from each other: a communicator's others repeat them.
std::int32_t distinct_channels(const CollectiveAlgorithm& algorithm,
                               const CollectiveRequest& request, const GroupShape& shape) {
  return algorithm.name == "tree" ? tree_channels(request, shape) : channel_count(request, shape);
}

}  // namespace

namespace {

CollectiveRequest request_of(const CollectiveOptions& options, const PlanSetting& setting,
                             Bytes bytes) {
  CollectiveRequest request;
  request.op = setting.op;
  request.bytes = bytes;
  request.channels = options.channels;
  request.root = options.root;
  request.sizes = setting.sizes;
  request.mesh = setting.fabric.nvlink > Bandwidth() && !setting.fabric.nvswitch;
  if (options.flavour == "simai") {
    request.flavour = CollectiveFlavour::kSimai;
    request.mesh = false;
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
  std::string_view name = options.algorithm;
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
  NcclWishes wishes = wishes_of(options);
  const CollectiveAlgorithm* algorithm = named_algorithm(options, setting);
  CollectivePlan plan;
  if (request.flavour == CollectiveFlavour::kSimai) {
    algorithm = algorithm != nullptr ? algorithm : &choose_algorithm(setting.op, shape.ranks);
  } else {
    if (algorithm != nullptr) {
      wishes.algorithm = nccl_algorithm_named(algorithm->name);
    }
    if (setting.user || (algorithm != nullptr && !wishes.algorithm)) {
      // Not NCCL's: its transfers are as dear as those of send and receive.
      wishes.algorithm = NcclAlgorithm::kPointToPoint;
      wishes.protocol = wishes.protocol.value_or(Protocol::kSimple);
    }
    const NcclChoice choice = flag("--protocol", [&] {
      return nccl_choice(setting.op, bytes, shape, setting.fabric, wishes);
    });
    if (algorithm == nullptr && !setting.user) {
      algorithm = &algorithm_named(our_name(choice.algorithm, setting.op, shape.ranks), setting.op);
    }
    request.protocol = choice.protocol;
    if (options.send_latency.empty()) {
      request.hop_latency = choice.hops;
      plan.launch = choice.launch;
    }
    if (algorithm != nullptr && choice.algorithm != NcclAlgorithm::kPointToPoint) {
      plan.channels = choice.channels;
      if (request.channels == 0 && plan.channels < distinct_channels(*algorithm, request, shape)) {
        request.channels = plan.channels;
      }
    }
    const std::int64_t chunk = bytes.count() / shape.ranks / channel_count(request, shape);
    request.slices = request.protocol == Protocol::kSimple && chunk > kSlicedChunk ? 2 : 1;
  }
  if (options.channels > 0) {
    plan.channels = options.channels;
  }
  plan.protocol = name_of(request.protocol);
  plan.algorithm = setting.user ? setting.user->name() : std::string(algorithm->name);
  plan.schedule = std::make_shared<const Schedule>(
      setting.user ? mark_schedule(setting.user->build(request, shape), request, shape)
                   : build_schedule(*algorithm, request, shape));
  return plan;
}

}  // namespace lockstep
