#include "workloads/samples/samples.h"

#include "workloads/samples/gpt.h"
#include "workloads/samples/pipeline.h"
#include "workloads/simai_txt.h"
#include "workloads/workload_json.h"

namespace lockstep::samples {
namespace {

constexpr GptShape kGpt13b{.hidden = 5120,
                           .layers = 40,
                           .ffn = 20480,
                           .vocab = 51200,
                           .sequence = 2048,
                           .kv_hidden = 5120,
                           .tp = 8,
                           .dp = 16,
                           .micro_batch = 1,
                           .microbatches = 4};
constexpr GptShape kTiny{.hidden = 1024,
                         .layers = 2,
                         .ffn = 4096,
                         .vocab = 32768,
                         .sequence = 1024,
                         .kv_hidden = 1024,
                         .tp = 8,
                         .dp = 1,
                         .micro_batch = 1,
                         .microbatches = 1};
constexpr GptShape kMoe{.hidden = 4096,
                        .layers = 32,
                        .ffn = 14336,
                        .vocab = 32000,
                        .sequence = 4096,
                        .kv_hidden = 1024,
                        .tp = 2,
                        .dp = 32,
                        .micro_batch = 1,
                        .microbatches = 2,
                        .experts = 8,
                        .top_k = 2,
                        .ep = 8};
constexpr GptShape kStage{.hidden = 2048,
                          .layers = 2,
                          .ffn = 8192,
                          .vocab = 32768,
                          .sequence = 2048,
                          .kv_hidden = 2048,
                          .tp = 2,
                          .dp = 1,
                          .micro_batch = 1,
                          .microbatches = 3};

}  // namespace

std::vector<Sample> all_samples() {
  const WorkloadJob tiny = gpt_job("gpt-tiny", kTiny);
  const WorkloadJob pipeline = pipeline_job("pipeline", kStage);
  return {
      {"gpt13b-128gpu-tp8.txt", to_simai_txt({{gpt_job("gpt13b", kGpt13b)}})},
      {"gpt-tiny-8gpu-tp8.txt", to_simai_txt({{tiny}})},
      {"moe8x7b-64gpu-tp2-ep8.txt", to_simai_txt({{gpt_job("moe8x7b", kMoe)}})},
      {"pipeline-4gpu-tp2-pp2.json", to_workload_json({{pipeline}})},
      {"two-jobs-12gpu.json", to_workload_json({{tiny, pipeline}})},
  };
}

}  // namespace lockstep::samples
