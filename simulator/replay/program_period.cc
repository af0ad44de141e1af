#include "simulator/replay/program_period.h"

#include <algorithm>

#include "base/index.h"

namespace lockstep {
namespace {

class Search {
 public:
  Search(const RankPrograms& work, std::int32_t program, const Stretches* stretches)
      : program_(work.programs[at(program)]), number_(program), stretches_(stretches) {}

  /// Whether an operation is alike the one `length` later.
  bool alike(std::int32_t i, std::int32_t length) const {
    const ProgramOp &x = program_.ops()[at(i)], &y = program_.ops()[at(i + length)];
    return x.lead == y.lead && x.compute == y.compute && x.host == y.host && x.bytes == y.bytes &&
           x.comm == y.comm && x.stream == y.stream && x.family == y.family && x.peer == y.peer &&
           x.send == y.send && x.returns == y.returns &&
           program_.dependency_counts()[at(i)] == program_.dependency_counts()[at(i + length)] &&
           std::ranges::equal(program_.successors(i), program_.successors(i + length), {},
                              [&](std::int32_t next) { return next + length; }) &&
           same_stretch(i, length);
  }

 private:
  bool same_stretch(std::int32_t i, std::int32_t length) const {
    if (stretches_ == nullptr) {
      return true;
    }
    const Stretch* const a = stretches_->starting(number_, i);
    const Stretch* const b = stretches_->starting(number_, i + length);
    return (a == nullptr) == (b == nullptr) &&
           (a == nullptr || (a->content == b->content && a->last - a->first == b->last - b->first &&
                             a->first_collective - a->first == b->first_collective - b->first));
  }

  const Program& program_;
  std::int32_t number_;
  const Stretches* stretches_;
};

}  // namespace

ProgramPeriod period_of(const RankPrograms& work, std::int32_t number, const Stretches* stretches) {
  const Program& program = work.programs[at(number)];
  const Search search(work, number, stretches);
  const auto count = static_cast<std::int32_t>(program.ops().size());
  const std::int32_t middle = count / 2;
  for (std::int32_t length = 1; length <= count / 8; ++length) {
    if (!search.alike(middle, length)) {
      continue;
    }
    ProgramPeriod period{middle, middle, length, 0};
    while (period.end + length < count && search.alike(period.end, length)) {
      ++period.end;
    }
    if (period.end < middle + 2 * length) {
      continue;
    }
    while (period.begin > 0 && search.alike(period.begin - 1, length)) {
      --period.begin;
    }
    period.end += length;
    if (period.end - period.begin < std::max(count / 4, 8 * length)) {
      continue;
    }
    for (std::int32_t i = period.begin; i < std::min(period.begin + length, count); ++i) {
      for (const std::int32_t next : program.successors(i)) {
        period.reach = std::max(period.reach, next - i);
      }
    }
    return period;
  }
  return {};
}

}  // namespace lockstep
