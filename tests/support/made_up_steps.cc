#include "tests/support/made_up_steps.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace lockstep::testing {
namespace {

// The worker of the stage (dp_rank * tp + tp_rank), stage, type, k.
using Key = std::tuple<std::int32_t, std::int32_t, TraceOp, std::int32_t>;

class Player {
 public:
  Player(const MadeUpJob& job, const OpSeconds& seconds, std::int64_t step)
      : job_(job), seconds_(seconds), step_(step) {}

  void write(Trace& trace) {
    for (std::int32_t stage = 0; stage < job_.stages; ++stage) {
      for (std::int32_t d = 0; d < workers(); ++d) {
        write_worker(trace, d, stage);
      }
    }
  }

 private:
  std::int32_t workers() const { return job_.dp * job_.tp; }  ///< of a stage
  bool peers() const { return job_.tp > 1 || job_.ep > 1; }

  struct Pass {
    TraceOp type;
    std::int32_t k;
  };

  /// The passes of a stage in order.
  std::vector<Pass> passes(std::int32_t stage) const {
    std::vector<Pass> out;
    std::int32_t f = 0, b = 0;
    const std::int32_t warm_up = std::min(job_.microbatches, job_.stages - stage);
    while (f < warm_up) {
      out.push_back({TraceOp::kForwardCompute, f++});
    }
    while (b < job_.microbatches) {
      out.push_back({TraceOp::kBackwardCompute, b++});
      if (f < job_.microbatches) {
        out.push_back({TraceOp::kForwardCompute, f++});
      }
    }
    return out;
  }

  TraceRow row(const Key& key) const {
    const auto [d, stage, type, k] = key;
    const bool pass = is_compute(type) || is_peer_comm(type);
    const bool chunked =
        pass || type == TraceOp::kParamsAllGather || type == TraceOp::kGradsReduceScatter;
    return {.dp_rank = d / job_.tp,
            .stage = stage,
            .rank = stage * workers() + d,
            .step = step_,
            .optype = type,
            .seq_id = k,
            .mc = chunked ? 0 : -1,
            .mb_id = pass ? k : -1,
            .gmc = pass ? stage : -1};
  }

  float own(const Key& key) const { return seconds_(row(key)); }

  /// The operation of the same collective or transfer that starts last decides.
  std::vector<Key> group(const Key& key) const {
    const auto [d, stage, type, k] = key;
    switch (type) {
      case TraceOp::kForwardSend:
        return {key, {d, stage + 1, TraceOp::kForwardRecv, k}};
      case TraceOp::kForwardRecv:
        return {key, {d, stage - 1, TraceOp::kForwardSend, k}};
      case TraceOp::kBackwardSend:
        return {key, {d, stage - 1, TraceOp::kBackwardRecv, k}};
      case TraceOp::kBackwardRecv:
        return {key, {d, stage + 1, TraceOp::kBackwardSend, k}};
      case TraceOp::kEmbeddingGradsAllReduce:
        return {{d, 0, type, k}, {d, job_.stages - 1, type, k}};
      case TraceOp::kParamsAllGather:
      case TraceOp::kGradsReduceScatter:
      case TraceOp::kSeparateGradsAllReduce: {
        std::vector<Key> out;
        for (std::int32_t other = d % job_.tp; other < workers(); other += job_.tp) {
          out.push_back({other, stage, type, k});
        }
        return out;
      }
      case TraceOp::kForwardTpComm:
      case TraceOp::kBackwardTpComm:
      case TraceOp::kLayernormGradsAllReduce: {
        const std::int32_t span =
            type == TraceOp::kLayernormGradsAllReduce ? job_.tp : job_.tp * job_.ep;
        std::vector<Key> out;
        for (std::int32_t other = d / span * span; other < d / span * span + span; ++other) {
          out.push_back({other, stage, type, k});
        }
        return out;
      }
      case TraceOp::kOptimizerClip: {
        std::vector<Key> out;
        for (std::int32_t s = 0; s < job_.stages; ++s) {
          for (std::int32_t other = 0; other < workers(); ++other) {
            out.push_back({other, s, type, k});
          }
        }
        return out;
      }
      default:
        return {key};
    }
  }

  float end(const Key& key) {
    if (const auto known = ends_.find(key); known != ends_.end()) {
      return known->second;
    }
    float last = 0;
    for (const Key& member : group(key)) {
      last = std::max(last, start(member));
    }
    return ends_[key] = last + own(key);
  }

  float start(const Key& key) {
    if (const auto known = starts_.find(key); known != starts_.end()) {
      return known->second;
    }
    float at = 0;
    for (const Key& before : waits_for(key)) {
      at = std::max(at, end(before));
    }
    return starts_[key] = at;
  }

  std::vector<Key> waits_for(const Key& key) const {
    const auto [d, stage, type, k] = key;
    std::vector<Key> out;
    // What waits for a pass waits for its transfers with peers.
    const auto add = [&, dd = d, ss = stage](TraceOp other, std::int32_t n) {
      const TraceOp end = !peers() || !is_compute(other)      ? other
                          : other == TraceOp::kForwardCompute ? TraceOp::kForwardTpComm
                                                              : TraceOp::kBackwardTpComm;
      out.push_back({dd, ss, end, n});
    };
    if (is_peer_comm(type)) {
      const TraceOp pass =
          type == TraceOp::kForwardTpComm ? TraceOp::kForwardCompute : TraceOp::kBackwardCompute;
      return {{d, stage, pass, k}};
    }
    const std::vector<Pass> order = passes(stage);
    const bool first = stage == 0, last = stage + 1 == job_.stages;
    if (type == TraceOp::kForwardCompute || type == TraceOp::kBackwardCompute) {
      for (std::size_t i = 1; i < order.size(); ++i) {
        if (order[i].type == type && order[i].k == k) {
          add(order[i - 1].type, order[i - 1].k);
        }
      }
      if (type == TraceOp::kForwardCompute && !first) {
        add(TraceOp::kForwardRecv, k);
      }
      if (type == TraceOp::kForwardCompute && k == 0 && job_.dp > 1) {
        add(TraceOp::kParamsAllGather, 0);
      }
      if (type == TraceOp::kBackwardCompute && !last) {
        add(TraceOp::kBackwardRecv, k);
      }
      return out;
    }
    if (is_p2p(type)) {
      const bool forward = type == TraceOp::kForwardSend || type == TraceOp::kForwardRecv;
      const bool send = type == TraceOp::kForwardSend || type == TraceOp::kBackwardSend;
      const TraceOp pass = forward ? TraceOp::kForwardCompute : TraceOp::kBackwardCompute;
      if (k > 0) {
        add(type, k - 1);
      }
      if (send) {
        add(pass, k);
      } else if (k > 0) {
        add(pass, k - 1);
      }
      std::size_t backward = 0;
      while (order[backward].type != TraceOp::kBackwardCompute) {
        ++backward;
      }
      if (!forward && k == 0 && backward >= 2) {
        add(order[backward - 2].type, order[backward - 2].k);
      }
      return out;
    }
    const std::vector<TraceOp> tail = tail_of(stage);
    for (std::size_t i = 1; i < tail.size(); ++i) {
      if (tail[i] == type) {
        add(tail[i - 1], 0);
      }
    }
    if (type == TraceOp::kGc) {
      add(TraceOp::kBackwardCompute, job_.microbatches - 1);
    }
    if (type == TraceOp::kGradsReduceScatter) {
      add(TraceOp::kParamsAllGather, 0);
      if (job_.overlap) {
        add(TraceOp::kBackwardCompute, job_.microbatches - 1);
      }
    }
    if (type == TraceOp::kLayernormGradsAllReduce && job_.overlap && job_.dp > 1) {
      add(TraceOp::kGradsReduceScatter, 0);
    }
    return out;
  }

  /// From the collection of garbage on, in order.
  std::vector<TraceOp> tail_of(std::int32_t stage) const {
    std::vector<TraceOp> out = {TraceOp::kGc, TraceOp::kLayernormGradsAllReduce};
    if (stage == 0 || stage + 1 == job_.stages) {
      out.push_back(TraceOp::kEmbeddingGradsAllReduce);
    }
    if (job_.dp > 1) {
      out.push_back(job_.overlap ? TraceOp::kSeparateGradsAllReduce : TraceOp::kGradsReduceScatter);
    }
    out.push_back(TraceOp::kOptimizerClip);
    out.push_back(TraceOp::kOptimizer);
    return out;
  }

  void write_worker(Trace& trace, std::int32_t d, std::int32_t stage) {
    std::vector<Key> keys;
    for (const TraceOp type : tail_of(stage)) {
      keys.push_back({d, stage, type, 0});
    }
    if (job_.dp > 1) {
      keys.push_back({d, stage, TraceOp::kParamsAllGather, 0});
      if (job_.overlap) {
        keys.push_back({d, stage, TraceOp::kGradsReduceScatter, 0});
      }
    }
    for (std::int32_t k = 0; k < job_.microbatches; ++k) {
      keys.push_back({d, stage, TraceOp::kForwardCompute, k});
      keys.push_back({d, stage, TraceOp::kBackwardCompute, k});
      if (peers()) {
        keys.push_back({d, stage, TraceOp::kForwardTpComm, k});
        keys.push_back({d, stage, TraceOp::kBackwardTpComm, k});
      }
      if (stage > 0) {
        keys.push_back({d, stage, TraceOp::kForwardRecv, k});
        keys.push_back({d, stage, TraceOp::kBackwardSend, k});
      }
      if (stage + 1 < job_.stages) {
        keys.push_back({d, stage, TraceOp::kForwardSend, k});
        keys.push_back({d, stage, TraceOp::kBackwardRecv, k});
      }
    }
    for (const Key& key : keys) {
      TraceRow out = row(key);
      out.start_s = start(key);
      out.duration_s = end(key) - out.start_s;
      add_row(trace, out);
      if (peers()) {
        trace.extra.tp_rank.push_back(d % job_.tp);
        trace.extra.cp_rank.push_back(0);
        trace.extra.ep_rank.push_back(d / job_.tp % job_.ep);
      }
    }
  }

  const MadeUpJob& job_;
  const OpSeconds& seconds_;
  std::int64_t step_;
  std::map<Key, float> starts_, ends_;
};

}  // namespace

Trace play(const MadeUpJob& job, const OpSeconds& seconds) {
  Trace trace;
  for (std::int64_t step = 1; step <= job.steps; ++step) {
    Player(job, seconds, step).write(trace);
  }
  sort_rows(trace);
  return trace;
}

float uniform(const TraceRow& row) {
  switch (row.optype) {
    case TraceOp::kForwardCompute:
      return 1;
    case TraceOp::kBackwardCompute:
      return 2;
    case TraceOp::kGc:
      return 0;
    default:
      return 0.125F;
  }
}

}  // namespace lockstep::testing
