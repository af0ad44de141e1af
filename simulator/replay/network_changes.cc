#include "simulator/replay/network_changes.h"

#include <cstddef>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {

bool announce(NetworkEngine& network, std::span<const NetworkChange> changes) {
  std::size_t planned = 0;
  for (const NetworkChange& change : changes) {
    if (network.plan_change(change.when, change.port, change.share_beside_loss, change.loss)) {
      ++planned;
    } else if (planned > 0) {
      throw Error(fmt::format("this engine takes on some of the links' changes but not that of "
                              "link {} to {:g} of its bandwidth",
                              change.port.value / 2, change.share_beside_loss))
          .expected("a share above 1e-6, or the model 'down' for a link that carries nothing")
          .hint("--engine flow takes any share");
    } else {
      return false;
    }
  }
  return planned > 0;
}

}  // namespace lockstep
