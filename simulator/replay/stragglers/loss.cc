#include "simulator/replay/round_trip.h"
#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"nodes", "", "the two nodes that the link joins, such as 12-40"},
    {"rate", "", "probability that a packet is lost, below 1"},
    {"window", "round-trip",
     "packets that a loss costs; 1: only the lost one; round-trip: what leaves within a round "
     "trip, "
     "and a time-out for what is lost again"},
    {"timeout", "500us", "until a sender that hears nothing sends again"}};

/// Bytes of a full packet with its headers, as both network engines have them by default.
constexpr Bytes kWire{4096 + 62};

/// A sender that goes back n sends a window again for each loss, so of a link's bandwidth
///
///     (1 - p) / (1 - p + p W)
///
/// is left (Bertsekas, Gallager: Data Networks, section 2.4.1); RoCE NICs without selective
/// retransmission do so. With W = 1 that is 1 - p. With m the time of a packet on the link, R a
/// round trip and T the time-out
///
///     W = 1 + (R + (1 - (1 - p)^2) T) / m
///
/// since a receiver asks once: if what it says or what comes then is lost, too, time goes by. Not
/// here: the last packet of a message is followed by none that would show its loss, so that it
/// takes T as well unless another message follows on the connection; and senders that share the
/// link go on while one waits. The packet engine loses the packets.
double window_of(double p, Time round_trip, Time timeout, Time packet) {
  const double again = 1 - (1 - p) * (1 - p);
  return 1 + (round_trip / packet + again * (timeout / packet));
}

void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const auto [a, b] = spec.pair(0);
  const double p = spec.number(1, 0, 0.999);
  const bool is_given = spec.value(2) != "round-trip";
  const double given = is_given ? spec.number(2, 1, 1e6) : 0;
  const Time timeout = spec.time(3);
  const Topology& topology = topology_of(spec, context);
  for (const LinkId link : links_between(spec, 0, topology, a, b)) {
    const double window = is_given
                              ? given
                              : window_of(p, longest_round_trip(topology, link, kWire), timeout,
                                          transfer_time(kWire, topology.class_of(link).rate));
    plan.lose(spec, link, p, (1 - p) / (1 - p + p * window));
  }
}

}  // namespace

extern const StragglerModel kLossStragglerModel;
const StragglerModel kLossStragglerModel{"loss", "a link that loses packets", kFields, apply, true};

}  // namespace lockstep
