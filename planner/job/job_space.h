#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "generator/job.h"

namespace lockstep {

/// What a plan may choose, and what its user allows: the values of each axis. An empty list is a
/// free axis, whose values job_nodes() and job_leaves() find.
struct PlanAxes {
  std::vector<std::int64_t> gpus;  ///< not empty: one or several numbers of GPUs
  std::vector<std::int64_t> tp, cp, pp, vpp, ep, expert_tp, micro_batch, hsdp_replicas;
  std::vector<Sharding> sharding;
  std::vector<Recompute> recompute;
  std::vector<bool> sequence_parallel;
  std::vector<ContextComm> context_comm;
  std::vector<std::string> rank_order, schedule;
  /// How layers are spread; not empty: exactly so.
  std::int64_t first_stage_layers = 0, last_stage_layers = 0;
  std::vector<std::int64_t> stage_layers;
  bool even_stages = false;  ///< no other split than the even one
};

/// What is left out of a space, and why: reason and how many cuts.
using LeftOut = std::map<std::string, std::int64_t>;

/// The most that a server of the cluster joins by NVLink, for which tp is free to be twice at most.
struct SpaceLimits {
  std::int64_t gpus_per_server = 8;
};

/// The cut with the model of `base`, whose vocabulary is padded for it.
Job with_model(const Job& base, Job cut);

/// Values of free axes: cp, experts' tp (0 is tp) of so many experts, sequence parallelism,
/// recomputation, and samples a microbatch.
std::vector<std::int64_t> free_context(std::int64_t seq);
std::vector<std::int64_t> free_expert_tp(std::int64_t experts, std::int64_t tp);
std::vector<bool> free_sequence_parallel(std::int64_t tp);
std::vector<Recompute> free_recompute(const Job& base);
std::vector<std::int64_t> free_microbatches(std::int64_t seq);
/// With ZeRO-3: one group over all copies, or hybrid sharding within servers.
std::vector<std::int64_t> free_replicas(const Job& job, const SpaceLimits& limits);
inline constexpr std::int64_t kMostChunks = 8;  ///< model chunks a stage

/// The most experts of a layer; 0: none.
std::int64_t experts_of(const Model& model);
/// Ascending divisors of a number up to `most`.
std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most);

/// What a plan's user pinned of an axis, else what is free.
template <class T>
std::vector<T> or_free(const std::vector<T>& pinned, std::vector<T> free) {
  return pinned.empty() ? std::move(free) : pinned;
}

/// The cuts of a job apart from what job_leaves() chooses: GPUs, tp, cp, ep, experts' tp, pp,
/// microbatch, sequence parallelism, recomputation, context communication and order of ranks, all
/// of which fit each other. Free axes:
///
///   tp     divisors of the GPUs up to twice a server's
///   cp     powers of two that leave a rank 1,024 tokens, up to 16
///   pp     divisors of the rest up to the number of layers
///   ep     of models with experts: divisors of their number and of the ranks; experts' tp 1 or tp
///   microbatch  1, 2, 4, 8, and 16 and 32 of at most 65,536 tokens
///   sequence parallelism  both with tp > 1; recomputation none or full, and selective without
///   fused attention; context communication as `base` has it
///   order  tp-cp-ep-dp-pp, and with pp and dp > 1 tp-cp-ep-pp-dp: a pipeline within reach of
///   each other or the copies of a stage
///
/// What breaks a rule of check_job() is left out. The cuts have no model: see with_model(). In
/// ascending order of the axes as listed; O(product of the axes).
std::vector<Job> job_nodes(const Job& base, const PlanAxes& axes, const SpaceLimits& limits,
                           LeftOut& left_out);

/// A node's plans: ZeRO stage 0 to 3 (with 3: one sharded model, or one a server's worth of ranks),
/// model chunks a stage up to 8, schedule (1F1B unless named), layers a stage: even, or up to three
/// a chunk fewer in the first and last than in the others; of up to 16 virtual stages also one to
/// three fewer in the last, none or one in the first, and one fewer in some of the others.
/// PRECONDITION: the node has its model.
std::vector<Job> job_leaves(const Job& node, const PlanAxes& axes, const SpaceLimits& limits,
                            LeftOut& left_out);

/// The flags, and their values, that turn a job of `base`'s model and batch into `job`: those of
/// all axes, in a fixed order. With them `lockstep simulate --model …` takes the same job.
std::vector<std::string> axis_words(const Job& job);

/// "tp 8 pp 16 vpp 2 dp 128, microbatch 1, ZeRO-1, …": the same for people.
std::string plan_text(const Job& job);

}  // namespace lockstep
