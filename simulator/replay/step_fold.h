#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "simulator/network/flow/flow_options.h"
#include "simulator/replay/communicator_shape.h"
#include "simulator/replay/flow_graph.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/step_layout.h"

namespace lockstep {

struct FoldedCommunicators;
struct KeptStep;
struct Partition;
class SharedStep;

/// A step folded by symmetry: ranks that run the same program at equivalent places of the fabric
/// form a class, one rank of which is simulated for all; the connections of their collectives are
/// folded with them (symmetry.h has the conditions, which are proved for every step).
struct StepFold {
  std::vector<std::int32_t> class_of_rank;
  std::vector<std::int32_t> representative;  ///< of each class: its first rank

  /// The folded connections; places are classes.
  FlowGraph graph;
  /// How many slots of a kind leave or reach one rank of their class.
  struct Ends {
    std::int32_t leave = 0, reach = 0;
  };
  std::vector<Ends> ends;  ///< per slot

  /// One kind of collective on one class of communicators.
  struct Communicator {
    std::vector<std::int32_t> slots;
    std::vector<std::int32_t> classes;  ///< of its members, ascending
    std::vector<std::int64_t> shares;   ///< of each: transfers that leave or reach one rank
  };
  std::vector<Communicator> communicators;
  static constexpr std::int32_t kAlone = StepLayout::kAlone, kLater = StepLayout::kLater;
  /// Per class and kind of its program's communications: the communicator, kAlone or kLater.
  std::vector<std::vector<std::int32_t>> communicator_of;
  std::shared_ptr<const ProgramFacts> facts;  ///< of the programs

  /// All connections before folding, those of earlier phases first: where they go and the slot that
  /// each is; and of each slot its first one.
  std::shared_ptr<const Ways> ways;
  std::vector<std::int32_t> slot_of, first_of_slot;
  /// Constraints of the ports that may change.
  std::map<std::int32_t, std::int32_t> constraint_of_port;

  /// The communicators' shapes, until a SessionStore takes them.
  mutable std::vector<ShapedCommunicator> shaped;
  /// What a SessionStore knows of the communicators, as long as its token is there.
  mutable std::shared_ptr<const FoldedCommunicators> known;
  mutable std::weak_ptr<const int> known_in;
};

/// Folds a step in phases. What breaks the symmetry often comes late: gradients are reduced over
/// rings that run through the whole fabric, and the norm over everything, when all but the last
/// microbatch are done; a slow GPU is felt by other replicas only then. So the first phase folds by
/// the communications that begin in the first half of the programs, as if there were no others; the
/// second one, which begins when a rank gets to another, by all. Classes of the second are parts of
/// those of the first.
class StepFolder {
 public:
  /// `rank_colour` tells ranks apart that a program does not (one that is slower); empty: none.
  /// With `kept`, folds are taken from there and left there; with `shared`, layouts are. The
  /// arguments and what `place` names must outlive this.
  explicit StepFolder(const StepPlace& place, std::vector<std::uint64_t> rank_colour = {},
                      KeptStep* kept = nullptr, SharedStep* shared = nullptr);

  std::int32_t phases() const { return place_.facts->phases.count; }
  /// Nothing where the step cannot be laid out (step_layout.h). Where folding does not pay, with
  /// more classes than half of the connections, every rank is a class of its own, and of the
  /// connections only parallel ones are alike (parallel_slots.h): what FoldedRuns
  /// and stretches tell again is told for ranks that differ, too. O(lay_out() + refinement); 150 B
  /// a connection. ERRORS: no route.
  std::shared_ptr<StepFold> fold(std::int32_t phase) const;
  /// Begins to fold the second phase on another thread, for fold(1) to wait for; until then nobody
  /// but fold(0) may use the schedules. Nothing where nothing is kept.
  void fold_ahead();
  KeptStep* kept() const { return kept_; }
  const StepPlace& place() const { return place_; }

 private:
  std::shared_ptr<StepFold> make(std::int32_t phase, std::optional<Partition>* known) const;

  const StepPlace place_;
  std::vector<std::uint64_t> rank_colour_;
  KeptStep* kept_;
  SharedStep* shared_;
  std::vector<std::int32_t> pattern_;  // with kept_: the colours, numbered as they appear
  mutable std::future<std::shared_ptr<StepFold>> ahead_;
};

struct FoldedResult {
  ReplayResult replay;
  std::vector<PortUse> ports;
};

/// replay() of a folded step on FoldedRuns (folded_runs.h): the same result, at the cost of its
/// classes. `first` is the folder's first phase. `with_ports`: what the ports carried, too.
FoldedResult replay_folded(const StepFolder& folder, std::shared_ptr<StepFold> first,
                           bool with_ports);

}  // namespace lockstep
