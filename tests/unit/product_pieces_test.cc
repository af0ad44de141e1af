#include "generator/exact/product_pieces.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/exact/exact_workload.h"
#include "generator/exact/pass_ops.h"
#include "tests/support/exact_models.h"
#include "tests/support/free_network.h"
#include "workloads/validate.h"

namespace lockstep::product_pieces_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kSeq = 256, kHidden = 512;
constexpr ProductOverlap kAll{true, true, true}, kDefault{true, true, false};

Job job_of(ProductOverlap overlap, std::int64_t tp = 4) {
  Job job;
  job.gpus = job.tp = tp;
  job.seq = kSeq;
  job.sequence_parallel = true;
  job.product_overlap = overlap;
  job.model = testing::llama(1, kHidden, 8, 8, 1024, 256);
  return job;
}

PassOptions options(ProductOverlap overlap, std::int64_t tp = 4) {
  PassOptions result;
  result.sizes = rank_sizes(job_of(overlap, tp));
  result.product_overlap = overlap;
  return result;
}

/// When a pass ends whose computations take `compute`, exchanges `hop` and collectives
/// `collective`, each stream in order. Ranks are alike, so a receive ends with the send beside it.
double end_of(const Pass& pass, double compute, double hop, double collective) {
  std::vector<double> end;
  std::map<StageStream, double> stream;
  for (const PassStep& step : pass.steps) {
    const CommType comm = step.transfer.comm;
    double& free = stream[comm == CommType::kNone ? kComputeStream : stream_of(step.transfer)];
    double begin = free;
    for (const std::int32_t earlier : step.after) {
      begin = std::max(begin, end[static_cast<std::size_t>(earlier)]);
    }
    free = begin + (comm == CommType::kNone       ? compute
                    : comm == CommType::kSendRecv ? hop
                                                  : collective);
    end.push_back(free);
  }
  double last = 0;
  for (const std::int32_t exit : pass.exits) {
    last = std::max(last, end[static_cast<std::size_t>(exit)]);
  }
  return last;
}

const std::vector<Module> kColumn{
    testing::linear(ModuleKind::kColumnLinear, "in", kHidden, 4 * kHidden)};
const std::vector<Module> kRow{
    testing::linear(ModuleKind::kRowLinear, "out", 4 * kHidden, kHidden)};

// Pieces of 3, exchanges of h: the own rows first, then three more, each after its exchange and the
// piece before: 3 + 3 max(3, h). A fourth part of the rows at a time.
TEST(ProductPieces, AGatherFeedsItsProductPieceByPiece) {
  const Pass pass = forward_pass(kColumn, options(kDefault));
  EXPECT_DOUBLE_EQ(end_of(pass, 3, 1, 0), 3 + 3 * 3);
  EXPECT_DOUBLE_EQ(end_of(pass, 3, 3, 0), 3 + 3 * 3);
  EXPECT_DOUBLE_EQ(end_of(pass, 3, 5, 0), 3 + 3 * 5);
  int pieces = 0, sends = 0;
  for (const PassStep& step : pass.steps) {
    if (step.transfer.comm == CommType::kNone) {
      ++pieces;
      EXPECT_EQ(step.op.m, kSeq / 4);
      EXPECT_EQ(step.op.n, 4 * kHidden / 4);
      EXPECT_EQ(step.op.k, kHidden);
    } else {
      sends += step.transfer.send ? 1 : 0;
      EXPECT_EQ(step.transfer.bytes, Bytes(kSeq / 4 * kHidden * 2));
    }
  }
  EXPECT_EQ(pieces, 4);
  EXPECT_EQ(sends, 3);
  // The gradient of a row linear's output is gathered likewise; the weight's product comes behind.
  const Pass backward = backward_pass(kRow, options(kDefault));
  EXPECT_DOUBLE_EQ(end_of(backward, 3, 5, 0), 3 /* residual */ + 3 + 3 * 5 + 3);
}

// Pieces of 3, transfers of r: four of either, a transfer behind its piece and the one before:
// 3 + 3 max(3, r) + r, and 1 piece more of the residual. A fourth of the features at a time.
TEST(ProductPieces, AProductIsReducedPieceByPiece) {
  const Pass pass = forward_pass(kRow, options(kDefault));
  EXPECT_DOUBLE_EQ(end_of(pass, 3, 0, 1), 3 + 3 * 3 + 1 + 3);
  EXPECT_DOUBLE_EQ(end_of(pass, 3, 0, 5), 3 + 3 * 5 + 5 + 3);
  for (const PassStep& step : pass.steps) {
    if (step.op.kind == OperatorKind::kGemm) {
      EXPECT_EQ(step.op.m, kSeq);
      EXPECT_EQ(step.op.n, kHidden / kReducePieces);
    } else if (step.transfer.comm != CommType::kNone) {
      EXPECT_EQ(step.transfer.comm, CommType::kReduceScatter);
      EXPECT_EQ(step.transfer.bytes, Bytes(kSeq * kHidden * 2 / kReducePieces));
    }
  }
}

// By default the input's gradient is reduced beside the weight's product, whole: 3 + max(3, 7).
// Else piece by piece, and the weight's product comes when all is reduced: 3 + 3 7 + 7 + 3; the
// input is gathered again, 7, on the same stream ahead of the first piece's reduction.
TEST(ProductPieces, AGradientIsReducedWholeUnlessAskedFor) {
  const auto end = [](ProductOverlap overlap) {
    return end_of(backward_pass(kColumn, options(overlap)), 3, 0, 7);
  };
  EXPECT_DOUBLE_EQ(end(kDefault), end({}));
  EXPECT_DOUBLE_EQ(end({}), 14);  // the gather again, 7, and the reduction
  EXPECT_DOUBLE_EQ(end(kAll), 7 + 4 * 7 + 3);
}

// Work and bytes are those of the whole, however they are cut.
TEST(ProductPieces, PiecesAddUpToTheWhole) {
  const std::vector<Module> layer = job_of({}).model.blocks[0].modules;
  const auto sums = [&](const Pass& pass) {
    double flops = 0;
    std::int64_t bytes = 0;
    for (const PassStep& step : pass.steps) {
      flops += step.op.flops;
      const bool exchange = step.transfer.comm == CommType::kSendRecv;
      // An all-gather of S bytes brings a rank S (tp - 1) / tp.
      bytes += exchange && !step.transfer.send              ? step.transfer.bytes.count() * 4
               : step.transfer.comm == CommType::kAllGather ? step.transfer.bytes.count() * 3
               : exchange                                   ? 0
                                                            : step.transfer.bytes.count();
    }
    return std::pair(flops, bytes);
  };
  for (const ProductOverlap overlap : {kDefault, kAll}) {
    const PassOptions pieces = options(overlap), whole = options({});
    EXPECT_EQ(sums(forward_pass(layer, pieces)), sums(forward_pass(layer, whole)));
    EXPECT_EQ(sums(backward_pass(layer, pieces)), sums(backward_pass(layer, whole)));
  }
}

std::vector<std::string> in_pieces(const std::vector<Module>& modules, const PassOptions& given) {
  std::vector<std::string> names;
  for (const Pass& pass : {forward_pass(modules, given), backward_pass(modules, given)}) {
    for (const PassStep& step : pass.steps) {
      if (step.op.kind == OperatorKind::kGemm && step.name.starts_with("1/")) {
        names.push_back(step.name.substr(step.name.find("of ") + 3));
      }
    }
  }
  return names;
}

// Heads have no buffers, nor has anything in a layer of latent attention; without sequence
// parallelism nothing is gathered or scattered. Linears that read the same input go through the
// same exchange.
TEST(ProductPieces, OnlyWhatHasBuffers) {
  const Job job = job_of(kDefault);
  EXPECT_THAT(
      in_pieces(job.model.blocks[0].modules, options(kDefault)),
      ElementsAre("attention.qkv forward", "attention.out forward", "mlp.in forward",
                  "mlp.out forward", "mlp.out input gradient", "attention.out input gradient"));
  EXPECT_THAT(in_pieces(job.model.after, options(kDefault)), IsEmpty());
  EXPECT_THAT(in_pieces(kColumn, options(kDefault, 1)), IsEmpty());
  const std::vector<Module> latent{
      testing::linear(ModuleKind::kPlainLinear, "down", kHidden, 128),
      testing::linear(ModuleKind::kColumnLinear, "up", 128, kHidden),
      testing::linear(ModuleKind::kRowLinear, "out", kHidden, kHidden)};
  EXPECT_THAT(in_pieces(latent, options(kDefault)), IsEmpty());
  const std::vector<Module> two{
      testing::linear(ModuleKind::kColumnLinear, "q", kHidden, kHidden),
      testing::linear(ModuleKind::kColumnLinear, "kv", kHidden, 2 * kHidden)};
  EXPECT_THAT(in_pieces(two, options(kDefault)), ElementsAre("q forward", "kv forward"));
  EXPECT_DOUBLE_EQ(end_of(forward_pass(two, options(kDefault)), 3, 10, 0), 3 * 10 + 6);
}

// Shared experts are an MLP; routed ones are exchanged otherwise.
TEST(ProductPieces, SharedExpertsOverlap) {
  Module moe = testing::linear(ModuleKind::kMoe, "moe", kHidden, kHidden);
  moe.experts = 8;
  moe.topk = 2;
  moe.expert_ffn = 256;
  moe.shared_ffn = 512;
  EXPECT_THAT(in_pieces({moe}, options(kDefault)),
              ElementsAre("moe.shared.in forward", "moe.shared.out forward",
                          "moe.shared.out input gradient"));
  EXPECT_THAT(in_pieces({moe}, options(kAll)),
              ElementsAre("moe.shared.in forward", "moe.shared.out forward",
                          "moe.shared.out input gradient", "moe.shared.in input gradient"));
}

TEST(ProductPieces, StepsAreValidAndRun) {
  for (const ProductOverlap overlap : {kDefault, kAll, ProductOverlap{false, true, false}}) {
    for (const Precision precision : {Precision::kBf16, Precision::kFp8}) {
      Job job = job_of(overlap);
      job.precision = precision;
      job.recompute = Recompute::kFull;
      const Workload workload = exact_workload(job, [](const Operator&) { return Time::us(1); });
      validate(workload);
      EXPECT_GT(testing::simulate_free(workload).total, Time());
    }
  }
}

TEST(ProductPieces, BrokenRulesAreNamed) {
  const auto error = [](const Job& job) -> std::string {
    try {
      check_job(job);
    } catch (const Error& broken) {
      return broken.what();
    }
    return "no error";
  };
  Job job = job_of(kDefault);
  job.sequence_parallel = false;
  EXPECT_THAT(error(job), HasSubstr("--tp_comm_overlap: only what is cut along the sequence"));
  job.gpus = job.tp = 1;
  check_job(job);  // nothing overlaps
  job = job_of(kDefault, 2);
  job.model.blocks[0].modules.back().out = 510;
  EXPECT_THAT(error(job), HasSubstr("the width of mlp.out (510) does not divide into 4 pieces"));
  job.product_overlap.reduce = false;
  check_job(job);
}

}  // namespace
}  // namespace lockstep::product_pieces_test
