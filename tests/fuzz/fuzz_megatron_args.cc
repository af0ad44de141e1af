// Megatron-LM scripts: whatever the bytes, a job and a model that can be counted, or an Error.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "generator/exact/job_flags.h"
#include "generator/megatron_args/megatron_job.h"
#include "generator/model/parameters.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  try {
    const MegatronLaunch launch = MegatronLaunch::parse(
        std::string_view(reinterpret_cast<const char*>(data), size), "train.sh");
    const Model model = megatron_model(launch, {});
    LOCKSTEP_CHECK(model_parameters(model).total > 0, "parameters");
    ArgValues args = parse_args({job_flags()}, {});
    args.set("vpp", "1");
    Warnings warnings;
    apply_megatron_job(launch, args, warnings);
    unread_flags(launch);
    launch.hidden_words();
    const Job job = job_from_flags(args);
    LOCKSTEP_CHECK(job.gpus > 0 && job.global_batch > 0, "a job");
  } catch (const Error&) {
  }
  return 0;
}
