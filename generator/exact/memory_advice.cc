#include "generator/exact/memory_advice.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "generator/compute/gpu_spec.h"

namespace lockstep {
namespace {

struct Change {
  std::string text;  ///< as a flag
  std::function<void(Job&)> make;
};

std::vector<Change> changes_of(const Job& job) {
  std::vector<Change> changes;
  if (job.recompute != Recompute::kFull) {
    changes.push_back({"--recompute full", [](Job& j) { j.recompute = Recompute::kFull; }});
  }
  if (job.micro_batch > 1) {
    changes.push_back(
        {fmt::format("--mbs {}", job.micro_batch / 2), [](Job& j) { j.micro_batch /= 2; }});
  }
  if (job.sharding == Sharding::kNone && job.dp() * job.cp > 1) {
    changes.push_back({"--zero 1", [](Job& j) { j.sharding = Sharding::kZero1; }});
  }
  if (job.sharding != Sharding::kZero3 && job.dp() * job.cp > 1) {
    changes.push_back({"--zero 3", [](Job& j) { j.sharding = Sharding::kZero3; }});
  }
  if (job.tp > 1 && !job.sequence_parallel) {
    changes.push_back({"--sp", [](Job& j) { j.sequence_parallel = true; }});
  }
  changes.push_back({fmt::format("--tp {}", job.tp * 2), [](Job& j) { j.tp *= 2; }});
  changes.push_back({fmt::format("--pp {}", job.pp * 2), [](Job& j) { j.pp *= 2; }});
  changes.push_back({fmt::format("--cp {}", job.cp * 2), [](Job& j) { j.cp *= 2; }});
  if (job.ep > 1 || std::ranges::any_of(job.model.blocks, [](const LayerBlock& block) {
        return std::ranges::any_of(
            block.modules, [](const Module& module) { return module.kind == ModuleKind::kMoe; });
      })) {
    changes.push_back({fmt::format("--ep {}", job.ep * 2), [](Job& j) { j.ep *= 2; }});
  }
  return changes;
}

}  // namespace

std::string memory_advice(const Job& job, std::span<const StageMemory> stages) {
  const GpuSpec& gpu = gpu_spec(job.gpu_type);
  const Bytes peak = peak_memory(stages);
  if (peak <= gpu.memory) {
    return "";
  }
  const auto worst = std::ranges::max_element(stages, {}, &StageMemory::total) - stages.begin();
  std::vector<std::string> enough;
  std::string best;
  Bytes least = peak;
  for (const Change& change : changes_of(job)) {
    Job other = job;
    change.make(other);
    try {
      const Bytes now = peak_memory(memory_by_stage(other));
      if (now <= gpu.memory) {
        enough.push_back(change.text);
      }
      if (now < least) {
        least = now;
        best = change.text;
      }
    } catch (const Error&) {  // that change breaks a rule
    }
  }
  const std::string advice =
      !enough.empty() ? fmt::format("; {} would fit", fmt::join(enough, " or "))
      : best.empty()
          ? std::string("; no single change of the job helps: use more GPUs")
          : fmt::format("; {} alone would need {}: combine changes", best, to_text(least));
  return fmt::format("a rank of stage {} needs {}, but one {} has {}{}", worst, to_text(peak),
                     gpu.name, to_text(gpu.memory), advice);
}

}  // namespace lockstep
