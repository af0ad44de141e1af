#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "simulator/replay/program.h"
#include "simulator/replay/replay.h"
#include "trace/timeline.h"

namespace lockstep {

/// Draws the operations of some ranks: a rank over its streams, with bytes, microbatch and model
/// chunk, and arrows from a message's sender to its receiver and from the drawn rank that came last
/// into a collective to the others. Operations that take no time are left out.
class StepTimeline {
 public:
  /// What an operation, and the line that it is drawn on, is called.
  using OpName = std::function<std::string(std::int32_t rank, std::int32_t op)>;

  /// PRECONDITION: `work` outlives the object.
  StepTimeline(const RankPrograms& work, OpName op_name, OpName track_name);

  void record(std::int32_t rank, std::int32_t op, const OpTiming& timing);
  /// The picture of what was recorded. O(events log events).
  Timeline take();

 private:
  /// Operations of one communicator that belong together: those of a collective, or a message's two
  /// ends.
  struct Together {
    std::int32_t family, first, second, sequence;
    auto operator<=>(const Together&) const = default;
  };
  Together together(std::int32_t rank, const ProgramOp& op) const;
  static std::int32_t number(std::map<std::string, std::int32_t>& known,
                             std::vector<std::string>& all, const std::string& text);
  void add_argument(const char* key, std::int64_t value);
  void add_flows();

  const RankPrograms& work_;
  OpName op_name_, track_name_;
  Timeline timeline_;
  std::map<std::string, std::int32_t> names_, keys_;
  struct Line {
    std::int32_t rank, stream;
    std::string name;
    auto operator<=>(const Line&) const = default;
  };
  std::map<Line, std::int32_t> lines_;  // to their number in order of appearance
  struct Member {
    Together key;
    std::int64_t event;
    bool sends;
  };
  std::vector<Member> members_;
};

}  // namespace lockstep
