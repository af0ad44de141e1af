#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "simulator/network/packet_engine_options.h"
#include "simulator/replay/lone_collective.h"

namespace lockstep::testing {

/// One case of the table of errors between the flow engine and the packet engine: a collective with
/// the network to itself.
struct AccuracyCase {
  /// How far a fluid can be trusted with it.
  enum class Ways : std::uint8_t {
    kFree,       ///< hashed, but what meets on a link between switches fits on it
    kSprayed,    ///< evenly over all shortest ways
    kColliding,  ///< hashed, and more may meet on a link between switches than fits
  };
  std::string name;  ///< one line that says everything
  std::string_view algorithm;
  std::shared_ptr<const Topology> topology;
  LoneCollective collective;
  RouteOptions routes;
  Ways ways = Ways::kFree;
  std::uint64_t seed = 1;
};

/// Draws algorithm, size (64 KiB to 32 MiB, log-uniform), fabric (one server, rails, leaf and spine
/// with an oversubscription of 1, 2 or 4, fat tree, one switch), ranks, their places (which is the
/// draw of ECMP) and spraying.
AccuracyCase draw_case(Rng& rng);

/// Its time on the flow engine, by sharing alone or with the transport that the packet engine has
/// with these options, and on the packet engine.
Time time_by_flow(const AccuracyCase& accuracy_case, const PacketOptions* transport);
Time time_by_packets(const AccuracyCase& accuracy_case, PacketOptions packet);

}  // namespace lockstep::testing
