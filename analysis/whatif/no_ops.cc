#include "analysis/whatif/no_ops.h"

#include <algorithm>
#include <array>
#include <limits>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep::whatif {
namespace {

constexpr std::array<TraceOp, 4> kP2p = {TraceOp::kForwardSend, TraceOp::kForwardRecv,
                                         TraceOp::kBackwardSend, TraceOp::kBackwardRecv};
constexpr double kSlack = 5e-5;  // seconds

bool is_recv(TraceOp type) {
  return type == TraceOp::kForwardRecv || type == TraceOp::kBackwardRecv;
}
TraceOp compute_of(TraceOp type) {
  return type == TraceOp::kForwardSend || type == TraceOp::kForwardRecv ? TraceOp::kForwardCompute
                                                                        : TraceOp::kBackwardCompute;
}

/// Chunks of the whole model.
std::int32_t model_chunks(const OpTable& table) {
  if (table.both_ways) {
    return table.stages;
  }
  std::int32_t chunks = 1;
  for (const OpNode& node : table.nodes) {
    chunks = std::max(chunks, node.chunk + 1);
  }
  return chunks * table.stages;
}

bool has_no_peer(TraceOp type, std::int32_t chunk, std::int32_t chunks) {
  return type == TraceOp::kForwardSend || type == TraceOp::kBackwardRecv ? chunk + 1 >= chunks
                                                                         : chunk - 1 < 0;
}

class Matcher {
 public:
  Matcher(const OpTable& table, const std::string& file)
      : table_(table), file_(file), chunks_(model_chunks(table)) {
    out_.no_ops.assign(table.nodes.size(), NoOp::kNone);
  }

  void match(const StageOps& ops, TraceOp type) {
    const NodeList& all = ops.of(type);
    NodeList compute = ops.of(compute_of(type));
    std::sort(compute.begin(), compute.end());  // by seq
    const NodeList valid = launched(all, compute, type);
    check_count(ops, type, valid.size(), compute.size());
    const std::size_t first = is_recv(type) && valid.size() + 1 == compute.size() ? 1 : 0;
    for (std::size_t k = 0; k < valid.size(); ++k) {
      const std::uint32_t served = compute[first + k];
      out_.matches.push_back({valid[k], served});
      if (has_no_peer(type, global_chunk(table_.nodes[served], table_.stages), chunks_)) {
        out_.no_ops[valid[k]] = NoOp::kNoPeer;
      }
    }
  }

  TransferMatches take() { return std::move(out_); }

 private:
  NodeList launched(const NodeList& all, const NodeList& compute, TraceOp type) {
    double last_start = -std::numeric_limits<double>::infinity();
    double first_end = std::numeric_limits<double>::infinity();
    for (const std::uint32_t c : compute) {
      last_start = std::max(last_start, static_cast<double>(table_.nodes[c].start_s));
      first_end = std::min(first_end, static_cast<double>(table_.nodes[c].end_s));
    }
    NodeList valid;
    for (const std::uint32_t n : all) {
      const OpNode& node = table_.nodes[n];
      const bool skipped = is_recv(type) ? static_cast<double>(node.start_s) > last_start + kSlack
                                         : static_cast<double>(node.end_s) < first_end - kSlack;
      if (skipped) {
        out_.no_ops[n] = NoOp::kUnmatched;
      } else {
        valid.push_back(n);
      }
    }
    return valid;
  }

  void check_count(const StageOps& ops, TraceOp type, std::size_t valid,
                   std::size_t compute) const {
    const bool edge = ops.stage == 0 || ops.stage + 1 == table_.stages;
    if (valid == compute || (edge && (valid == 0 || valid + 1 == compute))) {
      return;
    }
    throw Error(fmt::format("stage {}: {} operations {} serve {} operations {}", ops.stage, valid,
                            to_text(type), compute, to_text(compute_of(type))))
        .at(file_)
        .expected(edge ? "as many, one fewer, or none on the first and last stage" : "as many");
  }

  const OpTable& table_;
  const std::string& file_;
  std::int32_t chunks_;
  TransferMatches out_;
};

}  // namespace

TransferMatches match_transfers(const OpTable& table, std::span<const StageOps> stages,
                                const std::string& file) {
  Matcher matcher(table, file);
  for (const StageOps& ops : stages) {
    for (const TraceOp type : kP2p) {
      matcher.match(ops, type);
    }
  }
  return matcher.take();
}

}  // namespace lockstep::whatif
