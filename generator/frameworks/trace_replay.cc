#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"
#include "generator/deepspeed_log.h"
#include "generator/generator.h"

namespace lockstep {
namespace {

constexpr auto kFlags = std::to_array<ArgSpec>({
    {"log", "", ArgKind::kText, "", "the argument: a log of DeepSpeed's communication logger"},
});
constexpr auto kPositionals = std::to_array<std::string_view>({"log"});
constexpr ArgTable kTable{kFlags, kPositionals};

const ArgTable& flag_table() { return kTable; }

GeneratedWorkload generate(const GenerateRequest& request) {
  const ArgValues flags = parse_args(kTable, request.words);
  const std::string log = flags.text_if("log").value_or("");
  if (log.empty()) {
    throw Error("no log is named").field("log").expected("a DeepSpeed log file");
  }
  const std::string path = path_in(request.folder, log);
  const FileText file(path);
  const auto entries =
      std::make_shared<const std::vector<DeepSpeedLogEntry>>(read_deepspeed_log(file.view(), path));
  GeneratedWorkload workload;
  workload.file_name = "deepspeed_trace.csv";
  if (entries->empty()) {
    workload.warnings.add(path + ": no line of the log names a communication");
  }
  workload.write = [entries](BlockWriter& out) {
    out.text("operation,comm_type,msg_size,comm_group,bw\n");
    for (const DeepSpeedLogEntry& entry : *entries) {
      out.text(
          fmt::format("trace,{},{},dp_group,{}\n", entry.operation, entry.size, entry.bandwidth));
    }
  };
  return workload;
}

}  // namespace

extern const Generator kTraceReplayGenerator;
const Generator kTraceReplayGenerator = {"trace-replay", "the operations of a DeepSpeed log", "csv",
                                         flag_table, generate};

}  // namespace lockstep
