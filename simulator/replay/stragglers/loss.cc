#include <cmath>

#include "simulator/replay/straggler_plan.h"

namespace lockstep {
namespace {

constexpr StragglerField kFields[] = {
    {"nodes", "", "the two nodes that the link joins, such as 12-40"},
    {"rate", "", "probability that a packet is lost, below 1"},
    {"window", "64", "packets sent again for each loss; 1: only the lost one"}};

/// A sender that goes back n sends a window again for each loss, so of a link's bandwidth
///
///     (1 - p) / (1 - p + p W)
///
/// is left (Bertsekas, Gallager: Data Networks, section 2.4.1); RoCE NICs without selective
/// retransmission do so. With W = 1 that is 1 - p. Time-outs are left out. The packet engine loses
/// the packets.
void apply(const Straggler& spec, const StragglerContext& context, StragglerPlan& plan) {
  const auto [a, b] = spec.pair(0);
  const double p = spec.number(1, 0, 0.999), window = spec.number(2, 1, 1e6);
  const double share = (1 - p) / (1 - p + p * window);
  for (const LinkId link : links_between(spec, 0, topology_of(spec, context), a, b)) {
    plan.lose(spec, link, p, share);
  }
}

}  // namespace

extern const StragglerModel kLossStragglerModel;
const StragglerModel kLossStragglerModel{"loss", "a link that loses packets", kFields, apply};

}  // namespace lockstep
