#include "simulator/replay/exposure.h"

#include <algorithm>
#include <vector>

namespace lockstep {
namespace {

struct Span {
  Time begin, end;
};

struct CommEnd {
  Time end, moved;
  GroupKind group;
};

/// The union of the compute operations' times, in order.
std::vector<Span> compute_spans(const Program& program, std::span<const OpTiming> timing) {
  std::vector<Span> spans;
  for (std::size_t i = 0; i < timing.size(); ++i) {
    if (program.ops()[i].comm == CommType::kNone && timing[i].end > timing[i].begin) {
      spans.push_back({timing[i].begin, timing[i].end});
    }
  }
  std::ranges::sort(spans, {}, &Span::begin);
  std::vector<Span> merged;
  for (const Span& span : spans) {
    if (!merged.empty() && span.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, span.end);
    } else {
      merged.push_back(span);
    }
  }
  return merged;
}

}  // namespace

Exposure exposure_of(const Program& program, std::span<const CommFamily> families,
                     std::span<const OpTiming> timing) {
  Exposure result;
  Time end;
  std::vector<CommEnd> comms;
  for (std::size_t i = 0; i < timing.size(); ++i) {
    end = std::max(end, timing[i].end);
    const ProgramOp& op = program.ops()[i];
    if (op.comm != CommType::kNone) {
      const GroupKind group =
          op.family < 0 ? GroupKind::kPp : families[static_cast<std::size_t>(op.family)].kind();
      const bool between_stages = group == GroupKind::kPp && op.comm == CommType::kSendRecv;
      comms.push_back({timing[i].end, between_stages ? timing[i].moved : Time(), group});
    }
  }
  std::ranges::stable_sort(comms, {}, &CommEnd::end);
  std::vector<Span> busy = compute_spans(program, timing);
  busy.push_back({end, end});
  Time mark;
  auto comm = comms.begin();
  for (const Span& span : busy) {
    for (; comm != comms.end() && comm->end <= span.begin; ++comm) {
      if (comm->moved > mark) {
        const Time until = std::min(comm->moved, comm->end);
        result.bubble += until - mark;
        mark = until;
      }
      if (comm->end > mark) {
        result.by_group[static_cast<std::size_t>(comm->group)] += comm->end - mark;
        result.exposed += comm->end - mark;
        mark = comm->end;
      }
    }
    if (span.begin > mark) {
      result.idle += span.begin - mark;
      result.exposed += span.begin - mark;
    }
    result.compute += span.end - span.begin;
    mark = std::max(mark, span.end);
  }
  return result;
}

}  // namespace lockstep
