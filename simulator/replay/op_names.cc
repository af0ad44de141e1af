#include "simulator/replay/op_names.h"

#include <string_view>
#include <variant>

#include "base/error.h"
#include "simulator/replay/program.h"
#include "workloads/workload.h"

namespace lockstep {
namespace {

void name_phase(std::vector<std::string>& names, const LayerOps::Phase& phase,
                const std::string& text) {
  for (const std::int32_t op : {phase.compute, phase.comm}) {
    if (op >= 0) {
      names[static_cast<std::size_t>(op)] = text;
    }
  }
}

}  // namespace

OpNames::OpNames(const StepPrograms& compiled) : compiled_(compiled) {
  for (const StepJob& job : compiled.jobs) {
    std::vector<std::string>& names = names_.emplace_back();
    if (const auto* table = std::get_if<LayerTable>(&job.source->work)) {
      names.assign(compiled.work.program(job.first_rank).ops().size(), "recompute");
      for (std::size_t i = 0; i < job.layers.size(); ++i) {
        const std::string& layer = table->names[static_cast<std::size_t>(table->layers[i].name)];
        name_phase(names, job.layers[i].forward, layer + " forward");
        name_phase(names, job.layers[i].input_grad, layer + " input gradient");
        name_phase(names, job.layers[i].weight_grad, layer + " weight gradient");
      }
    }
  }
}

std::string OpNames::operator()(std::int32_t rank, std::int32_t op) const {
  const auto [job, program] = of(rank);
  if (program != nullptr) {
    return program->ops[static_cast<std::size_t>(op)].name;
  }
  return names_[job][static_cast<std::size_t>(op)];
}

std::string OpNames::track(std::int32_t rank, std::int32_t op) const {
  const ProgramOp& what = compiled_.work.program(rank).ops()[static_cast<std::size_t>(op)];
  const OpProgram* program = of(rank).second;
  if (program != nullptr) {
    return program->streams[static_cast<std::size_t>(what.stream)];
  }
  if (what.comm == CommType::kNone) {
    return "compute";
  }
  return std::string(name_of(
      what.family < 0 ? GroupKind::kPp
                      : compiled_.work.families[static_cast<std::size_t>(what.family)].kind()));
}

std::pair<std::size_t, const OpProgram*> OpNames::of(std::int32_t rank) const {
  std::size_t j = 0;
  while (rank >= compiled_.jobs[j].first_rank + compiled_.jobs[j].ranks) {
    ++j;
  }
  const StepJob& job = compiled_.jobs[j];
  const auto* table = std::get_if<OpTable>(&job.source->work);
  if (table == nullptr) {
    return {j, nullptr};
  }
  const std::int32_t place = rank - job.first_rank;
  for (const OpProgram& program : table->programs) {
    for (const RankRange& range : program.ranks) {
      if (place >= range.first && place < range.end && (place - range.first) % range.stride == 0) {
        return {j, &program};
      }
    }
  }
  LOCKSTEP_CHECK(false, "a rank with operations has a program");
  return {j, nullptr};
}

}  // namespace lockstep
