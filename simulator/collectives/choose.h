#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>

#include "simulator/collectives/algorithm.h"

namespace lockstep {

/// The algorithm for an operation on `ranks` ranks where the user names none:
///   all-reduce, all-gather, reduce-scatter   ring
///   all-to-all                               direct
///   broadcast, reduce                        chain
///   send/receive                             send for two ranks, else shift
///   barrier                                  dissemination
/// PRECONDITION: op is not kNone.
const CollectiveAlgorithm& choose_algorithm(CommType op, std::int32_t ranks);

/// The algorithm with this name. ERRORS: there is none, or it does not do `op`; both list the
/// names that would do.
const CollectiveAlgorithm& algorithm_named(std::string_view name, CommType op);

/// Builds schedules once: groups of equal shape that do the same share one. Keeps at most
/// `budget` bytes, dropping what was asked for longest ago; what is in use stays with its users.
/// Not for two threads at once.
class ScheduleCache {
 public:
  static constexpr std::size_t kDefaultBudget = std::size_t{1} << 30;

  explicit ScheduleCache(std::size_t budget = kDefaultBudget) : budget_(budget) {}

  /// With the algorithm that choose_algorithm takes, or the given one. ERRORS: as build().
  std::shared_ptr<const Schedule> get(const CollectiveRequest& request, const GroupShape& shape,
                                      const CollectiveAlgorithm* algorithm = nullptr);
  std::size_t size() const { return entries_.size(); }

 private:
  using Key = std::tuple<std::string_view, CollectiveRequest, GroupShape>;
  struct Entry {
    std::shared_ptr<const Schedule> schedule;
    std::uint64_t last_use = 0;
  };

  void make_room(std::size_t bytes);

  std::size_t budget_;
  std::size_t held_ = 0;
  std::uint64_t uses_ = 0;
  std::map<Key, Entry> entries_;
};

}  // namespace lockstep
