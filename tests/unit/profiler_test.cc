#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/compute/compute_times.h"
#include "generator/compute_profile.h"
#include "generator/exact/exact_workload.h"
#include "generator/exact/vocabulary.h"
#include "generator/model/zoo.h"
#include "planner/aceso/tables.h"
#include "planner/metis/profile.h"
#include "profiler/aceso_profile.h"
#include "profiler/job_kernels.h"
#include "profiler/outputs.h"
#include "profiler/profile_plan.h"
#include "profiler/statistics.h"
#include "tests/support/fake_device.h"

namespace lockstep::profiler_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::FakeDevice;
using ::testing::HasSubstr;
using testing::measured;

Job job_of(const char* model, std::int64_t layers, std::int64_t tp, bool sp = false) {
  Job job;
  job.model = find_model(model, {{"layers", static_cast<double>(layers)}});
  job.gpus = job.tp = tp;
  job.sequence_parallel = sp;
  job.seq = 1024;
  job.gpu_type = "H200";
  return with_padded_vocabulary(job);
}

std::vector<std::string> names_of(const std::vector<AiobPart>& parts) {
  std::vector<std::string> names;
  for (const AiobPart& part : parts) {
    names.push_back(part.name);
  }
  return names;
}

const Kernel& only(const std::vector<AiobPart>& parts, const std::string& name) {
  const auto found = std::ranges::find(parts, name, &AiobPart::name);
  EXPECT_NE(found, parts.end()) << name;
  EXPECT_EQ(found->kernels.size(), 1U) << name;
  return found->kernels.front();
}

TEST(Kernel, TextAndJson) {
  Kernel kernel = make_kernel(KernelKind::kAttention, Precision::kFp16, {1, 8, 2, 64, 128, 32, 16});
  kernel.causal = kernel.backward = true;
  EXPECT_EQ(to_text(kernel),
            "attention fp16 batch=1 heads=8 kv_heads=2 queries=64 keys=128 head_dim=32 "
            "value_dim=16 causal backward");
  Json json;
  write_kernel(kernel, json);
  EXPECT_EQ(read_kernel(JsonView(json, "k.json")), kernel);
  const Kernel norm = make_kernel(KernelKind::kNorm, Precision::kBf16, {4, 8}, false, "layer");
  EXPECT_EQ(to_text(norm), "norm bf16 rows=4 width=8 layer forward");
}

TEST(Kernel, CostsByHand) {
  // (2 x 3) (3 x 5): 60 operations; 2 (6 + 15 + 10) bytes.
  const KernelCost gemm = kernel_cost(make_kernel(KernelKind::kGemm, Precision::kBf16, {2, 5, 3}));
  EXPECT_EQ(gemm.flops, 60);
  EXPECT_EQ(gemm.bytes, 62);
  // A weight's gradient is added to in fp32: 2 (6 + 15) + 2 · 4 · 10; held once.
  const KernelCost weight = kernel_cost(
      make_kernel(KernelKind::kGemm, Precision::kBf16, {2, 5, 3}, false, "weight-gradient"));
  EXPECT_EQ(weight.bytes, 122);
  EXPECT_EQ(weight.footprint.count(), 82);
  // fp8 operands, 16-bit result: 6 + 15 + 20.
  EXPECT_EQ(kernel_cost(make_kernel(KernelKind::kGemm, Precision::kFp8, {2, 5, 3})).bytes, 41);
  // 2 heads, 4 queries, 4 keys, head 8: 2 · 2 · 16 · 16 halved; backward 2.5 times.
  Kernel attention = make_kernel(KernelKind::kAttention, Precision::kBf16, {1, 2, 1, 4, 4, 8, 8});
  EXPECT_EQ(kernel_cost(attention).flops, 1024);
  attention.causal = true;
  EXPECT_EQ(kernel_cost(attention).flops, 512);
  attention.backward = true;
  EXPECT_EQ(kernel_cost(attention).flops, 1280);
  // Adam: 28 bytes a parameter, of which 16 are held.
  const KernelCost adam = kernel_cost(make_kernel(KernelKind::kAdam, Precision::kBf16, {10}));
  EXPECT_EQ(adam.bytes, 280);
  EXPECT_EQ(adam.footprint.count(), 160);
}

TEST(Kernel, EveryKindHasACost) {
  for (int kind = 0; kind < kKernelKinds; ++kind) {
    Kernel kernel{static_cast<KernelKind>(kind)};
    const KernelTraits& traits = traits_of(kernel.kind);
    EXPECT_EQ(traits.kind, kernel.kind) << "the table's order";
    std::ranges::fill_n(kernel.sizes.begin(), static_cast<long>(traits.sizes.size()), 64);
    kernel.variant = traits.variants.empty() ? std::string_view() : traits.variants.back();
    const KernelCost cost = kernel_cost(kernel);
    EXPECT_GT(cost.bytes, 0) << to_text(kernel);
    EXPECT_GT(cost.footprint.count(), 0) << to_text(kernel);
  }
}

TEST(Plan, HasWhatTheGeneratorAsksFor) {
  for (const auto& [model, tp, sp] :
       {std::tuple("llama3-8b", 2, true), std::tuple("gpt3-1.3b", 4, false),
        std::tuple("mixtral-8x7b", 1, false), std::tuple("deepseek-v3", 1, false)}) {
    const Job job = job_of(model, 4, tp, sp);
    const ProfilePlan plan = plan_profile(job);
    const Measurements times = measured(plan.kernels);
    ComputeTimes compute(gpu_spec("H200"), job.precision,
                         std::make_shared<OperatorProfile>(operator_profile(plan, times)));
    (void)exact_workload(job, std::ref(compute));
    EXPECT_EQ(compute.counts().modelled, 0) << model;
    EXPECT_GT(compute.counts().measured, 20) << model;
    // Nothing of a known module falls back to a mere stream of bytes.
    for (const auto& [key, planned] : plan.operators) {
      for (const Kernel& kernel : planned.kernels) {
        if (kernel.kind == KernelKind::kStream) {
          EXPECT_THAT((std::set<std::string>{"gradient norm", "parameter copy", "gradient reset"}),
                      Contains(planned.name))
              << model;
        }
      }
    }
  }
}

TEST(Plan, TablesOfPositionsAreWhole) {
  const std::vector<Kernel> kernels = plan_profile(job_of("gpt3-1.3b", 2, 4)).kernels;
  const auto rows_of_table = [&](std::int64_t rows) {
    return std::ranges::count_if(kernels, [&](const Kernel& kernel) {
      return kernel.kind == KernelKind::kEmbedding && kernel.size("vocabulary") == rows;
    });
  };
  EXPECT_EQ(rows_of_table(2048), 2);  // both ways
  EXPECT_EQ(rows_of_table(512), 0);
}

TEST(Plan, BiasesOfExpertsAreSums) {
  const Job job = job_of("gpt-oss-20b", 2, 1);
  const JobKernels kernels(job);
  std::set<std::string> biases;
  (void)exact_workload(job, [&](const Operator& op) {
    if (op.name.ends_with("bias gradient")) {
      biases.insert(op.name);
      const Kernel kernel = kernels.of(op);
      EXPECT_EQ(kernel.kind, KernelKind::kBiasGradient) << op.name;
      EXPECT_NEAR(kernel_cost(kernel).bytes / op.bytes, 1, 1e-3) << op.name;
    }
    return Time::us(1);
  });
  EXPECT_TRUE(biases.contains("moe.experts.in bias gradient"));
  EXPECT_TRUE(biases.contains("moe.experts.out bias gradient"));
}

TEST(Plan, ReluIsNoGelu) {
  for (const Kernel& kernel : plan_profile(job_of("nemotron4-15b", 2, 1)).kernels) {
    EXPECT_NE(kernel.variant, "gelu");
  }
}

TEST(Plan, MemoryBoundKernelsMoveTheOperatorsBytes) {
  // The generator prices bytes, the profiler runs kernels: both count the same traffic.
  const Job job = job_of("llama3-8b", 2, 2, true);
  const JobKernels kernels(job);
  std::set<std::string> seen;
  (void)exact_workload(job, [&](const Operator& op) {
    if (op.kind == OperatorKind::kMemory && has_work(op) && seen.insert(op.name).second) {
      EXPECT_NEAR(kernel_cost(kernels.of(op)).bytes / op.bytes, 1, 1e-3) << op.name;
    }
    return Time::us(1);
  });
  EXPECT_GT(seen.size(), 8U);
}

TEST(Aiob, SectionsOfLlama) {
  const Job job = job_of("llama3-8b", 2, 2, true);
  const std::vector<AiobPart> parts = aiob_parts(job);
  EXPECT_THAT(names_of(parts),
              ElementsAre("Emb", "layernorm", "atten_qkv", "atten_rotary_emb", "atten_flash",
                          "atten_linear", "layernorm2", "mlp_linear_1", "mlp_gelu", "mlp_linear_2",
                          "layernorm_post", "logit_time", "param_time"));
  // 1024 tokens; 32 + 2 · 8 heads of 128 over 2 ranks.
  EXPECT_EQ(only(parts, "atten_qkv"),
            make_kernel(KernelKind::kGemm, Precision::kBf16, {1024, 3072, 4096}));
  EXPECT_EQ(only(parts, "mlp_linear_1"),
            make_kernel(KernelKind::kGemm, Precision::kBf16, {1024, 14336, 4096}));
  EXPECT_EQ(only(parts, "mlp_gelu").variant, "swiglu");
  EXPECT_EQ(only(parts, "layernorm"),
            make_kernel(KernelKind::kNorm, Precision::kBf16, {512, 4096}));  // sequence parallel
  EXPECT_EQ(only(parts, "atten_rotary_emb"),
            make_kernel(KernelKind::kRotary, Precision::kBf16, {1024, 20, 128}));
}

TEST(Aiob, UnfusedAttentionOfGptHasItsParts) {
  Job job = job_of("gpt3-1.3b", 2, 1);
  job.flash_attention = false;
  const auto names = names_of(aiob_parts(job));
  EXPECT_THAT(
      names, ::testing::IsSupersetOf({"atten_core_qk", "atten_core_softmax", "atten_core_contex"}));
  EXPECT_THAT(names, ::testing::Not(Contains("atten_rotary_emb")));  // learned positions
}

TEST(Aiob, LatentAttentionHasItsFiveLinears) {
  const std::vector<AiobPart> parts = aiob_parts(job_of("deepseek-v3", 8, 1));
  const auto names = names_of(parts);
  EXPECT_THAT(names, ::testing::IsSupersetOf({"attention_linear_q_lora", "attention_q_column",
                                              "attention_linear_kv_lora", "attention_kv_column",
                                              "attention_o_row", "mlp_router", "mlp_permute",
                                              "mlp_linear_1", "mlp_unpermute"}));
  // 128 query heads and one key for all.
  EXPECT_EQ(only(parts, "atten_rotary_emb"),
            make_kernel(KernelKind::kRotary, Precision::kBf16, {1024, 129, 64}));
}

TEST(Aiob, TheGeneratorReadsTheText) {
  const Job job = job_of("llama3-8b", 2, 1);
  const ProfilePlan plan = plan_profile(job);
  const Measurements times = measured(plan.kernels);
  const std::string text = aiob_text(plan, times);
  EXPECT_THAT(text, ::testing::StartsWith("train_iter:9\nEmb:\n    time_gpu_max: "));
  const ComputeProfile profile = ComputeProfile::from_aiob(text, false);
  double attention = 0, mlp = 0;
  for (const AiobPart& part : plan.aiob) {
    double sum = 0;
    for (const Kernel& kernel : part.kernels) {
      sum += aiob_summary(times.of(kernel).seconds).mean;
    }
    if (part.name.find("atten") != std::string::npos || part.name == "layernorm") {
      attention += sum;
    } else if (part.name.find("mlp") != std::string::npos || part.name == "layernorm2") {
      mlp += sum;
    }
  }
  // Nanoseconds; three decimals of a microsecond are cut a section, of which there are five.
  EXPECT_NEAR(static_cast<double>(*profile.find("attention_forward")), attention * 1e9, 5);
  EXPECT_NEAR(static_cast<double>(*profile.find("mlp_forward")), mlp * 1e9, 5);
  EXPECT_TRUE(profile.find("Emb").has_value());
  EXPECT_TRUE(profile.find("logit_time").has_value());
  EXPECT_GT(*profile.find("grad_backward"), 0);
}

TEST(Metis, ThePlannerReadsTheFile) {
  const Job job = job_of("gpt3-1.3b", 3, 2);
  const ProfilePlan plan = plan_profile(job);
  const Measurements times = measured(plan.kernels);
  const metis::Profile profile = metis::parse_profile(metis_json(job, times), "x.json");
  ASSERT_EQ(profile.layer_ms.size(), 5U);  // embedding, three layers, head
  EXPECT_EQ(profile.layer_ms[1], profile.layer_ms[3]);
  // Metis takes 0 for a missing profile.
  EXPECT_NEAR(profile.sync_ms(), 1e-6, 1e-9);
  EXPECT_NE(profile.sync_ms(), 0);
  // The norm, Adam, the reset and the copy.
  const std::int64_t n =
      plan.kernels[static_cast<std::size_t>(
                       std::ranges::find(plan.kernels, KernelKind::kAdam, &Kernel::kind) -
                       plan.kernels.begin())]
          .size("elements");
  EXPECT_NEAR(profile.optimizer_ms, 1e3 * (4 * 5e-6 + static_cast<double>(n) * 42 / 2e12), 1e-6);
  const JobKernels kernels(job);
  double layer = 0;
  for (const Kernel& kernel : kernels.forward(job.model.blocks[0].modules)) {
    layer += times.median_s(kernel);
  }
  for (const Kernel& kernel : kernels.backward(job.model.blocks[0].modules)) {
    layer += times.median_s(kernel);
  }
  EXPECT_NEAR(profile.layer_ms[1], 1e3 * layer, 1e-9);
  // 12 h^2 + 13 h parameters a layer; of tp 2 a rank has half of the matrices and of qkv's and the
  // MLP's first biases, and all of the norms, of two biases.
  const double h = 2048;
  EXPECT_EQ(profile.layer_bytes[1], 2 * (12 * h * h / 2 + 7 * h / 2 + 6 * h));
  // 18 bytes a parameter of bf16, 20 with gradients in 16 bits, as of `generate --memory`; with
  // ZeRO-1 a rank of four has a quarter of 12 of them.
  const auto memory = [](const Job& of) {
    const ProfilePlan its = plan_profile(of);
    return metis::parse_profile(metis_json(of, measured(its.kernels)), "x.json").layer_mb[1];
  };
  Job other = job;
  other.gradient_bytes = 2;
  const double mega = 1 << 20, parameters = profile.layer_bytes[1] / 2;
  EXPECT_NEAR(memory(other) - profile.layer_mb[1], parameters * 2 / mega, 1e-6);
  other = job;
  other.gpus = 8;
  other.global_batch = 4 * job.micro_batch;
  const double whole = memory(other);
  other.sharding = Sharding::kZero1;
  EXPECT_NEAR(whole - memory(other), parameters * 12 * 3 / 4 / mega, 1e-4);
  EXPECT_EQ(metis_file_name(job, times.device), "DeviceType.H200_tp2_bs1.json");
  Job staged = job;
  staged.gpus = 4;
  staged.pp = 2;
  EXPECT_THROW(metis_json(staged, times), Error);
}

TEST(Aceso, ThePlannerReadsTheTable) {
  const AcesoGpt gpt{"scale-layer", 2, 2, 0};
  std::vector<Kernel> kernels;
  for (const AcesoOp& op : aceso_ops(gpt)) {
    kernels.insert(kernels.end(), op.forward.begin(), op.forward.end());
    kernels.insert(kernels.end(), op.backward.begin(), op.backward.end());
  }
  const Measurements times = measured(kernels);
  const aceso::OpTable table = aceso::parse_op_table(aceso_csv(gpt, times), "x.csv");
  ASSERT_EQ(table.names.size(), 16U);
  EXPECT_EQ(table.names[2], "enc-attention-qkv");
  // 4096 rows of 512 in 16 bits: 4 MB; qkv has 3 · 4 / 2 out beside the residual's 4.
  EXPECT_EQ(table.costs[2].input_mb, 8);
  EXPECT_EQ(table.costs[2].output_mb, 10);
  EXPECT_EQ(table.costs[2].weights_mb, 0.75);  // 512 · 1536 / 2 · 2 bytes
  EXPECT_EQ(table.costs[2].forward_reserved_mb, 1);
  EXPECT_NEAR(
      table.costs[2].forward_us,
      1e6 * FakeDevice::seconds(make_kernel(KernelKind::kGemm, Precision::kFp16, {4096, 768, 512})),
      5e-4);
  // The other way round the input is cut: the product's k halves, not its n.
  const std::vector<AcesoOp> rows = aceso_ops({"scale-layer", 2, 2, 1});
  EXPECT_EQ(rows[2].forward[0],
            make_kernel(KernelKind::kGemm, Precision::kFp16, {4096, 1536, 256}));
  EXPECT_THROW(aceso_ops({"7B", 1, 1, 0}), Error);
  EXPECT_THROW(aceso_ops({"scale-layer", 1, 3, 0}), Error);
}

TEST(Measurements, SurviveTheirText) {
  const Job job = job_of("mixtral-8x7b", 1, 1);
  Measurements times = measured(plan_profile(job).kernels);
  times.when = "2026-01-01T00:00:00Z";
  times.command = "lockstep profile";
  times.left_out = {"one: too large"};
  EXPECT_EQ(read_measurements(to_measurements_json(times), "m.json"), times);
}

TEST(Measurements, WhatCannotRunIsLeftOutWithTheReason) {
  FakeDevice device;
  device.refused = {KernelKind::kAttention};
  const Job job = job_of("llama3-8b", 1, 1);
  const ProfilePlan plan = plan_profile(job);
  const Measurements times = measure_all(device, plan.kernels, {});
  ASSERT_EQ(times.left_out.size(), 2U);  // forward and backward
  EXPECT_THAT(times.left_out[0], HasSubstr("causal forward: this device cannot"));
  EXPECT_THROW(aiob_text(plan, times), Error);
  EXPECT_LT(operator_profile(plan, times).times.size(), plan.operators.size());
  for (int kind = 0; kind < kKernelKinds; ++kind) {
    device.refused.insert(static_cast<KernelKind>(kind));
  }
  try {
    (void)measure_all(device, plan.kernels, {});
    ADD_FAILURE() << "nothing was measured";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kMissingPart);
  }
}

TEST(Measurements, EndWhenTimeIsUpOrTheGpuIsOfNoUse) {
  FakeDevice device;
  const ProfilePlan plan = plan_profile(job_of("llama3-8b", 1, 1));
  const std::size_t all = plan.kernels.size();
  const Measurements some =
      measure_all(device, plan.kernels, {}, [](std::size_t done) { return done < 3; });
  EXPECT_EQ(some.kernels.size(), 3U);
  ASSERT_EQ(some.left_out.size(), 1U);
  EXPECT_THAT(some.left_out[0],
              HasSubstr(fmt::format(" and {} more: there was no time left", all - 4)));
  device.refused = {KernelKind::kNorm};
  device.breaks = true;
  const auto norm = std::ranges::find(plan.kernels, KernelKind::kNorm, &Kernel::kind);
  const Measurements broken = measure_all(device, plan.kernels, {});
  EXPECT_EQ(broken.kernels.size(), static_cast<std::size_t>(norm - plan.kernels.begin()));
  ASSERT_EQ(broken.left_out.size(), 2U);
  EXPECT_THAT(broken.left_out[1], HasSubstr("the GPU is of no use since " + to_text(*norm)));
}

TEST(Plan, SaysHowOftenAStepHasEachKernel) {
  Job job = job_of("llama3-8b", 4, 1);
  job.micro_batch = 1;
  job.global_batch = 3;
  const ProfilePlan plan = plan_profile(job);
  ASSERT_EQ(plan.times.size(), plan.kernels.size());
  const auto times = [&](KernelKind kind, bool backward) {
    for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
      if (plan.kernels[i].kind == kind && plan.kernels[i].backward == backward) {
        return plan.times[i];
      }
    }
    return std::int64_t{0};
  };
  // Four layers and three microbatches; two norms a layer and one at the end are alike.
  EXPECT_EQ(times(KernelKind::kAttention, false), 12);
  EXPECT_EQ(times(KernelKind::kAttention, true), 12);
  EXPECT_EQ(times(KernelKind::kNorm, true), 27);
  EXPECT_EQ(times(KernelKind::kCrossEntropy, false), 3);
  EXPECT_EQ(times(KernelKind::kAdam, false), 1);
  FakeDevice device;
  std::vector<StepKernel> kernels;
  for (std::size_t i = 0; i < plan.kernels.size(); ++i) {
    kernels.push_back({plan.kernels[i], plan.times[i]});
  }
  EXPECT_EQ(measure_job(device, kernels, {}).kernels.size(), plan.kernels.size());
}

TEST(Metis, TheOptimizerOfAShardedJobResetsAllGradients) {
  Job job = job_of("gpt3-1.3b", 3, 1);
  job.gpus = 4;
  job.sharding = Sharding::kZero1;
  job.global_batch = 4;
  const ProfilePlan plan = plan_profile(job);
  const metis::Profile profile =
      metis::parse_profile(metis_json(job, measured(plan.kernels)), "x.json");
  const auto adam = std::ranges::find(plan.kernels, KernelKind::kAdam, &Kernel::kind);
  ASSERT_NE(adam, plan.kernels.end());
  const auto owned = static_cast<double>(adam->size("elements"));
  // Norm, Adam and copy of a quarter, reset of all.
  EXPECT_NEAR(profile.optimizer_ms, 1e3 * (4 * 5e-6 + owned * (4 + 28 + 6 + 4 * 4) / 2e12), 1e-4);
}

}  // namespace
}  // namespace lockstep::profiler_test
