#include "app/simulate/job_figures.h"

#include <fmt/format.h>

#include "base/error.h"
#include "generator/compute/gpu_spec.h"
#include "generator/exact/model_flops.h"

namespace lockstep {
namespace {

const char* name_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kGemm:
      return "gemm";
    case OperatorKind::kGroupedGemm:
      return "grouped-gemm";
    case OperatorKind::kAttention:
      return "attention";
    case OperatorKind::kMemory:
      return "memory";
  }
  LOCKSTEP_CHECK(false, "a kind of operator without a name");
}

}  // namespace

Json headline_json(const ExactJob& exact, Time step, double gpu_hour_price) {
  const Job& job = exact.job;
  const double tokens = static_cast<double>(job.global_batch) * static_cast<double>(job.seq);
  const double flops = model_flops(job), seconds = step.seconds();
  const double peak = peak_flops(gpu_spec(job.gpu_type), job.precision);
  const double gpus = static_cast<double>(job.gpus);
  const double hours_per_million = seconds * gpus / 3600 / tokens * 1e6;
  Json json = {{"tokens_per_step", tokens},
               {"tokens_per_s", tokens / seconds},
               {"model_flops", flops},
               {"peak_flops_per_gpu", peak},
               {"mfu", flops / seconds / (peak * gpus)},
               {"gpu_hours_per_Mtoken", hours_per_million}};
  if (gpu_hour_price > 0) {
    json["gpu_hour_price"] = gpu_hour_price;
    json["cost_per_Mtoken"] = hours_per_million * gpu_hour_price;
  }
  return json;
}

std::string job_lines(const ExactJob& exact, Time step, bool is_mean) {
  const Job& job = exact.job;
  const Json figures = headline_json(exact, step, 0);
  const double flops = figures["model_flops"].get<double>();
  return fmt::format(
      "{} GPUs: tp {}, {}pp {}, dp {}, ep {}, {} micro-batch{}\n"
      "{:.0f} tokens/s, {:.1f} TFLOP/s a GPU, {:.1f} % MFU, sequences of {} tokens{}{}",
      job.gpus, job.tp, job.cp > 1 ? fmt::format("cp {}, ", job.cp) : "", job.pp, job.dp(), job.ep,
      job.microbatches(), job.microbatches() == 1 ? "" : "es",
      figures["tokens_per_s"].get<double>(),
      flops / step.seconds() / static_cast<double>(job.gpus) / 1e12,
      figures["mfu"].get<double>() * 100, job.seq, is_mean ? "; of the mean step" : "",
      job.pp > 1 ? fmt::format("\nbelow is the time of rank 0, on the first of {} stages", job.pp)
                 : "");
}

Json parallel_json(const Job& job) {
  return {{"tp", job.tp},  {"cp", job.cp},   {"ep", job.ep},
          {"pp", job.pp},  {"vpp", job.vpp}, {"ga", job.microbatches()},
          {"dp", job.dp()}};
}

Json roofline_json(const ExactJob& exact) {
  const GpuSpec& gpu = gpu_spec(exact.job.gpu_type);
  Json operators = Json::array();
  for (const TimedOperator& each : exact.operators) {
    const Operator& op = each.op;
    operators.push_back({{"name", op.name},
                         {"kind", name_of(op.kind)},
                         {"flops", flops_of(op)},
                         {"bytes", bytes_of(op)},
                         {"time_s", each.time.seconds()}});
  }
  return {{"gpu", gpu.name},
          {"precision", to_text(exact.job.precision)},
          {"peak_flops", peak_flops(gpu, exact.job.precision)},
          {"memory_Bps", gpu.memory_bandwidth.bytes_per_second()},
          {"operators", std::move(operators)}};
}

}  // namespace lockstep
