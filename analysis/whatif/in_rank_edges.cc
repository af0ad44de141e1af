#include "analysis/whatif/in_rank_edges.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep::whatif {
namespace {

class Drawer {
 public:
  Drawer(const OpTable& table, const StageOps& ops, const std::string& file)
      : table_(table), ops_(ops), file_(file) {}

  void stream(const NodeList& nodes) {
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      add(nodes[i], nodes[i - 1]);
    }
  }

  /// Two passes that run side by side take turns, so that each waits for the other's message, too.
  void partners(const NodeList& nodes, const std::vector<TransferMatch>& matches) {
    std::map<std::uint32_t, std::uint32_t> received;  // by pass
    for (const auto& [transfer, compute] : matches) {
      const TraceOp type = table_.nodes[transfer].type;
      if (type == TraceOp::kForwardRecv || type == TraceOp::kBackwardRecv) {
        received[compute] = transfer;
      }
    }
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      if (ended_before(table_, nodes[i - 1], nodes[i])) {
        continue;
      }
      for (const auto& [pass, other] :
           {std::pair(nodes[i - 1], nodes[i]), std::pair(nodes[i], nodes[i - 1])}) {
        if (const auto message = received.find(other); message != received.end()) {
          add(pass, message->second);
        }
      }
    }
  }

  /// Passes of which two may run side by side: each waits for those that had ended before it.
  void side_by_side(const NodeList& nodes) {
    for (std::size_t i = 1; i < nodes.size(); ++i) {
      NodeList waits;  // none of them for another
      for (std::size_t k = i; k-- > 0;) {
        const auto follows = [&](std::uint32_t later) {
          return ended_before(table_, nodes[k], later);
        };
        if (ended_before(table_, nodes[k], nodes[i]) &&
            std::none_of(waits.begin(), waits.end(), follows)) {
          waits.push_back(nodes[k]);
        } else if (waits.size() > 1) {
          break;
        }
      }
      for (const std::uint32_t before : waits) {
        add(nodes[i], before);
      }
    }
  }

  /// Each pass with its transfers with peers.
  void passes() {
    for (const std::uint32_t pass : ops_.compute) {
      if (const std::uint32_t end = end_of_pass(pass); end != pass) {
        add(end, pass);
      }
    }
    for (const auto& [pass, type] : kTracePasses) {
      for (const std::uint32_t n : ops_.of(type)) {
        if (table_.find(ops_.stage, pass, table_.nodes[n].seq) == OpTable::npos) {
          throw Error(fmt::format("{} belongs to no {}", to_text(table_.nodes[n]), to_text(pass)))
              .at(file_)
              .field("seq_id")
              .expected("the transfers of a pass with the number of the pass");
        }
      }
    }
  }

  void transfers(const std::vector<TransferMatch>& matches) {
    for (const auto& [transfer, compute] : matches) {
      const OpNode& node = table_.nodes[transfer];
      if (node.stage != ops_.stage) {
        continue;
      }
      if (node.type == TraceOp::kForwardSend || node.type == TraceOp::kBackwardSend) {
        add(transfer, compute);
        continue;
      }
      add(compute, transfer);
      const OpNode& served = table_.nodes[compute];
      const std::size_t previous = table_.find(served.stage, served.type, served.seq - 1);
      if (previous != OpTable::npos) {
        add(transfer, static_cast<std::uint32_t>(previous));
      }
    }
  }

  /// Before the first backward pass there is one forward pass more than the transfer waits for.
  void first_backward() {
    const auto first = std::find_if(
        ops_.compute.begin(), ops_.compute.end(),
        [this](std::uint32_t n) { return table_.nodes[n].type == TraceOp::kBackwardCompute; });
    if (first == ops_.compute.end() || first - ops_.compute.begin() < 2) {
      return;
    }
    for (const TraceOp type : {TraceOp::kBackwardRecv, TraceOp::kBackwardSend}) {
      const std::size_t node = table_.find(ops_.stage, type, 0);
      if (node != OpTable::npos) {
        add(static_cast<std::uint32_t>(node), *(first - 2));
      }
    }
  }

  /// The last gathering of a chunk's parameters comes before the chunk's first forward pass; one
  /// that is a part of the pass comes behind its message.
  void gathered_parameters(const std::vector<TransferMatch>& matches, bool in_passes,
                           Warnings* warnings) {
    NodeList gathers = ops_.of(TraceOp::kParamsAllGather);
    std::sort(gathers.rbegin(), gathers.rend());  // by seq, last first
    std::set<std::int32_t> seen;
    for (const std::uint32_t gather : gathers) {
      const std::int32_t chunk = table_.nodes[gather].chunk;
      if (!seen.insert(chunk).second) {
        continue;
      }
      const NodeList& forward = ops_.of(TraceOp::kForwardCompute);
      const auto user = std::find_if(forward.begin(), forward.end(), [&](std::uint32_t n) {
        return table_.nodes[n].chunk == chunk;
      });
      if (user != forward.end()) {
        add(*user, gather);
        for (const auto& [transfer, compute] : matches) {
          if (in_passes && compute == *user &&
              table_.nodes[transfer].type == TraceOp::kForwardRecv &&
              ended_before(table_, transfer, gather)) {
            add(gather, transfer);
          }
        }
      } else if (warnings != nullptr) {
        warnings->add(fmt::format("{}: no forward pass uses the model chunk of a {}", file_,
                                  to_text(TraceOp::kParamsAllGather)));
      }
    }
  }

  /// The first scattering of a chunk's gradients comes after the chunk's last backward pass, that
  /// of its weights' gradients included; of those that are scattered in every microbatch what is
  /// left behind its pass after that.
  void scattered_gradients(Warnings* warnings) {
    NodeList scatters = ops_.of(TraceOp::kGradsReduceScatter);
    std::sort(scatters.begin(), scatters.end());  // by seq
    std::set<std::int32_t> seen;
    for (const std::uint32_t scatter : scatters) {
      const std::int32_t chunk = table_.nodes[scatter].chunk;
      if (table_.both_ways && chunk < 0) {  // of both chunks, which two stages hold
        add(scatter, last_to_end(ops_.compute));
        continue;
      }
      if (table_.is_beside_pass(scatter)) {
        continue;
      }
      const bool of_pass = scatter > 0 && table_.is_beside_pass(scatter - 1);
      const std::int32_t microbatch = of_pass ? table_.nodes[scatter].microbatch : -1;
      if (!of_pass && !seen.insert(chunk).second) {
        continue;
      }
      NodeList makers;
      for (const std::uint32_t n : ops_.compute) {
        const OpNode& pass = table_.nodes[n];
        if (pass.type != TraceOp::kForwardCompute && pass.chunk == chunk &&
            (microbatch < 0 || pass.microbatch == microbatch)) {
          makers.push_back(n);
        }
      }
      if (!makers.empty()) {
        add(scatter, last_to_end(makers));
      } else if (warnings != nullptr) {
        warnings->add(fmt::format("{}: no backward pass makes the model chunk of a {}", file_,
                                  to_text(TraceOp::kGradsReduceScatter)));
      }
    }
  }

  /// Where parameters are gathered within passes those of the next pass wait for the chunk's sums
  /// of gradients among replicas.
  void passes_behind_sums() {
    for (const std::uint32_t scatter : ops_.of(TraceOp::kGradsReduceScatter)) {
      const auto next = std::ranges::find_if(ops_.compute, [&](std::uint32_t pass) {
        return table_.nodes[pass].type != TraceOp::kWeightCompute &&
               ended_before(table_, scatter, pass);
      });
      if (next != ops_.compute.end()) {
        add(*next, scatter);
      }
    }
  }

  /// What follows the last backward pass, up to the optimizer.
  void tail(bool data_parallel, bool overlap) {
    if (ops_.compute.empty()) {
      throw Error(fmt::format("stage {} computes nothing", ops_.stage)).at(file_);
    }
    const std::uint32_t gc = need(TraceOp::kGc);
    add(gc, last_to_end(ops_.compute));
    std::uint32_t last = need(TraceOp::kLayernormGradsAllReduce);
    add(last, gc);
    NodeList scatters = ops_.of(TraceOp::kGradsReduceScatter);
    std::sort(scatters.begin(), scatters.end());
    if (data_parallel && overlap && !scatters.empty()) {
      add(last, scatters.back());
    }
    const auto then = [&](std::uint32_t next) {
      add(next, last);
      last = next;
    };
    if (ops_.stage == 0 || ops_.stage + 1 == table_.stages) {
      then(need(TraceOp::kEmbeddingGradsAllReduce));
    }
    if (data_parallel && overlap) {
      then(need(TraceOp::kSeparateGradsAllReduce));
    } else if (data_parallel) {
      for (const std::uint32_t scatter : scatters) {
        then(scatter);
      }
    }
    then(need(TraceOp::kOptimizerClip));
    then(need(TraceOp::kOptimizer));
  }

  std::vector<Edge> take() { return std::move(edges_); }

 private:
  /// A pass has ended when its transfers with the worker's peers have.
  void add(std::uint32_t after, std::uint32_t before) {
    edges_.push_back(
        {after, is_compute(table_.nodes[before].type) && !is_peer_comm(table_.nodes[after].type)
                    ? end_of_pass(before)
                    : before});
  }

  std::uint32_t end_of_pass(std::uint32_t pass) const {
    const OpNode& node = table_.nodes[pass];
    const std::size_t transfers = table_.find(node.stage, pass_of(node.type).peer_comm, node.seq);
    return transfers == OpTable::npos ? pass : static_cast<std::uint32_t>(transfers);
  }

  /// The first in start order of those that end last.
  std::uint32_t last_to_end(const NodeList& nodes) const {
    return *std::max_element(nodes.begin(), nodes.end(), [this](std::uint32_t a, std::uint32_t b) {
      return table_.nodes[a].end_s < table_.nodes[b].end_s;
    });
  }

  std::uint32_t need(TraceOp type) const {
    const std::size_t node = table_.find(ops_.stage, type, 0);
    if (node == OpTable::npos) {
      throw Error(fmt::format("stage {} has no {} 0", ops_.stage, to_text(type)))
          .at(file_)
          .field("optype")
          .expected("the operations that end a step on every stage");
    }
    return static_cast<std::uint32_t>(node);
  }

  const OpTable& table_;
  const StageOps& ops_;
  const std::string& file_;
  std::vector<Edge> edges_;
};

}  // namespace

std::vector<Edge> in_rank_edges(const OpTable& table, const StageOps& ops,
                                const std::vector<TransferMatch>& matches, bool data_parallel,
                                bool overlap, Gathers gathers, const std::string& file,
                                Warnings* warnings) {
  Drawer drawer(table, ops, file);
  if (table.side_by_side) {
    drawer.side_by_side(ops.compute);
    drawer.partners(ops.compute, matches);
  } else {
    drawer.stream(ops.compute);
  }
  drawer.passes();
  for (const TraceOp type : {TraceOp::kForwardSend, TraceOp::kForwardRecv, TraceOp::kBackwardSend,
                             TraceOp::kBackwardRecv}) {
    drawer.stream(ops.of(type));
  }
  drawer.transfers(matches);
  if (!table.side_by_side) {
    drawer.first_backward();
  }
  if (data_parallel) {
    drawer.stream(ops.sync);
    drawer.gathered_parameters(matches, gathers != Gathers::kBefore, warnings);
    if (gathers == Gathers::kInPassesOfReplicas) {
      drawer.passes_behind_sums();
    }
    if (overlap) {
      drawer.scattered_gradients(warnings);
    }
  }
  drawer.tail(data_parallel, overlap);
  return drawer.take();
}

}  // namespace lockstep::whatif
