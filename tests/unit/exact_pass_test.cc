#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "generator/exact/folded_pass.h"
#include "generator/exact/pass.h"
#include "generator/exact/split_pass.h"
#include "tests/support/exact_models.h"

namespace lockstep::exact_pass_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kSeq = 256, kHidden = 512;
constexpr Bytes kRows = Bytes(kSeq * kHidden * 2);  // a microbatch of hidden states in bf16

PassOptions options(std::int64_t tp, bool sequence_parallel, std::int64_t cp = 1) {
  Job job;
  job.gpus = tp * cp;
  job.tp = tp;
  job.cp = cp;
  job.seq = kSeq * cp;
  job.sequence_parallel = sequence_parallel;
  PassOptions result;
  result.sizes = rank_sizes(job);
  return result;
}

/// "what bytes group" of each transfer, in order.
std::vector<std::string> transfers(const Pass& pass) {
  std::vector<std::string> texts;
  for (const PassStep& step : pass.steps) {
    if (step.transfer.comm != CommType::kNone) {
      texts.push_back(std::string(name_of(step.transfer.comm)) + " " +
                      std::to_string(step.transfer.bytes.count() / kRows.count()) + " " +
                      std::string(name_of(step.transfer.group)));
    }
  }
  return texts;
}

const std::vector<Module>& gpt_layer() {
  static const std::vector<Module> kLayer =
      testing::gpt(1, kHidden, 8, 1024, 256).blocks[0].modules;
  return kLayer;
}

// Shoeybi et al.: two all-reduces forward, two backward. Korthikanti et al.: all-gather and
// reduce-scatter instead, twice each way, and two more all-gathers backward.
TEST(ExactPass, TensorParallelLayerCommunicatesAsPublished) {
  const PassOptions plain = options(4, false), sequence = options(4, true);
  EXPECT_THAT(transfers(forward_pass(gpt_layer(), plain)),
              ElementsAre("allreduce 1 tp", "allreduce 1 tp"));
  EXPECT_THAT(transfers(backward_pass(gpt_layer(), plain)),
              ElementsAre("allreduce 1 tp", "allreduce 1 tp"));
  EXPECT_THAT(
      transfers(forward_pass(gpt_layer(), sequence)),
      ElementsAre("allgather 1 tp", "reducescatter 1 tp", "allgather 1 tp", "reducescatter 1 tp"));
  EXPECT_THAT(transfers(backward_pass(gpt_layer(), sequence)),
              ElementsAre("allgather 1 tp", "allgather 1 tp", "reducescatter 1 tp",
                          "allgather 1 tp", "allgather 1 tp", "reducescatter 1 tp"));
  EXPECT_THAT(transfers(forward_pass(gpt_layer(), options(1, false))), IsEmpty());
}

// 2 kHidden bytes a token are one kRows; what has a group of one is left out.
TEST(ExactPass, CustomModulesCommunicateWhatTheirAuthorGives) {
  Module custom = testing::linear(ModuleKind::kCustom, "filter", 0, 0);
  custom.custom_flops = 1000;
  custom.custom_forward = {{CommType::kAllToAll, ModuleGroup::kTp, 2. * kHidden},
                           {CommType::kAllReduce, ModuleGroup::kEp, 2. * kHidden}};
  custom.custom_backward = {{CommType::kAllGather, ModuleGroup::kTp, 6. * kHidden}};
  const std::vector<Module> modules{custom};
  EXPECT_THAT(transfers(forward_pass(modules, options(4, false))), ElementsAre("alltoall 1 tp"));
  EXPECT_THAT(transfers(backward_pass(modules, options(4, false))), ElementsAre("allgather 3 tp"));
  EXPECT_THAT(transfers(forward_pass(modules, options(1, false))), IsEmpty());
  const Pass pass = forward_pass(modules, options(4, false));
  ASSERT_EQ(pass.steps.size(), 2U);
  EXPECT_EQ(pass.steps[1].name, "filter alltoall");
  EXPECT_THAT(pass.steps[1].after, ElementsAre(0));
}

TEST(ExactPass, FullRecomputationRepeatsForwardCommunication) {
  PassOptions full = options(4, true);
  full.recompute = Recompute::kFull;
  EXPECT_EQ(transfers(backward_pass(gpt_layer(), full)).size(), 4U + 6U);
  full.recompute = Recompute::kSelective;
  EXPECT_EQ(transfers(backward_pass(gpt_layer(), full)).size(), 6U);
}

// Ring on 3 ranks, keys and values of 512 features each: twice the rows of hidden states a chunk.
// Forward 2 rounds, each a send and a receive; backward those and 2 of gradients.
TEST(ExactPass, ContextParallelAttention) {
  PassOptions ring = options(1, false, 3);
  EXPECT_EQ(transfers(forward_pass(gpt_layer(), ring)),
            std::vector<std::string>(4, "sendrecv 2 cp"));
  EXPECT_EQ(transfers(backward_pass(gpt_layer(), ring)),
            std::vector<std::string>(8, "sendrecv 2 cp"));
  ring.recompute = Recompute::kSelective;
  EXPECT_EQ(transfers(backward_pass(gpt_layer(), ring)).size(), 12U);
  PassOptions gather = options(1, false, 3);
  gather.context_comm = ContextComm::kAllGather;
  EXPECT_THAT(transfers(forward_pass(gpt_layer(), gather)), ElementsAre("allgather 6 cp"));
  EXPECT_THAT(transfers(backward_pass(gpt_layer(), gather)),
              ElementsAre("allgather 6 cp", "reducescatter 6 cp"));
  PassOptions ulysses = options(1, false, 2);
  ulysses.context_comm = ContextComm::kAllToAll;
  EXPECT_THAT(transfers(forward_pass(gpt_layer(), ulysses)),
              ElementsAre("alltoall 3 cp", "alltoall 1 cp"));
  EXPECT_THAT(transfers(backward_pass(gpt_layer(), ulysses)),
              ElementsAre("alltoall 1 cp", "alltoall 3 cp"));
}

// Queries are of the decoder's stream, keys and values of the encoder's output: neither shares the
// other's gathering nor its gradient's reduction.
TEST(ExactPass, CrossAttentionReadsTwoInputs) {
  std::vector<Module> modules{
      testing::linear(ModuleKind::kColumnLinear, "cross.q", kHidden, kHidden),
      testing::linear(ModuleKind::kColumnLinear, "cross.kv", kHidden, 2 * kHidden)};
  EXPECT_THAT(transfers(forward_pass(modules, options(4, true))), ElementsAre("allgather 1 tp"));
  modules[1].cross = true;
  EXPECT_THAT(transfers(forward_pass(modules, options(4, true))),
              ElementsAre("allgather 1 tp", "allgather 1 tp"));
  EXPECT_THAT(
      transfers(backward_pass(modules, options(4, true))),
      ElementsAre("allgather 1 tp", "reducescatter 1 tp", "allgather 1 tp", "reducescatter 1 tp"));
  EXPECT_THAT(transfers(backward_pass(modules, options(4, false))),
              ElementsAre("allreduce 1 tp", "allreduce 1 tp"));
}

// On 3 ranks: two rounds of keys and values (steps 0 and 1, 3 and 4), three parts (2, 7, 10), and
// two rounds of gradients (5 and 6, 8 and 9), the last beside the last part, with which nothing is
// left to send.
TEST(ExactPass, GradientsOfARingComeHomeBesideTheLastPart) {
  std::vector<Module> core{testing::attention_modules(kHidden, 8, 8, true, false)[2]};
  ASSERT_EQ(core.front().kind, ModuleKind::kAttention);
  core.front().name = "core";
  const Pass pass = backward_pass(core, options(1, false, 3));
  std::vector<std::string> names;
  for (const PassStep& step : pass.steps) {
    names.push_back(step.name);
  }
  EXPECT_THAT(
      names, ElementsAre("core ring backward send", "core ring backward receive", "core backward",
                         "core ring backward send", "core ring backward receive",
                         "core ring gradient send", "core ring gradient receive", "core backward",
                         "core ring gradient send", "core ring gradient receive", "core backward"));
  EXPECT_THAT(pass.steps[8].after, ElementsAre(7, 4, 6));
  EXPECT_THAT(pass.steps[10].after, ElementsAre(7, 4, 6));
  EXPECT_THAT(pass.exits, ElementsAre(10, 9));
}

// 8 heads and 2 of keys and values, 64 each, on 4 ranks: half a key head a rank. All 12 64 = 768
// columns of the projection (1.5 rows of hidden states) are gathered and the gradient goes back;
// the weights are cut evenly all the same. Selective recomputation starts behind the gather.
TEST(ExactPass, FewerKeyHeadsThanRanksAreGathered) {
  const std::vector<Module> modules = testing::attention_modules(kHidden, 8, 2, true, false);
  const auto heads_of = [&](const Pass& pass) {
    std::vector<std::string> found;
    for (const PassStep& step : pass.steps) {
      if (step.name.find("heads") != std::string::npos) {
        EXPECT_EQ(step.transfer.bytes, kRows * 3 / 2);
        found.push_back(std::string(name_of(step.transfer.comm)));
      }
    }
    return found;
  };
  PassOptions four = options(4, true);
  EXPECT_THAT(heads_of(forward_pass(modules, four)), ElementsAre("allgather"));
  EXPECT_THAT(heads_of(backward_pass(modules, four)), ElementsAre("reducescatter"));
  EXPECT_EQ(parameters_of(modules[1], four.sizes).dense, kHidden * 768 / 4);
  four.recompute = Recompute::kSelective;
  EXPECT_THAT(heads_of(backward_pass(modules, four)), ElementsAre("reducescatter"));
  four.recompute = Recompute::kFull;
  EXPECT_THAT(heads_of(backward_pass(modules, four)), ElementsAre("allgather", "reducescatter"));
  EXPECT_THAT(heads_of(forward_pass(modules, options(2, true))), IsEmpty());
}

// The norm of key heads sees one head of 64 on each of 4 ranks, not half a head.
TEST(ExactPass, ANormOfHeadsSeesAHeadAtLeast) {
  Module norm = testing::norm("k_norm", 2 * 64);
  norm.in = 64;
  const RankSizes sizes = options(4, true).sizes;
  EXPECT_EQ(norm_width_in(Region::kTensor, norm, sizes), 64);
  EXPECT_EQ(norm_width_in(Region::kTensor, testing::norm("q", 8 * 64), sizes), 128);
}

/// Bytes of the all-gathers and the number of all-reduces of 4 bytes in a layer's forward pass.
std::pair<Bytes, int> fp8_gathers(Fp8Recipe recipe) {
  Job job;
  job.gpus = job.tp = 4;
  job.seq = kSeq;
  job.sequence_parallel = true;
  job.precision = Precision::kFp8;
  job.fp8_recipe = recipe;
  PassOptions fp8;
  fp8.sizes = rank_sizes(job);
  Bytes gathered;
  int largest = 0;
  for (const PassStep& step : forward_pass(gpt_layer(), fp8).steps) {
    gathered += step.transfer.comm == CommType::kAllGather ? step.transfer.bytes : Bytes();
    largest += step.transfer.comm == CommType::kAllReduce && step.transfer.bytes == Bytes(4);
  }
  return {gathered, largest};
}

// Two gathers of hidden states a layer, a byte an element. Blocks add 4 bytes for 128 elements or 1
// for 32; one scale a tensor, from its own values, needs their largest before each gather.
TEST(ExactPass, ScalesOfFp8) {
  const Bytes plain(2 * kSeq * kHidden);
  EXPECT_EQ(fp8_gathers(Fp8Recipe::kDelayed), std::pair(plain, 0));
  EXPECT_EQ(fp8_gathers(Fp8Recipe::kTensorwise), std::pair(plain, 2));
  EXPECT_EQ(fp8_gathers(Fp8Recipe::kBlockwise), std::pair(plain + Bytes(plain.count() / 32), 0));
  EXPECT_EQ(fp8_gathers(Fp8Recipe::kMxfp8), std::pair(plain + Bytes(plain.count() / 32), 0));
}

// DeepSeek's attention: the compressed queries (1.5 times the hidden rows here) and the compressed
// keys and values (960) with the rotary part of the keys (64) are gathered, each on its own. The
// rotary part is multiplied by no weight: it stays bf16 in fp8, and is not gathered again; but it
// has a gradient.
TEST(ExactPass, CompressedProjectionsAreGatheredApart) {
  using testing::linear;
  const std::vector<Module> mla{linear(ModuleKind::kPlainLinear, "q.down", 512, 768),
                                testing::norm("q.norm", 768),
                                linear(ModuleKind::kColumnLinear, "q.up", 768, 2048),
                                linear(ModuleKind::kPlainLinear, "kv.down", 512, 1024),
                                testing::norm("kv.norm", 960),
                                linear(ModuleKind::kColumnLinear, "kv.up", 960, 4096)};
  const auto moved = [](const Pass& pass, CommType comm) {
    std::vector<std::int64_t> per_token;
    for (const PassStep& step : pass.steps) {
      if (step.transfer.comm == comm) {
        per_token.push_back(step.transfer.bytes.count() / kSeq);
      }
    }
    return per_token;
  };
  PassOptions some = options(4, true);
  for (const PassStep& step : forward_pass(mla, some).steps) {
    if (step.name == "kv.down forward" || step.name == "kv.norm forward") {
      EXPECT_EQ(step.op.kind == OperatorKind::kGemm ? step.op.m : kSeq / 4, kSeq / 4);
    }
  }
  EXPECT_THAT(moved(forward_pass(mla, some), CommType::kAllGather), ElementsAre(2 * 768, 2 * 1024));
  EXPECT_THAT(moved(backward_pass(mla, some), CommType::kAllGather), ElementsAre(2 * 960, 2 * 768));
  EXPECT_THAT(moved(backward_pass(mla, some), CommType::kReduceScatter),
              ElementsAre(2 * 1024, 2 * 768));
  some.sizes.operand = 1;
  EXPECT_THAT(moved(forward_pass(mla, some), CommType::kAllGather), ElementsAre(768, 960 + 2 * 64));
  EXPECT_THAT(moved(backward_pass(mla, some), CommType::kAllGather), ElementsAre(960, 768));
  EXPECT_THAT(moved(backward_pass(mla, some), CommType::kReduceScatter),
              ElementsAre(2 * 1024, 2 * 768));
}

// Side by side, gate and up read the same input.
TEST(ExactPass, LinearsSideBySideShareTheirInput) {
  using testing::linear;
  const std::vector<Module> mlp{linear(ModuleKind::kColumnLinear, "gate", 512, 1024),
                                linear(ModuleKind::kColumnLinear, "up", 512, 1024),
                                linear(ModuleKind::kActivation, "silu", 2048, 1024),
                                linear(ModuleKind::kRowLinear, "down", 1024, 512)};
  EXPECT_THAT(transfers(forward_pass(mlp, options(4, true))),
              ElementsAre("allgather 1 tp", "reducescatter 1 tp"));
  EXPECT_THAT(transfers(backward_pass(mlp, options(4, true))),
              ElementsAre("allgather 1 tp", "allgather 1 tp", "reducescatter 1 tp"));
}

// Attention beside the MLP: both read one norm's output, and their outputs are added up before they
// are reduced; with a norm each (GPT-NeoX) the inputs are two.
TEST(ExactPass, ParallelBranchesAreReducedOnce) {
  using testing::linear;
  std::vector<Module> shared = testing::attention_modules(kHidden, 8, 8, false, true);
  shared.insert(shared.begin() + 2, linear(ModuleKind::kColumnLinear, "mlp.in", kHidden, 1024));
  shared.insert(shared.begin() + 4, linear(ModuleKind::kActivation, "mlp.gelu", 1024, 1024));
  shared.back().parallel = true;
  shared.push_back(linear(ModuleKind::kRowLinear, "mlp.out", 1024, kHidden));
  EXPECT_THAT(transfers(forward_pass(shared, options(4, false))), ElementsAre("allreduce 1 tp"));
  EXPECT_THAT(transfers(backward_pass(shared, options(4, false))), ElementsAre("allreduce 1 tp"));
  EXPECT_THAT(transfers(forward_pass(shared, options(4, true))),
              ElementsAre("allgather 1 tp", "reducescatter 1 tp"));
  EXPECT_THAT(transfers(backward_pass(shared, options(4, true))),
              ElementsAre("allgather 1 tp", "allgather 1 tp", "reducescatter 1 tp"));

  std::vector<Module> apart = gpt_layer();
  const auto out = std::ranges::find(apart, "attention.out", &Module::name);
  out->parallel = true;
  EXPECT_THAT(transfers(forward_pass(apart, options(4, false))), ElementsAre("allreduce 1 tp"));
  EXPECT_THAT(transfers(backward_pass(apart, options(4, false))),
              ElementsAre("allreduce 1 tp", "allreduce 1 tp"));
  EXPECT_THAT(transfers(forward_pass(apart, options(4, true))),
              ElementsAre("allgather 1 tp", "allgather 1 tp", "reducescatter 1 tp"));
  const auto residuals = [](const Pass& pass) {
    return std::ranges::count_if(pass.steps, [](const PassStep& step) {
      return step.name.find("residual") != std::string::npos;
    });
  };
  EXPECT_EQ(residuals(forward_pass(apart, options(4, false))), 1);
  EXPECT_EQ(residuals(backward_pass(apart, options(4, false))), 1);
}

// 8 experts of width 1024 on ep 4 x expert tp 2, gated, from and to 512: a rank has 2 of them, each
// 3 512 512 weights, 2 512 biases inside and 512 outside; the router 8 512 and 8.
TEST(ExactPass, ExpertsAndRouterMayHaveBiases) {
  std::vector<Module> layer = testing::llama(1, kHidden, 8, 8, 1024, 1024, 8).blocks[0].modules;
  Module& moe = layer.back();
  PassOptions some = options(2, true);
  some.sizes.ep = 4;
  some.sizes.etp = 2;
  moe.router_bias = true;
  EXPECT_EQ(parameters_of(moe, some.sizes).replicated, 8 * 512 + 8);
  EXPECT_EQ(parameters_of(moe, some.sizes).expert, 2 * 3 * 512 * 512);
  moe.bias = true;
  const ParameterCount all = parameters_of(moe, some.sizes);
  EXPECT_EQ(all.replicated, 8 * 512 + 8);
  EXPECT_EQ(all.expert, 2 * (3 * 512 * 512 + 2 * 512 + 512));
  ParameterCount ready;
  std::int64_t biases = 0;
  for (const PassStep& step : backward_pass(std::span(layer).last(1), some).steps) {
    ready += step.ready;
    biases += step.name.ends_with("bias gradient") ? 1 : 0;
  }
  EXPECT_EQ(ready, all);
  EXPECT_EQ(biases, 2);
}

// 8 experts, top-2, ep 4, expert tp 2: each rank sends two copies of its 128 rows (sequence
// parallel), so a buffer of 1 in units of the 256 rows; gathered over two ranks 2.
TEST(ExactPass, ExpertsDispatchAndCombine) {
  const std::vector<Module> layer =
      testing::llama(1, kHidden, 8, 8, 1024, 1024, 8).blocks[0].modules;
  const std::span moe = std::span(layer).last(1);
  PassOptions some = options(2, true);
  some.sizes.ep = 4;
  some.sizes.etp = 2;
  const std::vector<std::string> both{"alltoall 1 ep", "allgather 2 tp.expert",
                                      "reducescatter 2 tp.expert", "alltoall 1 ep"};
  EXPECT_EQ(transfers(forward_pass(moe, some)), both);
  EXPECT_EQ(transfers(backward_pass(moe, some)), both);
  some.sizes.routed = 2;  // twice the mean on this rank
  EXPECT_EQ(transfers(forward_pass(moe, some)).front(), "alltoall 2 ep");
  some.sizes.capacity = true;
  some.sizes.routed = 1.25;  // 256 copies x 1.25 over 8 experts: 40 each
  EXPECT_EQ(dispatched_rows(moe.front(), some.sizes), 320);
}

// Shared experts are an MLP cut over tp: what they read is gathered, and once more for the weight's
// gradient, beside the input's; the reduction of that runs beside the weight's.
TEST(ExactPass, SharedExpertsAreGatheredAgain) {
  std::vector<Module> moe{testing::llama(1, kHidden, 8, 8, 1024, 1024, 8).blocks[0].modules.back()};
  ASSERT_EQ(moe.front().kind, ModuleKind::kMoe);
  moe.front().shared_ffn = 1024;
  PassOptions some = options(2, true);
  some.sizes.etp = 1;
  EXPECT_THAT(transfers(forward_pass(moe, some)),
              ElementsAre("allgather 1 tp", "reducescatter 1 tp"));
  const Pass backward = backward_pass(moe, some);
  EXPECT_THAT(transfers(backward),
              ElementsAre("allgather 1 tp", "allgather 1 tp", "reducescatter 1 tp"));
  const auto step = [&](const char* name) -> const PassStep& {
    return *std::ranges::find(backward.steps, name, &PassStep::name);
  };
  const auto place = [&](const char* name) {
    return static_cast<std::int32_t>(&step(name) - backward.steps.data());
  };
  EXPECT_TRUE(step("moe.shared gather again").weights);
  EXPECT_THAT(step("moe.shared.in weight gradient").after,
              ElementsAre(place("moe.shared.in input gradient"), place("moe.shared gather again")));
  EXPECT_THAT(step("moe.shared gradient scatter").after,
              ElementsAre(place("moe.shared.in input gradient")));
  // One scale a tensor: the largest value of the input, and of the output's gradient.
  some.sizes.shares_largest = true;
  EXPECT_EQ(transfers(forward_pass(moe, some)).size(), 3U);
  EXPECT_EQ(transfers(backward_pass(moe, some)).size(), 4U);
}

TEST(ExactPass, Fp8GathersAndDispatchesOneByte) {
  PassOptions fp8 = options(4, true);
  fp8.sizes.operand = 1;
  const Pass pass = forward_pass(gpt_layer(), fp8);
  std::vector<Bytes> bytes;
  for (const PassStep& step : pass.steps) {
    if (step.transfer.comm != CommType::kNone) {
      bytes.push_back(step.transfer.bytes);
    }
  }
  EXPECT_THAT(bytes, ElementsAre(kRows / 2, kRows, kRows / 2, kRows));
}

// DeepSeek-V3 report, section 3.3.3: what is dispatched is in fp8, forward the experts' inputs and
// backward the gradients of their outputs; what is combined stays bf16. So is all by other recipes.
TEST(ExactPass, Fp8DispatchesGradientsToo) {
  const std::vector<Module> layer =
      testing::llama(1, kHidden, 8, 8, 1024, 1024, 8).blocks[0].modules;
  const std::span moe = std::span(layer).last(1);
  PassOptions fp8 = options(2, true);
  fp8.sizes.ep = 4;
  fp8.sizes.etp = 2;
  fp8.sizes.operand = 1;
  for (const bool operands : {true, false}) {
    fp8.sizes.dispatches_operands = operands;
    const std::int64_t wide = operands ? 1 : 2;
    for (const Pass& pass : {forward_pass(moe, fp8), backward_pass(moe, fp8)}) {
      std::vector<Bytes> bytes;
      for (const PassStep& step : pass.steps) {
        if (step.transfer.comm != CommType::kNone) {
          bytes.push_back(step.transfer.bytes);
        }
      }
      EXPECT_THAT(bytes, ElementsAre(wide * kRows / 2, wide * kRows, 2 * kRows, kRows));
    }
  }
  Job job;
  job.model = testing::llama(1, kHidden, 8, 8, 1024, 1024, 8);
  job.precision = Precision::kFp8;
  EXPECT_FALSE(rank_sizes(job).dispatches_operands);
  job.fp8_recipe = Fp8Recipe::kBlockwise;
  EXPECT_TRUE(rank_sizes(job).dispatches_operands);
}

// Three all-reduces of one fp32 number a token.
TEST(ExactPass, HeadReducesTheLossOverTheVocabulary) {
  const Model model = testing::gpt(1, kHidden, 8, 1024, 256);
  const Pass pass = forward_pass(model.after, options(4, false));
  std::int64_t reductions = 0;
  for (const PassStep& step : pass.steps) {
    if (step.transfer.comm == CommType::kAllReduce) {
      EXPECT_EQ(step.transfer.bytes, Bytes(kSeq * 4));
      ++reductions;
    }
  }
  EXPECT_EQ(reductions, 3);
}

// The gradients of all parameters become ready, each once.
TEST(ExactPass, ParametersBecomeReadyOnce) {
  for (const std::int64_t experts : {0, 8}) {
    const Model model = testing::llama(1, kHidden, 8, 2, 1024, 1024, experts);
    const PassOptions some = options(2, true);
    for (const auto* modules : {&model.before, &model.blocks[0].modules, &model.after}) {
      ParameterCount ready;
      for (const PassStep& step : backward_pass(*modules, some).steps) {
        ready += step.ready;
      }
      EXPECT_EQ(ready, parameters_of(*modules, some));
    }
  }
}

// A GEMM and what follows without communication become one step; the gather again is beside the
// input's gradient, which it is not waited for.
TEST(ExactPass, FoldedStepsKeepTheOverlap) {
  const auto one = [](const Operator&) { return Time::us(1); };
  const FoldedPass alone = fold(forward_pass(gpt_layer(), options(1, false)), one);
  ASSERT_EQ(alone.steps.size(), 1U);
  EXPECT_EQ(alone.steps[0].compute, Time::us(10));  // 8 modules and two residual additions
  const std::vector<Module> column{testing::linear(ModuleKind::kColumnLinear, "column", 512, 1024)};
  const FoldedPass cut = fold(backward_pass(column, options(4, true)), one);
  // 0: gather again, 1: input's gradient, 2: its reduce-scatter, 3: weight's gradient.
  ASSERT_EQ(cut.steps.size(), 4U);
  EXPECT_THAT(cut.steps[1].after, IsEmpty());
  EXPECT_THAT(cut.steps[2].after, ElementsAre(1));
  EXPECT_THAT(cut.steps[3].after, ElementsAre(1, 0));
  EXPECT_THAT(cut.exits, ElementsAre(3, 2));
}

// Steps 0 input gradient, 1 gather for the weights, 2 weights after both, 3 next input gradient,
// which came after 2 and so after 0; 4 the next weights.
TEST(SplitPass, WeightsWaitForNothingOfTheInputsPart) {
  const auto step = [](const char* name, std::vector<std::int32_t> after, bool weights) {
    PassStep out;
    out.name = name;
    out.after = std::move(after);
    out.weights = weights;
    return out;
  };
  Pass pass;
  pass.steps = {step("input", {}, false), step("gather", {}, true), step("weights", {0, 1}, true),
                step("next input", {2}, false), step("next weights", {3}, true)};
  pass.exits = {4};
  const SplitPass split = split_weights(pass);
  ASSERT_EQ(split.input.steps.size(), 2U);
  EXPECT_EQ(split.input.steps[1].name, "next input");
  EXPECT_EQ(split.input.steps[1].after, std::vector<std::int32_t>{0});
  EXPECT_EQ(split.input.exits, std::vector<std::int32_t>{1});
  ASSERT_EQ(split.weights.steps.size(), 3U);
  EXPECT_EQ(split.weights.steps[1].after, std::vector<std::int32_t>{0});
  EXPECT_TRUE(split.weights.steps[2].after.empty());
  EXPECT_EQ(split.weights.exits, (std::vector<std::int32_t>{1, 2}));
}

}  // namespace
}  // namespace lockstep::exact_pass_test
