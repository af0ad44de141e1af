#include "analysis/whatif/dependency_graph.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "analysis/whatif/in_rank_edges.h"
#include "analysis/whatif/no_ops.h"
#include "analysis/whatif/stage_ops.h"
#include "base/error.h"

namespace lockstep::whatif {
namespace {

class GroupMaker {
 public:
  GroupMaker(const OpTable& table, const std::string& file, DependencyGraph& graph)
      : table_(table), file_(file), graph_(graph) {
    graph.group_of.assign(table.nodes.size(), -1);
  }

  void pairs(const std::vector<StageOps>& stages, const std::vector<TransferMatch>& matches) {
    if (table_.both_ways) {
      pair_both_ways(matches);
      return;
    }
    const std::size_t count = stages.size();
    for (std::size_t s = 0; s < count; ++s) {
      pair(stages[s], TraceOp::kForwardSend, stages[(s + 1) % count], TraceOp::kForwardRecv);
      pair(stages[s], TraceOp::kBackwardSend, stages[(s + count - 1) % count],
           TraceOp::kBackwardRecv);
    }
  }

  void rest(const JobMeta& meta) {
    if (is_sharded_in_replicas(meta)) {
      find_last_backward();
    }
    const bool apart = meta.clips_in_replicas > 0;
    CommGroup embedding, clip{.members = {}, .scope = apart ? Scope::kTensor : Scope::kStep};
    std::map<std::int32_t, CommGroup> copies;  // by the first of two stages with the same layers
    for (std::uint32_t n = 0; n < table_.nodes.size(); ++n) {
      const TraceOp type = table_.nodes[n].type;
      if (is_p2p(type) && graph_.no_ops[n] != NoOp::kNone) {
        add({{n}, Scope::kLane});
      } else if (table_.both_ways && type == TraceOp::kGradsReduceScatter &&
                 table_.nodes[n].chunk < 0) {
        const std::int32_t stage = table_.nodes[n].stage;
        copies[std::min(stage, table_.stages - 1 - stage)].members.push_back(n);
      } else if (type == TraceOp::kParamsAllGather && is_sharded_in_replicas(meta)) {
        add({{n}, Scope::kPeers});
      } else if (type == TraceOp::kParamsAllGather || type == TraceOp::kGradsReduceScatter ||
                 (type == TraceOp::kSeparateGradsAllReduce && !apart)) {
        add({{n}, Scope::kReplicas});
      } else if (is_peer_comm(type)) {
        add({{n}, reduces_over_replicas(n) ? Scope::kStep : Scope::kPeers});
      } else if (type == TraceOp::kLayernormGradsAllReduce && graph_.reduces_layernorm) {
        add({{n}, Scope::kTensor});
      } else if (type == TraceOp::kEmbeddingGradsAllReduce) {
        embedding.members.push_back(n);
      } else if (type == TraceOp::kOptimizerClip) {
        clip.members.push_back(n);
      }
    }
    add(std::move(embedding));
    add(std::move(clip));
    for (auto& [stage, group] : copies) {
      add(std::move(group));
    }
  }

 private:
  bool is_sharded_in_replicas(const JobMeta& meta) const {
    return meta.gathers_in_passes > 0 && meta.gathers_in_passes < table_.dp;
  }

  /// Of parameters that are sharded among some dp_ranks gradients are reduced among all of them
  /// (HSDP) beside each chunk's last backward pass, whose gathers wait for that; not where it has
  /// none behind the first reduction, so that it ends before it has begun in another replica.
  void find_last_backward() {
    for (std::uint32_t n = 0; n < table_.nodes.size(); ++n) {
      const OpNode& node = table_.nodes[n];
      if (node.type == TraceOp::kBackwardTpComm) {
        const auto [last, is_first] = last_backward_.try_emplace({node.stage, node.chunk}, n);
        if (!is_first && table_.nodes[last->second].seq < node.seq) {
          last->second = n;
        }
      }
    }
  }
  bool reduces_over_replicas(std::uint32_t n) const {
    const auto last = last_backward_.find({table_.nodes[n].stage, table_.nodes[n].chunk});
    return last != last_backward_.end() && last->second == n && all_meet(n);
  }
  /// Whether in each step no worker was through with a pass before another began it.
  bool all_meet(std::uint32_t transfers) const {
    const OpNode& node = table_.nodes[transfers];
    const auto pass = table_.find(node.stage, pass_of(node.type).compute, node.seq);
    const std::size_t width = table_.width();
    for (std::size_t first = 0; first < table_.lanes(); first += width) {
      const auto begins = table_.start(pass).subspan(first, width);
      const auto starts = table_.start(transfers).subspan(first, width);
      const auto takes = table_.duration(transfers).subspan(first, width);
      const float last = *std::ranges::max_element(begins);
      for (std::size_t lane = 0; lane < width; ++lane) {
        if (starts[lane] + takes[lane] < last) {
          return false;
        }
      }
    }
    return true;
  }

  void pair(const StageOps& from, TraceOp send, const StageOps& to, TraceOp recv) {
    const NodeList sends = real(from.of(send)), recvs = real(to.of(recv));
    if (sends.size() != recvs.size()) {
      throw Error(fmt::format("{} operations {} of stage {} meet {} operations {} of stage {}",
                              sends.size(), to_text(send), from.stage, recvs.size(), to_text(recv),
                              to.stage))
          .at(file_)
          .expected("a receive for every send");
    }
    for (std::size_t i = 0; i < sends.size(); ++i) {
      add({{sends[i], recvs[i]}, Scope::kLane});
    }
  }

  /// Each message by whose it is: its direction, chunk, microbatch, and from where to where.
  void pair_both_ways(const std::vector<TransferMatch>& matches) {
    using Message = std::tuple<bool, std::int32_t, std::int32_t, std::int32_t>;
    std::map<Message, std::uint32_t> sends;
    const auto message_of = [&](const TransferMatch& match) {
      const TraceOp type = table_.nodes[match.transfer].type;
      const OpNode& pass = table_.nodes[match.compute];
      const std::int32_t to = type == TraceOp::kForwardSend    ? pass.global_chunk + 1
                              : type == TraceOp::kBackwardSend ? pass.global_chunk - 1
                                                               : pass.global_chunk;
      return Message(is_forward(type), pass.chunk, pass.microbatch, to);
    };
    const auto is_send = [&](const TransferMatch& match) {
      const TraceOp type = table_.nodes[match.transfer].type;
      return type == TraceOp::kForwardSend || type == TraceOp::kBackwardSend;
    };
    std::size_t paired = 0;
    for (const TransferMatch& match : matches) {
      if (graph_.no_ops[match.transfer] == NoOp::kNone && is_send(match)) {
        sends.emplace(message_of(match), match.transfer);
      }
    }
    for (const TransferMatch& match : matches) {
      if (graph_.no_ops[match.transfer] != NoOp::kNone || is_send(match)) {
        continue;
      }
      const auto send = sends.find(message_of(match));
      if (send == sends.end()) {
        throw Error(fmt::format("nothing is sent for {}", to_text(table_.nodes[match.transfer])))
            .at(file_)
            .expected("a receive for every send");
      }
      add({{send->second, match.transfer}, Scope::kLane});
      ++paired;
    }
    if (paired != sends.size()) {
      throw Error(fmt::format("{} sends meet {} receives", sends.size(), paired))
          .at(file_)
          .expected("a receive for every send");
    }
  }

  static bool is_forward(TraceOp type) {
    return type == TraceOp::kForwardSend || type == TraceOp::kForwardRecv;
  }

  NodeList real(const NodeList& all) const {
    NodeList out;
    std::copy_if(all.begin(), all.end(), std::back_inserter(out),
                 [this](std::uint32_t n) { return graph_.no_ops[n] == NoOp::kNone; });
    return out;
  }

  void add(CommGroup group) {
    for (const std::uint32_t n : group.members) {
      graph_.group_of[n] = static_cast<std::int32_t>(graph_.groups.size());
    }
    if (!group.members.empty()) {
      graph_.groups.push_back(std::move(group));
    }
  }

  const OpTable& table_;
  const std::string& file_;
  DependencyGraph& graph_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::uint32_t> last_backward_;  // stage, chunk
};

bool has(const OpTable& table, TraceOp type) {
  return std::any_of(table.nodes.begin(), table.nodes.end(),
                     [type](const OpNode& n) { return n.type == type; });
}

void check_types(const OpTable& table, bool data_parallel, const std::string& file) {
  if (data_parallel) {
    return;
  }
  for (const TraceOp type : {TraceOp::kParamsAllGather, TraceOp::kGradsReduceScatter,
                             TraceOp::kSeparateGradsAllReduce}) {
    if (has(table, type)) {
      throw Error(fmt::format("the trace has {}, but only one replica", to_text(type)))
          .at(file)
          .field("optype")
          .hint("dp_size * dsp_size of the meta file is 1");
    }
  }
}

}  // namespace

std::vector<StageOps> make_stage_ops(const OpTable& table) {
  NodeList order(table.nodes.size());
  for (std::uint32_t n = 0; n < order.size(); ++n) {
    order[n] = n;
  }
  const auto start_key = [&table](std::uint32_t n) {
    const OpNode& node = table.nodes[n];
    return std::tuple(node.start_s, node.seq, node.type);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return start_key(a) < start_key(b); });
  std::vector<StageOps> stages(static_cast<std::size_t>(table.stages));
  for (std::size_t s = 0; s < stages.size(); ++s) {
    stages[s].stage = static_cast<std::int32_t>(s);
  }
  for (const std::uint32_t n : order) {
    const OpNode& node = table.nodes[n];
    StageOps& ops = stages[static_cast<std::size_t>(node.stage)];
    ops.by_type[index(node.type)].push_back(n);
    if (is_compute(node.type)) {
      ops.compute.push_back(n);
    } else if (node.type == TraceOp::kParamsAllGather ||
               node.type == TraceOp::kGradsReduceScatter) {
      ops.sync.push_back(n);
    }
  }
  return stages;
}

DependencyGraph make_dependency_graph(const OpTable& table, const JobMeta& meta,
                                      const std::string& file, Warnings* warnings) {
  DependencyGraph graph;
  graph.scopes = lane_scopes(table, file, meta.gathers_in_passes);
  graph.reduces_layernorm = table.tp > 1;
  graph.gathers_in_passes = meta.gathers_in_passes > 0;
  // Of one replica, too, the two stages that hold the same layers add up their gradients.
  const bool copies = table.both_ways && has(table, TraceOp::kGradsReduceScatter);
  graph.data_parallel = table.dp > 1 || table.cp > 1 || meta.dsp_size > 1 || copies;
  graph.overlap = graph.data_parallel && has(table, TraceOp::kSeparateGradsAllReduce);
  check_types(table, graph.data_parallel, file);
  const auto chunkless = std::count_if(
      table.nodes.begin(), table.nodes.end(),
      [](const OpNode& node) { return is_compute(node.type) && node.global_chunk < 0; });
  if (chunkless > 0 && table.stages > 1 && warnings != nullptr) {
    warnings->add(
        fmt::format("{}: {} passes of the first step have no gmc; taken as mc * {} + stage", file,
                    chunkless, table.stages));
  }
  const std::vector<StageOps> stages = make_stage_ops(table);
  TransferMatches matched = match_transfers(table, stages, file);
  graph.no_ops = std::move(matched.no_ops);

  const Gathers gathers = meta.gathers_in_passes == 0         ? Gathers::kBefore
                          : meta.gathers_in_passes < table.dp ? Gathers::kInPassesOfReplicas
                                                              : Gathers::kInPasses;
  std::vector<Edge> edges;
  for (const StageOps& ops : stages) {
    const std::vector<Edge> own = in_rank_edges(table, ops, matched.matches, graph.data_parallel,
                                                graph.overlap, gathers, file, warnings);
    edges.insert(edges.end(), own.begin(), own.end());
    for (const std::uint32_t scatter : ops.of(TraceOp::kGradsReduceScatter)) {
      if (meta.gradients_behind_gc > 0 && graph.overlap) {
        edges.push_back({scatter, ops.of(TraceOp::kGc).front()});
      }
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  graph.predecessors.resize(table.nodes.size());
  for (const Edge& edge : edges) {
    graph.predecessors[edge.after].push_back(edge.before);
  }

  GroupMaker maker(table, file, graph);
  maker.pairs(stages, matched.matches);
  maker.rest(meta);
  return graph;
}

}  // namespace lockstep::whatif
