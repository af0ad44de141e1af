#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/exact/operators.h"
#include "tests/support/exact_models.h"

namespace lockstep::exact_operators_test {
namespace {

using testing::linear;

RankSizes sizes_of(std::int64_t tp, bool sequence_parallel = false) {
  Job job;
  job.gpus = job.tp = tp;
  job.seq = 1024;
  job.micro_batch = 2;
  job.sequence_parallel = sequence_parallel;
  return rank_sizes(job);
}

// 2048 tokens, 512 -> 2048 / 4: m 2048, k 512, n 512. 2 m n k = 2^30; 2 (m k + k n + m n) bytes.
TEST(ExactOperators, ColumnLinear) {
  const Module module = linear(ModuleKind::kColumnLinear, "column", 512, 2048);
  const ModuleOperators ops = operators_of(module, sizes_of(4), Region::kSequence);
  const Operator& forward = ops.forward.front();
  EXPECT_EQ(forward.kind, OperatorKind::kGemm);
  EXPECT_EQ(forward.m, 2048);
  EXPECT_EQ(forward.n, 512);
  EXPECT_EQ(forward.k, 512);
  EXPECT_EQ(forward.flops, 1024.0 * 1024 * 1024);
  EXPECT_EQ(forward.bytes, 2.0 * (2048 * 512 + 512 * 512 + 2048 * 512));
  EXPECT_EQ(ops.input_grad.front().flops, forward.flops);
  EXPECT_EQ(ops.weight_grad.front().flops, forward.flops);
  // The weight's gradient is added to in fp32: 8 bytes an element instead of 2.
  EXPECT_EQ(ops.weight_grad.front().bytes,
            forward.bytes - 2.0 * 2048 * 512 + 2.0 * 2048 * 512 + 6.0 * 512 * 512);
}

// In fp8 what a product reads is cast first: 2 bytes read, 1 written along rows and 1 along
// columns; 2 more where a tensor's own largest value is its scale. Forward 512 wide, backward 2048
// / 4.
TEST(ExactOperators, CastsOfFp8) {
  const Module module = linear(ModuleKind::kColumnLinear, "column", 512, 2048);
  RankSizes sizes = sizes_of(4);
  EXPECT_EQ(operators_of(module, sizes, Region::kSequence).forward.size(), 1);
  sizes.operand = 1;
  ModuleOperators ops = operators_of(module, sizes, Region::kSequence);
  ASSERT_EQ(ops.forward.size(), 2);
  EXPECT_EQ(ops.forward[0].kind, OperatorKind::kMemory);
  EXPECT_EQ(ops.forward[0].bytes, 4.0 * 2048 * 512);
  EXPECT_EQ(ops.input_grad[0].bytes, 4.0 * 2048 * 512);
  EXPECT_EQ(ops.input_grad[1].kind, OperatorKind::kGemm);
  EXPECT_EQ(ops.weight_grad.size(), 1);
  sizes.shares_largest = true;
  ops = operators_of(module, sizes, Region::kSequence);
  EXPECT_EQ(ops.forward[0].bytes, 6.0 * 2048 * 512);
}

// A plain linear runs on a rank's own rows.
TEST(ExactOperators, PlainLinearOnOwnRows) {
  const Module module = linear(ModuleKind::kPlainLinear, "plain", 512, 64);
  EXPECT_EQ(operators_of(module, sizes_of(4, true), Region::kSequence).forward.front().m, 512);
  EXPECT_EQ(operators_of(module, sizes_of(4, false), Region::kSequence).forward.front().m, 2048);
}

// 2 sequences, 16 / 4 heads of 64, 1024 x 1024 scores, half of them: 2 x 2 x 64 operations each.
TEST(ExactOperators, Attention) {
  Module module = testing::attention(16, 2, 64);
  const RankSizes sizes = sizes_of(4);
  const ModuleOperators causal = operators_of(module, sizes, Region::kTensor);
  const double scores = 2.0 * 4 * 1024 * 1024;
  EXPECT_EQ(causal.forward.front().flops, scores / 2 * 256);
  EXPECT_EQ(causal.forward.front().kv_heads, 1);  // each held by two ranks
  EXPECT_EQ(causal.input_grad.front().flops, scores / 2 * 256 * 2.5);
  // q and output of 4 heads, k and v of one, of 64 features.
  EXPECT_EQ(causal.forward.front().bytes, 2.0 * 2 * 1024 * 64 * (4 + 4 + 2));
  module.window = 256;  // a query sees 256 keys, the first 256 queries half of that
  EXPECT_EQ(operators_of(module, sizes, Region::kTensor).forward.front().flops,
            2.0 * 4 * 1024 * (256 - 32) * 256);
  // Without flash attention all scores are made: 4 passes forward, 7 backward, 2.5 more each way
  // with dropout.
  RankSizes plain = sizes;
  plain.flash_attention = false;
  const ModuleOperators unfused = operators_of(module, plain, Region::kTensor);
  EXPECT_EQ(unfused.forward.front().flops, scores * 256);
  EXPECT_EQ(unfused.input_grad.front().flops, scores * 512);
  const double operands = 2.0 * 2 * 1024 * 64 * (4 + 4 + 2);
  const double copies = 2.0 * 2 * 1024 * 64 * (2 * 4);  // the heads' outputs side by side
  EXPECT_EQ(unfused.forward.front().bytes, operands + copies + 2 * 4 * scores);
  EXPECT_EQ(unfused.input_grad.front().bytes, 4 * operands + 2 * 7 * scores);
  plain.dropout = true;
  EXPECT_EQ(operators_of(module, plain, Region::kTensor).forward.front().bytes,
            operands + copies + 2 * 6.5 * scores);
  module.window = 0;
  module.causal = false;
  EXPECT_EQ(operators_of(module, sizes, Region::kTensor).forward.front().flops, scores * 256);
}

// The parts of a ring add up to the whole.
TEST(ExactOperators, RingPartsAddUp) {
  const Module module = testing::attention(16, 2, 64);
  RankSizes sizes = sizes_of(1);
  sizes.cp = 4;
  const double whole = operators_of(module, sizes, Region::kTensor).forward.front().flops;
  EXPECT_DOUBLE_EQ(operators_of(module, sizes, Region::kTensor, 4).forward.front().flops * 4,
                   whole);
}

// 8 experts on ep 4, top-2 of 512 own tokens: 1024 copies, 512 for each of two local experts.
TEST(ExactOperators, Experts) {
  Module module = linear(ModuleKind::kMoe, "moe", 512, 512);
  module.experts = 8;
  module.topk = 2;
  module.expert_ffn = 256;
  module.shared_ffn = 128;
  RankSizes sizes = sizes_of(4, true);
  sizes.ep = 4;
  sizes.etp = 1;
  const MoeOperators moe = moe_operators(module, sizes);
  EXPECT_EQ(moe.rows, 1024);
  const Operator& in = moe.expert_in.forward.front();
  EXPECT_EQ(in.kind, OperatorKind::kGroupedGemm);
  EXPECT_EQ(in.groups, 2);
  EXPECT_EQ(in.m, 512);
  EXPECT_EQ(in.n, 512);  // gate and up
  EXPECT_EQ(in.flops, 2.0 * 1024 * 512 * 512);
  EXPECT_EQ(moe.router.forward.front().m, 512);
  EXPECT_EQ(moe.shared_in.forward.front().m, 2048);
  EXPECT_EQ(moe.shared_in.forward.front().n, 2 * 128 / 4);
  // Router whole, shared experts a quarter, two of eight experts.
  EXPECT_EQ(parameters_of(module, sizes),
            (ParameterCount{512 * 8 + 3 * 512 * 32, 2 * 3 * 512 * 256, 512 * 8}));
}

// Forward operations of a GPT layer: 24 s b h^2 (1 + s / (6 h)) (SC'21, appendix), attention in
// full (not causal); backward twice that.
TEST(ExactOperators, LayerTotalsAsPublished) {
  const std::int64_t hidden = 2048;
  Model model = testing::gpt(1, hidden, 16, 1024, 1024);
  model.blocks[0].modules[2].causal = false;
  RankSizes sizes = sizes_of(1);
  sizes.flash_attention = false;
  const std::vector<Module>& layer = model.blocks[0].modules;
  const std::vector<Region> regions = regions_of(layer);
  double forward = 0, backward = 0;
  for (std::size_t i = 0; i < layer.size(); ++i) {
    const ModuleOperators ops = operators_of(layer[i], sizes, regions[i]);
    for (const Operator& op : ops.forward) {
      forward += op.flops;
    }
    for (const auto* list : {&ops.input_grad, &ops.weight_grad}) {
      for (const Operator& op : *list) {
        backward += op.flops;
      }
    }
  }
  const double s = 1024, b = 2, h = 2048;
  EXPECT_DOUBLE_EQ(forward, 24 * s * b * h * h * (1 + s / (6 * h)));
  EXPECT_DOUBLE_EQ(backward, 2 * forward);
}

// A norm over the heads of queries: 16 heads of 64 on 4 ranks, the weights of one head on each.
TEST(ExactOperators, NormOverHeads) {
  Module module = testing::norm("q.norm", 16 * 64);
  module.in = 64;
  const RankSizes sizes = sizes_of(4);
  EXPECT_EQ(operators_of(module, sizes, Region::kTensor).forward.front().bytes,
            2.0 * 2 * 2048 * 16 * 64 / 4);
  EXPECT_EQ(parameters_of(module, sizes), (ParameterCount{64, 0, 64}));
}

// Rows of a vocabulary that tp does not divide are padded.
TEST(ExactOperators, VocabularyIsPadded) {
  const Module module = linear(ModuleKind::kEmbedding, "words", 1001, 512);
  EXPECT_EQ(parameters_of(module, sizes_of(4)).dense, 251 * 512);
  EXPECT_EQ(parameters_of(module, sizes_of(1)).dense, 1001 * 512);
}

}  // namespace
}  // namespace lockstep::exact_operators_test
