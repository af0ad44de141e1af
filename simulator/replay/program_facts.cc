#include "simulator/replay/program_facts.h"

#include <algorithm>
#include <map>

#include "base/index.h"

namespace lockstep {
namespace {

bool is_pair(const ProgramOp& op) { return op.family < 0 || op.peer >= 0; }

ProgramFacts::Kind kind_of(const ProgramOp& op) {
  return is_pair(op) ? ProgramFacts::Kind{op.family, op.comm, op.bytes, op.send, op.peer}
                     : ProgramFacts::Kind{op.family, op.comm, op.bytes, false, -1};
}

}  // namespace

bool launches(const Program& program) {
  return std::ranges::any_of(program.ops(), [](const ProgramOp& op) { return op.host > Time(); });
}

StepPhases::StepPhases(const RankPrograms& work) : of_family(work.families.size() + 1, 1) {
  const auto phase = [&](const ProgramOp& op) -> std::int32_t& {
    return of_family[op.family < 0 ? work.families.size() : at(op.family)];
  };
  for (const Program& program : work.programs) {
    const std::size_t half = program.ops().size() / 2;
    for (std::size_t op = 0; op <= half && op < program.ops().size(); ++op) {
      if (program.ops()[op].comm != CommType::kNone) {
        phase(program.ops()[op]) = 0;
      }
    }
  }
  for (const Program& program : work.programs) {
    for (const ProgramOp& op : program.ops()) {
      if (op.comm != CommType::kNone && phase(op) > 0) {
        count = 2;
      }
    }
  }
}

ProgramFacts::ProgramFacts(const RankPrograms& work) : phases(work) {
  for (const Program& program : work.programs) {
    std::map<Kind, std::int32_t> seen;
    std::vector<Kind>& of_program = kinds.emplace_back();
    std::vector<std::int32_t>& of_op = kind_of_op.emplace_back();
    of_op.reserve(program.ops().size());
    hosts.push_back(launches(program) ? 1 : 0);
    for (const ProgramOp& op : program.ops()) {
      of_op.push_back(-1);
      if (op.comm != CommType::kNone) {
        const auto next = static_cast<std::int32_t>(of_program.size());
        const auto [known, is_new] = seen.try_emplace(kind_of(op), next);
        of_op.back() = known->second;
        if (is_new) {
          of_program.push_back(known->first);
        }
      }
    }
  }
}

}  // namespace lockstep
