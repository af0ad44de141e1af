// Training processes: whatever the bytes, a workload that validates, or an Error.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "generator/process/process_workload.h"
#include "tests/support/exact_models.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  Job job;
  job.model = testing::gpt(2, 8, 2, 32, 16);
  job.gpus = 4;
  job.pp = 2;
  job.seq = 16;
  job.global_batch = 4;
  try {
    const Process process =
        parse_process(std::string_view(reinterpret_cast<const char*>(data), size), "process.yaml");
    const ProcessWorkload result = process_workload(
        job, [](const Operator&) { return Time::us(1); }, process, true, 2000);
    const auto& table = std::get<OpTable>(result.workload.jobs[0].work);
    for (std::size_t i = 0; i < table.programs.size(); ++i) {
      LOCKSTEP_CHECK(table.programs[i].ops.size() <= 2000, "the limit holds");
      LOCKSTEP_CHECK(result.init_ops[i] <= table.programs[i].ops.size(), "init is a part");
    }
  } catch (const Error&) {
  }
  return 0;
}
