#include "simulator/replay/op_table_program.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

/// The group kind of a family: its name up to the first '.' ("dp.shard" is of kind dp).
GroupKind kind_of(const GroupFamily& family) {
  return group_kind_named(std::string_view(family.name).substr(0, family.name.find('.')))
      .value_or(GroupKind::kWorld);
}

/// Experts' all-to-alls go out to the experts and back (generator/exact/moe_pass.cc names them).
bool returns(std::string_view name) {
  return name.ends_with(".combine") || name.ends_with(".dispatch gradient");
}

Program compile(const OpTable& table, const OpProgram& source) {
  Program program(std::vector<StreamOrder>(source.streams.size(), StreamOrder::kProgram));
  for (const Op& from : source.ops) {
    ProgramOp op;
    op.compute = from.compute;
    op.host = from.host;
    op.bytes = from.bytes;
    op.comm = from.comm;
    op.stream = from.stream;
    op.family = from.group;
    op.peer = from.peer;
    if (from.comm == CommType::kSendRecv && from.group >= 0) {
      const GroupFamily& family = table.groups[static_cast<std::size_t>(from.group)];
      const auto size = static_cast<std::int32_t>(family.members.front().size());
      op.peer = (from.peer % size + size) % size;
    }
    op.send = from.send;
    op.returns = from.comm == CommType::kAllToAll && returns(from.name);
    op.type = from.type;
    op.chunk = static_cast<std::int16_t>(std::min(from.chunk, std::int32_t{INT16_MAX}));
    op.microbatch = from.microbatch;
    program.add(op, from.after);
  }
  program.finish();
  return program;
}

}  // namespace

RankPrograms op_table_program(const OpTable& table, std::int64_t gpus) {
  RankPrograms work;
  Program idle({});
  idle.finish();
  work.programs.push_back(std::move(idle));
  work.program_of_rank.assign(static_cast<std::size_t>(gpus), 0);
  for (const OpProgram& source : table.programs) {
    const auto index = static_cast<std::int32_t>(work.programs.size());
    work.programs.push_back(compile(table, source));
    for (const RankRange& range : source.ranks) {
      for (std::int32_t rank = range.first; rank < range.end; rank += range.stride) {
        work.program_of_rank[static_cast<std::size_t>(rank)] = index;
      }
    }
  }
  for (const GroupFamily& family : table.groups) {
    work.families.emplace_back(kind_of(family), family.members, static_cast<std::int32_t>(gpus),
                               family.name.find('.') == std::string::npos);
  }
  return work;
}

bool take_computations(const OpTable& table, RankPrograms& work) {
  for (std::size_t p = 0; p < table.programs.size(); ++p) {
    if (p + 1 >= work.programs.size() ||
        work.programs[p + 1].ops().size() != table.programs[p].ops.size()) {
      return false;
    }
    for (std::size_t i = 0; i < table.programs[p].ops.size(); ++i) {
      work.programs[p + 1].set_compute(static_cast<std::int32_t>(i),
                                       table.programs[p].ops[i].compute);
    }
  }
  return work.programs.size() == table.programs.size() + 1;
}

RankPrograms side_by_side(std::vector<RankPrograms> jobs) {
  if (jobs.size() == 1) {
    return std::move(jobs.front());
  }
  std::int32_t ranks = 0;
  for (const RankPrograms& job : jobs) {
    ranks += job.ranks();
  }
  RankPrograms all;
  std::int32_t first_rank = 0;
  for (RankPrograms& job : jobs) {
    const auto first_program = static_cast<std::int32_t>(all.programs.size());
    const auto first_family = static_cast<std::int32_t>(all.families.size());
    for (const std::int32_t program : job.program_of_rank) {
      all.program_of_rank.push_back(first_program + program);
    }
    for (const CommFamily& family : job.families) {
      std::vector<std::vector<std::int32_t>> members(family.groups().begin(),
                                                     family.groups().end());
      for (std::vector<std::int32_t>& group : members) {
        for (std::int32_t& rank : group) {
          rank += first_rank;
        }
      }
      all.families.emplace_back(family.kind(), std::move(members), ranks, family.plain());
    }
    for (Program& program : job.programs) {
      program.shift(first_family, first_rank);
      all.programs.push_back(std::move(program));
    }
    first_rank += job.ranks();
  }
  return all;
}

}  // namespace lockstep
