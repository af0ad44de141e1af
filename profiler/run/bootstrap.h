#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "profiler/run/meetings.h"
#include "profiler/run/rank_place.h"

namespace lockstep {

/// All ranks of a world, joined over TCP: rank 0 listens, the others connect. It hands out the
/// id that names the world, holds barriers and meetings, gathers texts, and when one rank fails
/// tells all others why. Frames are a length, a kind and bytes; nothing secret passes and nobody is
/// authenticated, so the port belongs on a private network.
class Bootstrap {
 public:
  /// `id` makes the world's id on rank 0. `key` must be equal on all ranks: it keeps apart jobs
  /// that meet on one port.
  /// ERRORS: Error: nobody at the address within `timeout_s`, another key, a rank twice, a world of
  /// another size, a rank that failed before (tell_early_failure()).
  Bootstrap(const RankPlace& place, const std::string& key, double timeout_s);
  ~Bootstrap();
  Bootstrap(const Bootstrap&) = delete;
  Bootstrap& operator=(const Bootstrap&) = delete;

  /// Rank 0's text, on all ranks. Collective.
  std::string share(const std::string& text);
  /// All ranks' texts on rank 0, by rank; elsewhere none. Collective.
  std::vector<std::string> gather(const std::string& text);
  /// Collective. ERRORS: as failure().
  void barrier();

  /// Comes to a meeting (MeetingCall). Rank 0 fails, and so all do, when ranks come on other terms
  /// than each other or wait for each other for ever.
  void meet(const MeetingCall& call);
  /// Whether the meeting has been held; told once.
  bool has_met(const std::string& name);
  /// This rank does nothing until a meeting is held, or has been that it has not been told of.
  void wait_for_meetings();

  /// Tells all ranks that this one failed, and why. At most once; never throws.
  void fail(const std::string& reason) noexcept;
  /// Called once, from a thread of its own (or from here, if it has happened already), when another
  /// rank has failed or gone, with the reason. Must not throw. Returns once no earlier `call` is
  /// under way: after on_failure({}) what it worked on may go.
  void on_failure(const std::function<void(const std::string&)>& call);
  /// Why another rank has ended, or empty.
  std::string failure() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
