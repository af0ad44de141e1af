// The dependency graph's rules on traces small enough to be checked by hand.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/whatif/dependency_graph.h"
#include "analysis/whatif/metrics.h"
#include "base/error.h"
#include "trace/read_trace.h"

namespace lockstep::whatif::whatif_graph_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

/// A worker's row; ranks are stage and dp_rank alike.
TraceRow op(TraceOp type, std::int32_t stage, std::int32_t seq, float start, float end,
            std::int32_t chunk = -1, std::int32_t global_chunk = -1) {
  return {.stage = stage,
          .rank = stage,
          .step = 1,
          .optype = type,
          .start_s = start,
          .duration_s = end - start,
          .seq_id = seq,
          .mc = chunk,
          .mb_id = chunk < 0 ? -1 : seq,
          .gmc = global_chunk};
}

OpTable table_of(const std::vector<TraceRow>& rows) {
  Trace trace;
  for (const TraceRow& row : rows) {
    add_row(trace, row);
  }
  sort_rows(trace);
  return make_op_table(trace, "t", {}, nullptr);
}

std::set<std::string> before(const OpTable& table, const DependencyGraph& graph, std::int32_t stage,
                             TraceOp type, std::int32_t seq) {
  std::set<std::string> out;
  for (const std::uint32_t p : graph.predecessors[table.find(stage, type, seq)]) {
    out.insert(to_text(table.nodes[p]));
  }
  return out;
}

/// Operations that end a step, from `start` on.
void add_tail(std::vector<TraceRow>& rows, std::int32_t stage, bool edge, float start) {
  rows.push_back(op(TraceOp::kGc, stage, 0, start, start));
  rows.push_back(op(TraceOp::kLayernormGradsAllReduce, stage, 0, start, start + 1));
  if (edge) {
    rows.push_back(op(TraceOp::kEmbeddingGradsAllReduce, stage, 0, start + 1, start + 2));
  }
  rows.push_back(op(TraceOp::kOptimizerClip, stage, 0, start + 3, start + 4));
  rows.push_back(op(TraceOp::kOptimizer, stage, 0, start + 4, start + 5));
}

/// pp = 2, vpp = 2, two microbatches: stage 0 has the chunks 0 and 2 of the model, stage 1 the
/// chunks 1 and 3. Forward passes first, then backward passes; times are only an order.
std::vector<TraceRow> interleaved() {
  std::vector<TraceRow> rows;
  for (std::int32_t stage = 0; stage < 2; ++stage) {
    const float shift = stage == 0 ? 0.0F : 0.5F;
    for (std::int32_t k = 0; k < 4; ++k) {
      const auto at = static_cast<float>(k);
      const std::int32_t forward_chunk = k / 2, backward_chunk = 1 - k / 2;
      rows.push_back(op(TraceOp::kForwardCompute, stage, k, at + shift, at + shift + 1,
                        forward_chunk, forward_chunk * 2 + stage));
      rows.push_back(op(TraceOp::kBackwardCompute, stage, k, 10 + at - shift, 11 + at - shift,
                        backward_chunk, backward_chunk * 2 + stage));
      rows.push_back(op(TraceOp::kForwardSend, stage, k, at + shift + 1, at + shift + 1.25F));
      rows.push_back(op(TraceOp::kBackwardSend, stage, k, 11 + at - shift, 11.25F + at - shift));
    }
    add_tail(rows, stage, true, 20);
  }
  // Lists that are one short: the first chunk receives no input, the last no gradient.
  for (std::int32_t k = 0; k < 3; ++k) {
    const auto at = static_cast<float>(k);
    rows.push_back(op(TraceOp::kForwardRecv, 0, k, at, at + 0.5F));
    rows.push_back(op(TraceOp::kBackwardRecv, 1, k, 9 + at, 9.25F + at));
  }
  for (std::int32_t k = 0; k < 4; ++k) {
    const auto at = static_cast<float>(k);
    rows.push_back(op(TraceOp::kForwardRecv, 1, k, at, at + 0.5F));
    rows.push_back(op(TraceOp::kBackwardRecv, 0, k, 9 + at, 9.25F + at));
  }
  return rows;
}

/// Expected by hand, as in the table of docs/whatif.md: forward sends of the last chunk and
/// backward sends of the first have no peer, nor has the first receive of the lists that are one
/// short (it serves the second pass, still of the first or last chunk).
TEST(DependencyGraph, InterleavedTransfersWithoutPeers) {
  const OpTable table = table_of(interleaved());
  const DependencyGraph graph = make_dependency_graph(table, {}, "t", nullptr);
  const auto marks = [&](std::int32_t stage, TraceOp type) {
    std::string out;
    for (std::int32_t seq = 0; table.find(stage, type, seq) != OpTable::npos; ++seq) {
      out += graph.no_ops[table.find(stage, type, seq)] == NoOp::kNoPeer ? 'x' : '.';
    }
    return out;
  };
  EXPECT_EQ(marks(0, TraceOp::kForwardSend), "....");
  EXPECT_EQ(marks(1, TraceOp::kForwardSend), "..xx");
  EXPECT_EQ(marks(0, TraceOp::kForwardRecv), "x..");
  EXPECT_EQ(marks(1, TraceOp::kForwardRecv), "....");
  EXPECT_EQ(marks(1, TraceOp::kBackwardSend), "....");
  EXPECT_EQ(marks(0, TraceOp::kBackwardSend), "..xx");
  EXPECT_EQ(marks(1, TraceOp::kBackwardRecv), "x..");
  EXPECT_EQ(marks(0, TraceOp::kBackwardRecv), "....");

  // Sends 0 and 1 of stage 1 meet receives 1 and 2 of stage 0.
  const std::size_t send = table.find(1, TraceOp::kForwardSend, 0);
  EXPECT_EQ(graph.group_of[send], graph.group_of[table.find(0, TraceOp::kForwardRecv, 1)]);
  const std::size_t skipped = table.find(1, TraceOp::kForwardSend, 2);
  EXPECT_EQ(graph.groups[static_cast<std::size_t>(graph.group_of[skipped])].members.size(), 1U);
  // The list that is one short: receive 0 serves pass 1, so it waits for pass 0.
  EXPECT_THAT(before(table, graph, 0, TraceOp::kForwardRecv, 0),
              UnorderedElementsAre("forward-compute 0 of stage 0"));
  EXPECT_EQ(before(table, graph, 0, TraceOp::kForwardCompute, 1).count("forward-recv 0 of stage 0"),
            1U);
}

/// One send more than passes, over before the first backward pass ends: never launched. The others
/// pair as before, their numbers one higher.
TEST(DependencyGraph, ASendThatServesNoPass) {
  std::vector<TraceRow> rows = interleaved();
  for (TraceRow& row : rows) {
    if (row.optype == TraceOp::kBackwardSend && row.stage == 0) {
      ++row.seq_id;
    }
  }
  rows.push_back(op(TraceOp::kBackwardSend, 0, 0, 5, 5.25F));
  const OpTable table = table_of(rows);
  const DependencyGraph graph = make_dependency_graph(table, {}, "t", nullptr);
  EXPECT_EQ(graph.no_ops[table.find(0, TraceOp::kBackwardSend, 0)], NoOp::kUnmatched);
  EXPECT_EQ(graph.no_ops[table.find(0, TraceOp::kBackwardSend, 1)], NoOp::kNone);
  EXPECT_EQ(graph.no_ops[table.find(0, TraceOp::kBackwardSend, 3)], NoOp::kNoPeer);
  EXPECT_EQ(graph.group_of[table.find(0, TraceOp::kBackwardSend, 1)],
            graph.group_of[table.find(1, TraceOp::kBackwardRecv, 1)]);
  // It keeps its stream and the wait for the forward pass two before the first backward pass.
  EXPECT_THAT(before(table, graph, 0, TraceOp::kBackwardSend, 0),
              UnorderedElementsAre("forward-compute 2 of stage 0"));
  EXPECT_THAT(before(table, graph, 0, TraceOp::kBackwardSend, 1),
              UnorderedElementsAre("backward-send 0 of stage 0", "backward-compute 0 of stage 0"));
}

/// One stage, two chunks, gradients scattered during the backward passes.
std::vector<TraceRow> overlapped() {
  std::vector<TraceRow> rows;
  for (std::int32_t chunk = 0; chunk < 2; ++chunk) {
    const auto at = static_cast<float>(chunk);
    rows.push_back(op(TraceOp::kParamsAllGather, 0, chunk, at / 4, at / 4 + 0.25F, chunk));
    rows.push_back(op(TraceOp::kForwardCompute, 0, chunk, 1 + at, 2 + at, chunk, chunk));
    rows.push_back(op(TraceOp::kBackwardCompute, 0, chunk, 3 + at, 4 + at, 1 - chunk, 1 - chunk));
    rows.push_back(op(TraceOp::kGradsReduceScatter, 0, chunk, 4 + at, 5 + at, 1 - chunk));
  }
  add_tail(rows, 0, true, 6);
  rows.push_back(op(TraceOp::kSeparateGradsAllReduce, 0, 0, 8, 9));
  return rows;
}

TEST(DependencyGraph, GradientsScatteredDuringTheBackwardPass) {
  const OpTable table = table_of(overlapped());
  const DependencyGraph graph = make_dependency_graph(table, JobMeta{.dsp_size = 2}, "t", nullptr);
  EXPECT_TRUE(graph.overlap);
  EXPECT_THAT(before(table, graph, 0, TraceOp::kForwardCompute, 0),
              UnorderedElementsAre("params-all-gather 0 of stage 0"));
  EXPECT_THAT(
      before(table, graph, 0, TraceOp::kForwardCompute, 1),
      UnorderedElementsAre("params-all-gather 1 of stage 0", "forward-compute 0 of stage 0"));
  EXPECT_THAT(
      before(table, graph, 0, TraceOp::kGradsReduceScatter, 0),
      UnorderedElementsAre("params-all-gather 1 of stage 0", "backward-compute 0 of stage 0"));
  EXPECT_THAT(before(table, graph, 0, TraceOp::kLayernormGradsAllReduce, 0),
              UnorderedElementsAre("grads-reduce-scatter 1 of stage 0", "gc 0 of stage 0"));
  EXPECT_THAT(before(table, graph, 0, TraceOp::kSeparateGradsAllReduce, 0),
              UnorderedElementsAre("embedding-grads-all-reduce 0 of stage 0"));
  EXPECT_THAT(before(table, graph, 0, TraceOp::kOptimizerClip, 0),
              UnorderedElementsAre("separate-grads-all-reduce 0 of stage 0"));
  EXPECT_EQ(graph.groups.back().scope, Scope::kStep);
}

// In every microbatch: what is hidden beside a pass waits for the stream alone, what is left of it
// for the pass, too. Rows without a microbatch are a chunk's.
TEST(DependencyGraph, GradientsScatteredInEveryMicrobatch) {
  std::vector<TraceRow> rows;
  for (std::int32_t microbatch = 0; microbatch < 2; ++microbatch) {
    const auto at = static_cast<float>(microbatch);
    rows.push_back(op(TraceOp::kForwardCompute, 0, microbatch, at, 1 + at, 0, 0));
    rows.push_back(op(TraceOp::kBackwardCompute, 0, microbatch, 2 + at, 3 + at, 0, 0));
    rows.push_back(op(TraceOp::kGradsReduceScatter, 0, 2 * microbatch, 2.5F + at, 3 + at, 0));
    rows.push_back(op(TraceOp::kGradsReduceScatter, 0, 2 * microbatch + 1, 3 + at, 3.5F + at, 0));
    for (std::size_t i = rows.size() - 4; i < rows.size(); ++i) {
      rows[i].mb_id = microbatch;
    }
  }
  add_tail(rows, 0, true, 6);
  rows.push_back(op(TraceOp::kSeparateGradsAllReduce, 0, 0, 8, 9));
  const OpTable table = table_of(rows);
  const DependencyGraph graph = make_dependency_graph(table, JobMeta{.dsp_size = 2}, "t", nullptr);
  EXPECT_THAT(before(table, graph, 0, TraceOp::kGradsReduceScatter, 0), IsEmpty());
  EXPECT_THAT(
      before(table, graph, 0, TraceOp::kGradsReduceScatter, 1),
      UnorderedElementsAre("grads-reduce-scatter 0 of stage 0", "backward-compute 0 of stage 0"));
  EXPECT_THAT(before(table, graph, 0, TraceOp::kGradsReduceScatter, 2),
              UnorderedElementsAre("grads-reduce-scatter 1 of stage 0"));
  EXPECT_THAT(
      before(table, graph, 0, TraceOp::kGradsReduceScatter, 3),
      UnorderedElementsAre("grads-reduce-scatter 2 of stage 0", "backward-compute 1 of stage 0"));
}

/// Without replicas nothing is gathered; if the trace says otherwise, one of the two is wrong.
TEST(DependencyGraph, ReplicasTheMetaFileDoesNotKnow) {
  const OpTable table = table_of(overlapped());
  try {
    make_dependency_graph(table, {}, "t", nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the trace has params-all-gather, but only one replica"));
  }
}

TEST(DependencyGraph, ListsThatFitNoSchedule) {
  std::vector<TraceRow> rows = interleaved();
  std::erase_if(rows, [](const TraceRow& row) {
    return row.optype == TraceOp::kForwardRecv && row.stage == 1 && row.seq_id > 1;
  });
  const OpTable table = table_of(rows);
  try {
    make_dependency_graph(table, {}, "t", nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("stage 1: 2 operations forward-recv serve 4 operations"));
  }
}

TEST(DependencyGraph, AStepWithoutItsEnd) {
  std::vector<TraceRow> rows = overlapped();
  std::erase_if(rows, [](const TraceRow& row) { return row.optype == TraceOp::kOptimizer; });
  const OpTable table = table_of(rows);
  EXPECT_THROW(make_dependency_graph(table, JobMeta{.dsp_size = 2}, "t", nullptr), Error);
}

/// One stage, one microbatch, two tensor-parallel ranks: 0 computes 1 s forward, 1 computes 2 s.
///
///     rank 0: F 0-1, its transfers 1-2.5; B 2.5-4.5, its transfers 4.5-7
///     rank 1: F 0-2, its transfers 2-2.5; B 2.5-6.5, its transfers 6.5-7
class TwoPeers : public ::testing::Test {
 protected:
  TwoPeers() {
    for (std::int32_t rank = 0; rank < 2; ++rank) {
      const float slow = static_cast<float>(rank + 1);
      add(rank, op(TraceOp::kForwardCompute, 0, 0, 0, slow, 0, 0));
      add(rank, op(TraceOp::kForwardTpComm, 0, 0, slow, 2.5F, 0, 0));
      add(rank, op(TraceOp::kBackwardCompute, 0, 0, 2.5F, 2.5F + 2 * slow, 0, 0));
      add(rank, op(TraceOp::kBackwardTpComm, 0, 0, 2.5F + 2 * slow, 7, 0, 0));
      std::vector<TraceRow> tail;
      add_tail(tail, 0, /*edge=*/true, 7);
      for (const TraceRow& row : tail) {
        add(rank, row);
      }
    }
  }

  void add(std::int32_t rank, TraceRow row) {
    row.rank = rank;
    add_row(trace, row);
    trace.extra.tp_rank.push_back(rank);
  }

  OpTable table() {
    sort_rows(trace);
    return make_op_table(trace, "t", {}, nullptr);
  }

  Trace trace;
};

TEST_F(TwoPeers, WaitForEachOtherAfterEachPass) {
  const OpTable t = table();
  EXPECT_EQ(t.width(), 2U);
  EXPECT_EQ(t.tp, 2);
  const DependencyGraph graph = make_dependency_graph(t, {}, "t", nullptr);
  EXPECT_THAT(before(t, graph, 0, TraceOp::kForwardTpComm, 0),
              UnorderedElementsAre("forward-compute 0 of stage 0"));
  EXPECT_THAT(before(t, graph, 0, TraceOp::kBackwardCompute, 0),
              UnorderedElementsAre("forward-tp-comm 0 of stage 0"));
  EXPECT_THAT(before(t, graph, 0, TraceOp::kGc, 0),
              UnorderedElementsAre("backward-tp-comm 0 of stage 0"));
  // end - latest start: 2.5 - 2 and 7 - 6.5, for both.
  const Traced traced = measure(t, graph);
  for (const TraceOp type : {TraceOp::kForwardTpComm, TraceOp::kBackwardTpComm}) {
    const std::size_t node = t.find(0, type, 0);
    EXPECT_EQ(traced.transfer_s[node * 2], 0.5F);
    EXPECT_EQ(traced.transfer_s[node * 2 + 1], 0.5F);
  }
}

// Both as the mean of 1 and 2, and of 2 and 4, forward and backward: (1.5 + 0.5) + (3 + 0.5) = 5.5
// in place of 7 up to the tail of 5 (gc 0, layer norm 1, embedding 1, clipping 1 and 1 of waiting,
// which is launched late and so in neither T nor I, optimizer 1): T = 11, I = 9.5. Rank 1 alone as
// traced: (2 + 0.5) + (4 + 0.5) = 7, so T again; rank 0 alone: rank 1 is ideal and the slower one.
TEST_F(TwoPeers, TheSlowerOneIsToBlame) {
  const OpTable t = table();
  const DependencyGraph graph = make_dependency_graph(t, {}, "t", nullptr);
  const Simulator simulator(t, graph, "t");
  const Traced traced = measure(t, graph);
  const Model model = make_model(t, graph, simulator, traced, {0});
  EXPECT_EQ(model.nodelay.span, (std::vector<double>{11}));
  EXPECT_EQ(model.ideal.span, (std::vector<double>{9.5}));
  const Decomposition workers = blocking_by_worker({t, graph, simulator, traced, model});
  EXPECT_THAT(workers.labels, ::testing::ElementsAre("0", "1"));
  EXPECT_THAT(workers.ratio, ::testing::ElementsAre(1, ::testing::DoubleEq(11 / 9.5)));
}

TEST_F(TwoPeers, AreRefusedWhereTheyFitNothing) {
  const auto error = [&]() -> std::string {
    try {
      make_dependency_graph(table(), {}, "t", nullptr);
    } catch (const Error& e) {
      return e.what();
    }
    return "none";
  };
  const Trace whole = trace;
  trace.extra.tp_rank.back() = 2;
  EXPECT_THAT(error(), HasSubstr("rank 1 is in two places"));
  trace = whole;
  trace.extra.tp_rank.clear();
  EXPECT_THAT(error(), HasSubstr("columns tp_rank and cp_rank tell several workers apart"));
  trace = whole;
  trace.extra.tp_rank.pop_back();
  EXPECT_THAT(error(), HasSubstr("rows have a tp_rank"));
  trace = whole;
  for (std::int32_t rank = 0; rank < 2; ++rank) {
    add(rank, op(TraceOp::kForwardTpComm, 0, 1, 7, 7, 0, 0));
  }
  EXPECT_THAT(error(), HasSubstr("forward-tp-comm 1 of stage 0 belongs to no forward-compute"));
}

// dp_ranks 0 and 1 share experts, 2 none: no layout.
TEST(ExpertGroups, OfDifferentSizesAreRefused) {
  Trace trace;
  for (std::int32_t rank = 0; rank < 3; ++rank) {
    TraceRow row = op(TraceOp::kForwardCompute, 0, 0, 0, 1, 0, 0);
    row.rank = row.dp_rank = rank;
    add_row(trace, row);
    trace.extra.ep_rank.push_back(rank % 2);
  }
  const OpTable table = make_op_table(trace, "t", {}, nullptr);
  EXPECT_THAT(table.expert_group, ::testing::ElementsAre(0, 0, 1));
  EXPECT_THROW(lane_scopes(table, "t"), Error);
}

// Four dp_ranks of two tensor-parallel ranks: a dp_rank's workers are peers, and where parameters
// are gathered among two dp_ranks in a row within the passes, those of both are.
TEST(LaneScopes, PassesThatGatherWaitForThoseOfOtherReplicas) {
  OpTable table;
  table.dp = 4;
  table.tp = 2;
  table.cp = 1;
  using Groups = LaneScopes::Groups;
  EXPECT_EQ(lane_scopes(table, "t").of(Scope::kPeers), (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(lane_scopes(table, "t", 2).of(Scope::kPeers), (Groups{{0, 1, 2, 3}, {4, 5, 6, 7}}));
  EXPECT_EQ(lane_scopes(table, "t", 4).of(Scope::kPeers), (Groups{{0, 1, 2, 3, 4, 5, 6, 7}}));
}

}  // namespace
}  // namespace lockstep::whatif::whatif_graph_test
