#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace lockstep {

/// What a rank says when it comes to a meeting.
struct MeetingCall {
  std::string name;    ///< which meeting; may be used again once it has been held
  std::int64_t ranks;  ///< how many come
  std::string terms;   ///< all must say the same: "allreduce of 4096 bytes"
  std::string item;    ///< what the rank is at, for people
};

/// Who waits for whom, as rank 0 keeps it: ranks come to meetings, which are held once all have
/// come. When all ranks wait and a meeting lacks somebody nobody ever will come: the ranks wait for
/// each other.
class Meetings {
 public:
  explicit Meetings(int world) : waits_(static_cast<std::size_t>(world)), held_(waits_.size()) {}

  struct Outcome {
    std::vector<int> held;  ///< whose meeting is held now; empty: it lacks somebody
    std::string failure;    ///< why it never will be; empty: it may be
  };
  Outcome come(int rank, const MeetingCall& call);

  /// The rank does nothing until one of its meetings is held, of which it knows that `held` have
  /// been. Returns why the ranks will wait for ever, or nothing.
  std::string wait(int rank, std::int64_t held);
  /// The rank waits for all others at a barrier.
  std::string wait(int rank) { return wait(rank, held_[static_cast<std::size_t>(rank)]); }
  /// After a barrier: nobody waits any more.
  void go_on() { waits_.assign(waits_.size(), false); }

 private:
  struct Meeting {
    std::string terms;
    std::map<int, std::string> items;  ///< of who has come, by rank
  };
  std::string all_wait() const;

  std::map<std::string, Meeting> open_;
  std::vector<bool> waits_;
  std::vector<std::int64_t> held_;  ///< how many of each rank's meetings
};

}  // namespace lockstep
