#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/exact/memory.h"
#include "generator/exact/schedule.h"
#include "tests/support/exact_models.h"

namespace lockstep::exact_memory_test {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kHidden = 1024, kHeads = 16, kSeq = 512, kBatch = 4, kVocabulary = 4096;
constexpr std::int64_t kSbh = kSeq * kBatch * kHidden;
constexpr std::int64_t kScores = 5 * kHeads * kSeq * kSeq * kBatch;  // 5 a s^2 b

Job gpt_job(std::int64_t tp, bool sequence_parallel) {
  Job job;
  job.model = testing::gpt(8, kHidden, kHeads, kVocabulary, kSeq);
  job.gpus = job.tp = tp;
  job.sequence_parallel = sequence_parallel;
  job.seq = kSeq;
  job.micro_batch = job.global_batch = kBatch;
  job.flash_attention = false;
  job.dropout = true;
  return job;
}

Bytes layer(const Job& job) { return kept_activations(job.model.blocks[0].modules, job); }

// Korthikanti et al. 2022, table 2.
TEST(ExactMemory, ActivationsOfALayerAsPublished) {
  EXPECT_EQ(layer(gpt_job(1, false)), Bytes(34 * kSbh + kScores));
  EXPECT_EQ(layer(gpt_job(8, false)), Bytes(10 * kSbh + 24 * kSbh / 8 + kScores / 8));
  EXPECT_EQ(layer(gpt_job(8, true)), Bytes(34 * kSbh / 8 + kScores / 8));
  Job job = gpt_job(8, true);
  job.recompute = Recompute::kSelective;
  EXPECT_EQ(layer(job), Bytes(34 * kSbh / 8));
  job = gpt_job(8, false);
  job.recompute = Recompute::kFull;
  EXPECT_EQ(layer(job), Bytes(2 * kSbh));
}

// Section 4.3: with one stage, outside the layers: the embedding's dropout mask s b h / t, and 4 s
// b h / t (1 + v / h) for the last norm, the head's input and the fp32 logits.
TEST(ExactMemory, ActivationsOutsideTheLayersAsPublished) {
  const Job job = gpt_job(8, true);
  EXPECT_EQ(kept_activations(job.model.before, job), Bytes(kSbh / 8));
  EXPECT_EQ(kept_activations(job.model.after, job),
            Bytes(4 * kSbh / 8 + 4 * kSeq * kBatch * kVocabulary / 8));
  EXPECT_EQ(memory_by_stage(job)[0].activations,
            Bytes(8 * (34 * kSbh / 8 + kScores / 8) + kSbh / 8 + 4 * kSbh / 8 +
                  4 * kSeq * kBatch * kVocabulary / 8));
}

// Section 4.2.3: the first of pp stages keeps pp microbatches of its layers, L / pp each: as much
// as one microbatch of all L. Stage s keeps pp - s. Interleaved: 1 + (pp - 1) / (pp vpp) times
// that.
TEST(ExactMemory, PipelineKeepsMicrobatchesInFlight) {
  Job job = gpt_job(1, false);
  job.gpus = job.pp = 4;
  job.global_batch = 8 * kBatch;
  const Bytes one = layer(job);
  std::vector<StageMemory> stages = memory_by_stage(job);
  EXPECT_EQ(stages[0].activations, one * 8 + Bytes(4 * kSbh));
  EXPECT_EQ(stages[1].activations, one * (2 * 3));
  EXPECT_EQ(stages[2].activations, one * (2 * 2));
  job.vpp = 2;
  stages = memory_by_stage(job);
  // 2 (pp - 1) + (vpp - 1) pp + 1 = 11 passes of one layer: 8 (1 + 3 / 8). Most embeddings' masks
  // are kept when the second forward pass of the steady state has made it 8 of the first chunk (the
  // first backward pass took one of the second chunk's four).
  EXPECT_EQ(stages[0].activations, one * 11 + Bytes(8 * kSbh));
  job.vpp = 1;
  job.schedule = "gpipe";
  EXPECT_EQ(memory_by_stage(job)[1].activations, one * (2 * 8));
}

// Qi et al. 2023, section 2.3: ZB-H1 keeps no more than 1F1B's first stage, pp microbatches, on all
// stages. DeepSeek-V3 report, table 2: DualPipe has all parameters twice and keeps pp + 1.
TEST(ExactMemory, SchedulesKeepAsManyMicrobatchesAsPublished) {
  Job job = gpt_job(1, false);
  job.gpus = job.pp = 4;
  job.global_batch = 16 * kBatch;
  job.model.before.clear();
  job.model.after.clear();
  const Bytes one = layer(job);
  const StageMemory first = memory_by_stage(job)[0];
  job.schedule = "zb-h1";
  for (const StageMemory& memory : memory_by_stage(job)) {
    EXPECT_EQ(memory.activations, one * (2 * 4));
    EXPECT_EQ(memory.parameters, first.parameters);
  }
  job.schedule = "dualpipe";
  for (const StageMemory& memory : memory_by_stage(job)) {
    EXPECT_EQ(memory.activations, one * (2 * 5));
    EXPECT_EQ(memory.parameters.dense, 2 * first.parameters.dense);
  }
}

// What a split backward pass computes again it holds until the weights' part: of two microbatches
// whose weights wait, 2 (10 + 100).
TEST(ExactMemory, WhatIsComputedAgainWaitsForTheWeights) {
  const auto slot = [](bool backward, std::int32_t microbatch, BackwardPart part) {
    PipelineSlot one;
    one.backward = backward;
    one.microbatch = microbatch;
    one.part = part;
    return one;
  };
  const std::vector<PipelineSlot> slots{
      slot(false, 0, BackwardPart::kWhole),  slot(true, 0, BackwardPart::kInput),
      slot(false, 1, BackwardPart::kWhole),  slot(true, 1, BackwardPart::kInput),
      slot(true, 0, BackwardPart::kWeights), slot(true, 1, BackwardPart::kWeights)};
  EXPECT_EQ(peak_kept(slots, std::vector<KeptByChunk>{{Bytes(10), Bytes(100)}}), Bytes(220));
  EXPECT_EQ(peak_kept(slots, std::vector<KeptByChunk>{{Bytes(10), Bytes(0)}}), Bytes(20));

  // Stage s of zb-h1 lets s microbatches wait for their weights' part; with the one whose input's
  // part has just begun they are s + 1, of two layers each. Before, inputs alone were counted.
  Job job = gpt_job(1, false);
  job.gpus = job.pp = 4;
  job.global_batch = 16 * kBatch;
  job.model.before.clear();
  job.model.after.clear();
  const Bytes layer_input(2 * kSbh);
  const Bytes again = (layer(job) - layer_input) * 2;
  job.recompute = Recompute::kFull;
  for (const StageMemory& memory : memory_by_stage(job)) {
    EXPECT_EQ(memory.working * 2, again);
  }
  job.schedule = "zb-h1";
  const std::vector<StageMemory> stages = memory_by_stage(job);
  for (std::int64_t s = 0; s < 4; ++s) {
    EXPECT_EQ(stages[static_cast<std::size_t>(s)].activations,
              layer_input * (2 * 4) + again * (s + 1))
        << s;
  }
}

// Where there are many microbatches the order is not written out.
TEST(ExactMemory, PeaksOfManyMicrobatchesAreThoseOfTheWholeOrder) {
  for (const PipelineSchedule* schedule : pipeline_schedules()) {
    for (const std::int64_t pp : {1, 2, 4, 6}) {
      for (const std::int64_t vpp : {1, 2, 5}) {
        const bool even = !schedule->bidirectional || pp % 2 == 0;
        if (!even || (vpp > 1 && (pp == 1 || schedule->one_chunk))) {
          continue;
        }
        for (std::int64_t rounds = 2; rounds <= 30; rounds += 7) {
          const PipelineShape shape{pp, vpp, rounds * pp};
          std::vector<KeptByChunk> kept;
          for (std::int64_t chunk = 0; chunk < schedule->chunks(shape); ++chunk) {
            kept.push_back({Bytes(1000 + 100 * chunk * chunk), Bytes(37 * chunk)});
          }
          for (std::int64_t stage = 0; stage < pp; ++stage) {
            EXPECT_EQ(peak_kept(*schedule, shape, stage, kept),
                      peak_kept(schedule->order(shape, stage), kept))
                << schedule->name << " pp " << pp << " vpp " << vpp << " rounds " << rounds;
          }
        }
      }
    }
  }
}

// Megatron Core, dist_optimizer.md: bytes a parameter with d data-parallel ranks.
TEST(ExactMemory, StatesOfAParameterAsPublished) {
  struct Row {
    Precision precision;
    std::int64_t whole, fixed, cut, gradient = 0;
  };
  for (const Row& row : {Row{Precision::kFp16, 20, 4, 16}, Row{Precision::kBf16, 18, 6, 12},
                         Row{Precision::kFp32, 16, 8, 8}, Row{Precision::kFp16, 18, 6, 12, 4},
                         Row{Precision::kBf16, 20, 4, 16, 2}, Row{Precision::kFp32, 16, 8, 8, 2}}) {
    Job job = gpt_job(1, false);
    job.precision = row.precision;
    job.gradient_bytes = row.gradient;
    job.gpus = 4;
    job.global_batch = 4 * kBatch;
    StageMemory memory = memory_by_stage(job)[0];
    const std::int64_t parameters = memory.parameters.dense;
    ASSERT_EQ(parameters % 4, 0);
    EXPECT_EQ(memory.weights + memory.gradients + memory.optimizer, Bytes(parameters * row.whole));
    job.sharding = Sharding::kZero1;
    memory = memory_by_stage(job)[0];
    EXPECT_EQ(memory.weights + memory.gradients, Bytes(parameters * row.fixed));
    EXPECT_EQ(memory.optimizer, Bytes(parameters / 4 * row.cut));
    job.sharding = Sharding::kZero2;
    EXPECT_EQ(memory_by_stage(job)[0].gradients, Bytes(memory.gradients.count() / 4));
    job.sharding = Sharding::kZero3;
    EXPECT_EQ(memory_by_stage(job)[0].weights, Bytes(memory.weights.count() / 4));
  }
}

// GPT-3 175B: 96 layers, hidden 12288, vocabulary 51200, 2048 positions: 12 L h^2 (1 + 13 / (12 h)
// + (v + s) / (12 L h)) parameters (SC'21, equation 2) and the last norm's 2 h.
TEST(ExactMemory, ParametersOfAllRanksAreTheModels) {
  for (const std::int64_t tp : {1, 8}) {
    for (const std::int64_t pp : {1, 8}) {
      Job job;
      job.model = testing::gpt(96, 12288, 96, 51200, 2048);
      job.tp = tp;
      job.pp = pp;
      job.gpus = tp * pp;
      std::int64_t sum = 0;
      for (const StageMemory& stage : memory_by_stage(job)) {
        sum += (stage.parameters.dense - stage.parameters.replicated) * tp +
               stage.parameters.replicated;
      }
      const std::int64_t tied_copy = pp > 1 ? 51200LL * 12288 : 0;
      EXPECT_EQ(sum, 96 * (12LL * 12288 * 12288 + 13LL * 12288) + (51200 + 2048) * 12288LL +
                         2 * 12288 + tied_copy);
    }
  }
}

TEST(ExactMemory, ExpertsOfAllRanksAreTheModels) {
  Job job;
  job.model = testing::llama(4, 64, 8, 4, 128, 256, 8);
  job.gpus = 8;
  job.tp = 2;
  job.ep = 4;
  job.expert_tp = 2;
  job.sequence_parallel = true;
  job.global_batch = 4;
  const StageMemory memory = memory_by_stage(job)[0];
  // 8 experts of 3 matrices 64 x 128 in each of 4 layers.
  EXPECT_EQ(memory.parameters.expert * job.ep * job.expert_tp, 4 * 8 * 3 * 64 * 128);
}

// DeepSeek's attention, bytes a token: the norm's input and its output, which queries and
// compressed keys and values both read, 2 x 2 h; the two latent norms' inputs and outputs, 2 x 2 (q
// + c); queries, keys and values, flash attention's 4 a head, and the output projection's input.
TEST(ExactMemory, LatentAttentionKeepsItsInputOnce) {
  constexpr std::int64_t kQueries = 384, kCompressed = 128, kRope = 16, kDim = 48, kValue = 32;
  Module core = testing::attention(kHeads, kHeads, kDim);
  core.value_dim = kValue;
  std::vector<Module> modules = {
      testing::norm("norm", kHidden),
      testing::linear(ModuleKind::kPlainLinear, "q_a", kHidden, kQueries),
      testing::norm("q_norm", kQueries),
      testing::linear(ModuleKind::kColumnLinear, "q_b", kQueries, kHeads * kDim),
      testing::linear(ModuleKind::kPlainLinear, "kv_a", kHidden, kCompressed + kRope),
      testing::norm("kv_norm", kCompressed),
      testing::linear(ModuleKind::kColumnLinear, "kv_b", kCompressed,
                      kHeads * (kDim - kRope + kValue)),
      core,
      testing::linear(ModuleKind::kRowLinear, "out", kHeads * kValue, kHidden)};
  Job job = gpt_job(1, false);
  job.flash_attention = true;
  job.dropout = false;
  constexpr std::int64_t kCore = 2 * kHeads * (2 * kDim + kValue) + 4 * kHeads;
  constexpr std::int64_t kOut = 2 * kHeads * kValue;
  EXPECT_EQ(
      kept_activations(modules, job),
      Bytes(kSeq * kBatch * (2 * 2 * kHidden + 2 * 2 * (kQueries + kCompressed) + kCore + kOut)));
  // V2-Lite's queries come straight from the hidden state.
  modules.erase(modules.begin() + 1, modules.begin() + 4);
  modules.insert(modules.begin() + 1,
                 testing::linear(ModuleKind::kColumnLinear, "q", kHidden, kHeads * kDim));
  EXPECT_EQ(kept_activations(modules, job),
            Bytes(kSeq * kBatch * (2 * 2 * kHidden + 2 * 2 * kCompressed + kCore + kOut)));
}

// Beside what is kept, the backward pass of a layer holds what it computes again: the scores 5 a
// s^2 b / t, of which flash attention has 4 bytes a head and token; or all but the layer's input.
TEST(ExactMemory, WhatALayerComputesAgainIsHeldOnce) {
  Job job = gpt_job(8, true);
  EXPECT_EQ(memory_by_stage(job)[0].working, Bytes());
  job.recompute = Recompute::kSelective;
  EXPECT_EQ(memory_by_stage(job)[0].working, Bytes(kScores / 8));
  job.flash_attention = false;
  job.recompute = Recompute::kFull;
  EXPECT_EQ(memory_by_stage(job)[0].working, Bytes(32 * kSbh / 8 + kScores / 8));
  job.flash_attention = true;
  job.recompute = Recompute::kSelective;
  EXPECT_EQ(memory_by_stage(job)[0].working, Bytes(4 * kHeads * kSeq * kBatch / 8));
}

// ZeRO-3 gathers two units, of parameters that other ranks have parts of: on 8 ranks in data and
// expert parallelism no rank shares its experts with another, and they stay as they are.
TEST(ExactMemory, OnlyWhatIsCutIsGathered) {
  Job job;
  job.model = testing::llama(4, 64, 8, 4, 128, 256, 8);
  job.gpus = 8;
  job.ep = 8;
  job.global_batch = 8;
  job.sharding = Sharding::kZero3;
  const std::int64_t table = 256 * 64;  // the embedding's or the head's; a layer's dense part:
  const std::int64_t layer_dense = 64 + 64 * (8 + 2 * 4) * 8 + 64 * 64 + 64 + 64 * 8;
  const std::int64_t experts = 3 * 64 * 128;
  const auto gathered = [&] { return memory_by_stage(job)[0].gathered; };
  EXPECT_EQ(gathered(), Bytes(2 * 2 * std::max(table + 64, layer_dense)));
  job.ep = 4;
  EXPECT_EQ(gathered(), Bytes(2 * 2 * (std::max(table + 64, layer_dense) + 2 * experts)));
  // One copy, whose experts are cut over the 8 tensor-parallel ranks alone.
  job.tp = 8;
  job.expert_tp = job.ep = 1;
  job.sequence_parallel = true;
  EXPECT_EQ(gathered(), Bytes(2 * 2 * 8 * experts));
}

// Two copies of a model on 8 ranks, its experts over 2: a copy's 4 ranks cut dense parameters in 4
// and hold each expert twice.
TEST(ExactMemory, EachCopyOfAShardedModelHasAllExperts) {
  Job job;
  job.model = testing::llama(4, 64, 8, 4, 128, 256, 8);
  job.gpus = 8;
  job.ep = 2;
  job.global_batch = 8;
  job.sharding = Sharding::kZero3;
  job.hsdp_replicas = 2;
  const StageMemory memory = memory_by_stage(job)[0];
  ASSERT_EQ(memory.parameters.expert, 4 * 4 * 3 * 64 * 128);
  const std::int64_t held = memory.parameters.dense / 4 + memory.parameters.expert / 2;
  EXPECT_EQ(memory.weights, Bytes(2 * held));
  EXPECT_EQ(memory.optimizer, Bytes(12 * held));
  job.ep = 8;
  EXPECT_THROW(memory_by_stage(job), Error) << "one rank alone holds an expert";
}

TEST(ExactMemory, TableJoinsStagesThatAreAlike) {
  Job job = gpt_job(1, false);
  job.gpus = job.pp = 4;
  job.recompute = Recompute::kFull;
  job.schedule = "gpipe";
  const std::string table = memory_table(memory_by_stage(job));
  EXPECT_THAT(table, HasSubstr("      1-2 "));
  EXPECT_EQ(std::ranges::count(table, '\n'), 4);
}

}  // namespace
}  // namespace lockstep::exact_memory_test
