#pragma once

#include <chrono>
#include <string>

#include "base/error.h"
#include "profiler/run/rank_place.h"

namespace lockstep {

/// What a frame between the ranks of a Bootstrap is.
enum FrameKind : char {
  kHello = 'H',  // "<rank> <world> <key>", the first of a rank
  kText = 'T',
  kShare = 'S',
  kFailure = 'F',
  kGaveUp = 'G',  // before all ranks have met: to rank 0 "<rank> <world> <job>\n<reason>", from it
                  // the reason of the rank that failed
  kBye = 'B',
  kMeet = 'M',  // to rank 0: what a rank comes to; from it: what has been held
  kWait = 'W',  // to rank 0: the rank has nothing to do, and knows of so many meetings
};

Error network_error(const RankPlace& place, const std::string& what);

/// Where rank 0 waits for the others.
class Listener {
 public:
  using Clock = std::chrono::steady_clock;

  /// ERRORS: Error: no such address, or it is taken.
  explicit Listener(const RankPlace& place);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// A connection, which is the caller's to close; -1: nobody came by then.
  int accept(Clock::time_point until) const;
  /// Tells `reason` to `count` ranks that come by then, and closes their connections.
  void tell_comers(const std::string& reason, int count, Clock::time_point until) const;

 private:
  int socket_ = -1;
};

/// A connection to rank 0, which is the caller's to close; -1: it is not there by then.
/// ERRORS: Error: no such address.
int connect_to_first(const RankPlace& place, Listener::Clock::time_point until);

/// Of who connects, before it is known to be a rank: others wait for it.
inline constexpr std::uint32_t kLongestHello = 1U << 16;
inline constexpr std::chrono::seconds kHelloTime{5};
/// How long a rank that fails before all have met waits for those that it is to be told to: ranks
/// that are started together come within it.
inline constexpr std::chrono::seconds kTellingTime{2};

/// A rank that fails before it has a Bootstrap tells the others why through rank 0, or as rank 0
/// itself: they end with "rank 3 failed: …" in place of waiting for it. `job`: what the Bootstrap's
/// key begins with on all ranks of the job. Takes at most kTellingTime and `timeout_s`.
void tell_early_failure(const RankPlace& place, const std::string& job, const std::string& reason,
                        double timeout_s) noexcept;

}  // namespace lockstep
