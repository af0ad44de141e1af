#include "analysis/whatif/replacement.h"

#include <algorithm>
#include <limits>

#include "analysis/whatif/numbers.h"
#include "analysis/whatif/peers.h"

namespace lockstep::whatif {

Replacement::Replacement(const Scene& scene, std::span<const std::size_t> workers)
    : scene_(scene),
      table_(scene.table),
      width_(scene.table.width()),
      workers_(workers),
      held_up_(workers.begin(), workers.end()) {
  for (std::size_t n = 0; n < table_.nodes.size() && slowed_then_.empty(); ++n) {
    if (is_compute(table_.nodes[n].type) &&
        table_.computes(n).data() != table_.duration(n).data()) {
      find_lateness();
    }
  }
  for (const std::vector<std::uint32_t>& lanes : scene.graph.scopes.of(Scope::kPeers)) {
    for (const std::size_t worker : workers) {
      if (std::ranges::find(lanes, worker % width_) != lanes.end()) {
        for (const std::uint32_t lane : lanes) {
          held_up_.push_back(worker / width_ * width_ + lane);
        }
      }
    }
  }
}

void Replacement::edit(std::uint32_t node, std::size_t first, std::span<double> out) const {
  if (table_.nodes[node].type == TraceOp::kOptimizerClip && !table_.alone_s.empty()) {
    change_clipping(node, first, out);
    return;
  }
  if (is_compute(table_.nodes[node].type) && !slowed_then_.empty()) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = takes_then(node, first + i);
    }
    return;
  }
  if (table_.nodes[node].type == TraceOp::kGradsReduceScatter && !table_.alone_s.empty()) {
    change_reductions(node, first, out);
    return;
  }
  const auto stage = static_cast<std::size_t>(table_.nodes[node].stage);
  if (std::ranges::none_of(workers_, [&](std::size_t each) { return each / width_ == stage; })) {
    return;
  }
  if (is_peer_comm(table_.nodes[node].type) && !table_.alone_s.empty()) {
    change_transfers(node, first, out);
  } else if (scene_.graph.group_of[node] < 0) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (is_replaced(stage, (first + i) % width_)) {
        out[i] = as_the_others(node, first + i, table_.duration(node))
                     .value_or(scene_.model.ideal_s[node]);
      }
    }
  }
}

/// By how much longer than usual each worker computes in a step is by how much the others wait.
void Replacement::find_lateness() {
  const ComputeExcess compute = compute_excess(table_);
  const std::vector<double>& now = compute.excess_s;
  std::vector<double> then = now;
  for (std::size_t first = 0; first < now.size(); first += compute.workers) {
    for (const std::size_t worker : workers_) {
      then[first + worker] = 0;
    }
    const auto most = [&](const std::vector<double>& late) {
      return *std::max_element(late.begin() + static_cast<std::ptrdiff_t>(first),
                               late.begin() + static_cast<std::ptrdiff_t>(first + compute.workers));
    };
    const double most_now = most(now), most_then = most(then);
    for (std::size_t at = first; at < first + compute.workers; ++at) {
      const double waits = most_now - now[at];
      slowed_then_.push_back(waits > 0 ? std::clamp((most_then - then[at]) / waits, 0.0, 1.0) : 1);
    }
  }
}

double Replacement::own_then(std::size_t pass, std::size_t at) const {
  const auto computes = table_.computes(pass);
  const auto stage = static_cast<std::size_t>(table_.nodes[pass].stage);
  return !is_replaced(stage, at % width_)
             ? static_cast<double>(computes[at])
             : as_the_others(pass, at, computes).value_or(scene_.model.ideal_s[pass]);
}

/// With what the pass takes turns with.
double Replacement::computes_now(std::size_t pass, std::size_t at) const {
  const std::uint32_t other = table_.turns_with.empty() ? OpTable::kAlone : table_.turns_with[pass];
  return static_cast<double>(table_.computes(pass)[at]) +
         (other == OpTable::kAlone ? 0.0 : static_cast<double>(table_.computes(other)[at]));
}

double Replacement::computes_then(std::size_t pass, std::size_t at) const {
  const std::uint32_t other = table_.turns_with.empty() ? OpTable::kAlone : table_.turns_with[pass];
  return own_then(pass, at) + (other == OpTable::kAlone ? 0.0 : own_then(other, at));
}

double Replacement::takes_then(std::size_t pass, std::size_t at) const {
  const double then = computes_then(pass, at);
  if (slowed_then_.empty()) {
    return then;
  }
  const std::size_t worker =
      static_cast<std::size_t>(table_.nodes[pass].stage) * width_ + at % width_;
  return then + slowed_then_[at / width_ * table_.ranks.size() + worker] *
                    (static_cast<double>(table_.duration(pass)[at]) - computes_now(pass, at));
}

/// `lane`: of a step.
bool Replacement::is_held_up(std::size_t lane) const {
  return std::ranges::any_of(held_up_, [&](std::size_t worker) { return worker % width_ == lane; });
}

bool Replacement::is_replaced(std::size_t stage, std::size_t lane) const {
  return std::ranges::find(workers_, stage * width_ + lane) != workers_.end();
}

/// The median of what the others of the lane's step have in a node's column.
std::optional<double> Replacement::as_the_others(std::size_t node, std::size_t lane,
                                                 std::span<const float> column) const {
  const auto stage = static_cast<std::size_t>(table_.nodes[node].stage);
  const std::size_t step = lane - lane % width_;
  std::vector<float> others;
  for (std::size_t other = 0; other < width_; ++other) {
    if (!is_replaced(stage, other)) {
      others.push_back(column[step + other]);
    }
  }
  return others.empty() ? std::nullopt : std::optional(median(std::span<float>(others)));
}

/// How long a worker of the lane would wait alone: as its peers would, who share its links; without
/// peers as the others of its stage.
std::optional<double> Replacement::waits_alone(std::size_t node, std::size_t lane) const {
  const auto stage = static_cast<std::size_t>(table_.nodes[node].stage);
  const std::size_t step = node * table_.lanes() + lane - lane % width_;
  std::vector<float> peers;
  for (const std::vector<std::uint32_t>& lanes : scene_.graph.scopes.of(Scope::kPeers)) {
    if (std::ranges::find(lanes, lane % width_) == lanes.end()) {
      continue;
    }
    for (const std::uint32_t peer : lanes) {
      if (!is_replaced(stage, peer)) {
        peers.push_back(table_.alone_s[step + peer]);
      }
    }
  }
  return peers.empty() ? as_the_others(node, lane, alone(node))
                       : std::optional(median(std::span<float>(peers)));
}

/// Where the last pass that a group of replicas waits for is that of a replaced worker, or of one
/// held up by it, more was hidden by it than will be.
void Replacement::change_reductions(std::uint32_t node, std::size_t first,
                                    std::span<double> out) const {
  const std::int32_t group = scene_.graph.group_of[node];
  if (group < 0) {
    return;
  }
  const Scope scope = scene_.graph.groups[static_cast<std::size_t>(group)].scope;
  for (const std::vector<std::uint32_t>& lanes : scene_.graph.scopes.of(scope)) {
    for (std::size_t step = 0; step < out.size(); step += width_) {
      const std::uint32_t behind = table_.is_beside_pass(node) ? node + 1 : node;
      const float* start = table_.start(behind).data() + first + step;
      const std::uint32_t last = *std::ranges::max_element(
          lanes, [&](std::uint32_t a, std::uint32_t b) { return start[a] < start[b]; });
      if (!is_held_up(last)) {
        continue;
      }
      const auto takes = waits_alone(node, first + step + last);
      for (const std::uint32_t lane : lanes) {
        out[step + lane] = takes && *takes >= 0 ? *takes : out[step + lane];
      }
    }
  }
}

/// Each computes the norm of its gradients, and then all meet: behind the one that computes
/// longest.
void Replacement::change_clipping(std::uint32_t node, std::size_t first,
                                  std::span<double> out) const {
  constexpr double kNobody = -std::numeric_limits<double>::infinity();
  const auto now_alone = [&](std::uint32_t member, std::size_t at) {
    return static_cast<double>(alone(member)[at]);
  };
  const auto alone_then = [&](std::uint32_t member, std::size_t at) {
    return is_replaced(static_cast<std::size_t>(table_.nodes[member].stage), at % width_)
               ? as_the_others(member, at, alone(member)).value_or(now_alone(member, at))
               : now_alone(member, at);
  };
  const CommGroup& group =
      scene_.graph.groups[static_cast<std::size_t>(scene_.graph.group_of[node])];
  for (const std::vector<std::uint32_t>& lanes : scene_.graph.scopes.with_lone(group.scope)) {
    for (std::size_t step = 0; step < out.size(); step += width_) {
      double now = kNobody, then = kNobody;
      for (const std::uint32_t member : group.members) {
        for (const std::uint32_t lane : lanes) {
          const std::size_t at = first + step + lane;
          if (now_alone(member, at) < 0) {
            return;
          }
          const auto begins = static_cast<double>(table_.start(member)[at]);
          now = std::max(now, begins + now_alone(member, at));
          then = std::max(then, begins + alone_then(member, at));
        }
      }
      for (const std::uint32_t lane : lanes) {
        double& takes = out[step + lane];
        takes = std::max(alone_then(node, first + step + lane), takes + then - now);
      }
    }
  }
}

/// What a group waits for its transfers when all are there is what the member waits that computes
/// longest: the others are done by then. What its computation hides of them depends on how long
/// that takes, so that another one may wait longer, or shorter; and all are through together, not
/// those first that were there before a late one. What the group waits beyond that is
/// for others in other layers; less it waits because a part was moved before a late one came, or,
/// of parameters, before the pass's message did.
void Replacement::change_transfers(std::uint32_t node, std::size_t first,
                                   std::span<double> out) const {
  const OpNode& own = table_.nodes[node];
  const std::size_t pass = table_.find(own.stage, pass_of(own.type).compute, own.seq);
  const std::int32_t group = scene_.graph.group_of[node];
  if (pass == OpTable::npos || group < 0) {
    return;
  }
  const auto stage = static_cast<std::size_t>(own.stage);
  const Scope scope = scene_.graph.groups[static_cast<std::size_t>(group)].scope;
  for (const std::vector<std::uint32_t>& lanes : scene_.graph.scopes.of(scope)) {
    if (std::ranges::none_of(lanes, [&](auto lane) { return is_replaced(stage, lane); })) {
      continue;
    }
    for (std::size_t step = 0; step < out.size(); step += width_) {
      const auto last = last_of(node, pass, lanes, first + step);
      if (!last) {
        continue;
      }
      double longest = 0;
      for (const std::uint32_t lane : lanes) {
        longest = std::max(longest, out[step + lane]);
      }
      const double rest = longest - last->waits_now;
      const double then =
          last->waits_then + (scene_.graph.gathers_in_passes ? rest : std::max(0.0, rest));
      for (const std::uint32_t lane : lanes) {
        out[step + lane] = std::max(0.0, then);
      }
    }
  }
}

/// What the group's last waits alone, in the step that begins with lane `first`; nothing where the
/// trace does not say, or it is the same one as before.
std::optional<Replacement::LastWait> Replacement::last_of(std::size_t node, std::size_t pass,
                                                          const std::vector<std::uint32_t>& lanes,
                                                          std::size_t first) const {
  struct Last {
    double begins = -std::numeric_limits<double>::infinity(), waits = 0;
    std::uint32_t lane = 0;
    void take(const Last& other) {
      if (other.begins > begins) {
        *this = other;
      }
    }
  };
  Last now, then;
  const auto stage = static_cast<std::size_t>(table_.nodes[node].stage);
  for (const std::uint32_t lane : lanes) {
    const std::size_t at = first + lane;
    auto begins = static_cast<double>(table_.start(node)[at]);
    auto waits = static_cast<double>(table_.alone_s[node * table_.lanes() + at]);
    if (waits < 0) {
      return std::nullopt;
    }
    now.take({begins, waits, lane});
    begins -= static_cast<double>(table_.duration(pass)[at]) - takes_then(pass, at);
    if (is_replaced(stage, lane)) {
      waits = waits_alone(node, at).value_or(waits);
    }
    then.take({begins, waits, lane});
  }
  if (now.lane == then.lane && !is_replaced(stage, now.lane)) {
    return std::nullopt;
  }
  return LastWait{now.waits, then.waits};
}

}  // namespace lockstep::whatif
