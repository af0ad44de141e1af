#include "planner/job/mixed_cuts.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/stage_plan.h"

namespace lockstep {
namespace {

/// Walks the axes one after the other.
class Cuts {
 public:
  Cuts(const MixedProblem& problem, LeftOut& left_out)
      : problem_(problem),
        axes_(problem.axes),
        left_out_(left_out),
        layers_(layer_count(problem.base.model)),
        experts_(experts_of(problem.base.model)),
        job_(problem.base) {
    for (const GpuPool& pool : problem.pools) {
      std::int64_t server = 1;
      for (const std::vector<std::int32_t>& ranks : pool.servers) {
        server = std::max<std::int64_t>(server, std::ssize(ranks));
      }
      most_server_ = std::max(most_server_, server);
      least_server_ = least_server_ == 0 ? server : std::min(least_server_, server);
      most_pool_ = std::max(most_pool_, pool.gpus());
      gpus_ += pool.gpus();
    }
    job_.pp = job_.hsdp_replicas = 1;
    job_.schedule = "1f1b";
    job_.rank_order = "tp-cp-ep-dp-pp";
    job_.stage_layers.clear();
    job_.first_stage_layers = job_.last_stage_layers = 0;
  }

  std::vector<MixedCut> run() {
    std::vector<std::int64_t> tps;
    for (std::int64_t tp = 1; tp <= most_server_; tp *= 2) {
      tps.push_back(tp);
    }
    for (const std::int64_t tp : or_free(axes_.tp, tps)) {
      job_.tp = tp;
      for (const std::int64_t cp :
           or_free(axes_.cp, few() ? free_context(job_.seq) : std::vector<std::int64_t>{1})) {
        job_.cp = cp;
        for (const ContextComm comm : cp > 1 ? or_free(axes_.context_comm, {job_.context_comm})
                                             : std::vector<ContextComm>{job_.context_comm}) {
          job_.context_comm = comm;
          experts();
        }
      }
    }
    return std::move(cuts_);
  }

 private:
  void experts() {
    for (const std::int64_t etp : or_free(axes_.expert_tp, free_expert_tp(experts_, job_.tp))) {
      job_.expert_tp = etp;
      for (const std::int64_t ep :
           or_free(axes_.ep, experts_ > 0 ? divisors(experts_, most_pool_ / expert_tp(job_))
                                          : std::vector<std::int64_t>{1})) {
        job_.ep = ep;
        batch();
      }
    }
  }

  void batch() {
    const std::int64_t most_chunks = few() ? std::min(kMostChunks, layers_) : 1;
    std::vector<std::int64_t> chunks(static_cast<std::size_t>(most_chunks));
    std::iota(chunks.begin(), chunks.end(), 1);
    for (const std::int64_t size : or_free(axes_.micro_batch, free_microbatches(job_.seq))) {
      job_.micro_batch = size;
      for (const bool sequence :
           or_free(axes_.sequence_parallel, free_sequence_parallel(job_.tp))) {
        job_.sequence_parallel = sequence;
        for (const Recompute recompute : or_free(axes_.recompute, free_recompute(job_))) {
          job_.recompute = recompute;
          for (const std::int64_t vpp : or_free(axes_.vpp, chunks)) {
            vpp_ = vpp;
            sharded();
          }
          ++unit_;
        }
      }
    }
  }

  void sharded() {
    const std::int64_t dense = job_.tp * job_.cp;
    const std::int64_t width = experts_ > 0 ? std::lcm(dense, job_.ep * expert_tp(job_)) : dense;
    std::vector<Sharding> free = {Sharding::kNone, Sharding::kZero1};
    if (few()) {
      free.insert(free.end(), {Sharding::kZero2, Sharding::kZero3});
    }
    for (const Sharding sharding : or_free(axes_.sharding, free)) {
      job_.sharding = sharding;
      add(width, false);
      if (sharding == Sharding::kZero3 && experts_ == 0 && least_server_ > dense &&
          least_server_ % dense == 0) {
        add(least_server_, true);
      }
    }
  }

  void add(std::int64_t width, bool hybrid) {
    MixedCut cut;
    cut.job = with_model(problem_.base, job_);
    cut.job.gpus = width;
    cut.job.vpp = 1;
    cut.copies = width / (job_.tp * job_.cp);
    cut.hybrid = hybrid;
    cut.unit = unit_;
    if (allowed(cut.job)) {
      cut.job.model = {};
      cut.job.vpp = vpp_;
      cuts_.push_back(std::move(cut));
    }
  }

  bool few() const { return gpus_ <= kMostFreeGpus; }

  bool allowed(Job job) {
    try {
      for (const GpuPool& pool : problem_.pools) {
        job.gpu_type = pool.type;
        check_job(job);
      }
      return true;
    } catch (const Error& error) {
      const std::string_view text = error.what();  // its place and message, without advice
      ++left_out_[std::string(text.substr(0, text.find('\n')))];
      return false;
    }
  }

  const MixedProblem& problem_;
  const PlanAxes& axes_;
  LeftOut& left_out_;
  std::int64_t layers_, experts_;
  std::int64_t most_server_ = 1, least_server_ = 0, most_pool_ = 1, gpus_ = 0;
  Job job_;
  std::int64_t vpp_ = 1;
  std::size_t unit_ = 0;
  std::vector<MixedCut> cuts_;
};

}  // namespace

RankLayout MixedCut::layout() const {
  MixedJob mixed;
  mixed.base = job;
  mixed.copies = copies;
  return stage_layout(mixed);
}

std::vector<MixedCut> mixed_cuts(const MixedProblem& problem, LeftOut& left_out) {
  return Cuts(problem, left_out).run();
}

}  // namespace lockstep
