#include <array>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/csv_fields.h"
#include "base/error.h"
#include "base/file.h"
#include "generator/deepspeed_log.h"
#include "generator/generator.h"
#include "generator/rules.h"

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
  const auto file = std::make_shared<const FileText>(path);
  std::int64_t entries = 0;
  read_deepspeed_log(file->view(), path, [&](const DeepSpeedLogEntry&) { ++entries; });
  require_row_limit(static_cast<long double>(entries));
  GeneratedWorkload workload;
  workload.file_name = "deepspeed_trace.csv";
  if (entries == 0) {
    workload.warnings.add(path + ": no line of the log names a communication");
  }
  workload.write = [file, path](BlockWriter& out) {
    out.text("operation,comm_type,msg_size,comm_group,bw\n");
    read_deepspeed_log(file->view(), path, [&](const DeepSpeedLogEntry& entry) {
      out.text(fmt::format("trace,{},{},dp_group,{}\n", csv_field(entry.operation),
                           csv_field(entry.size), csv_field(entry.bandwidth)));
    });
  };
  return workload;
}

}  // namespace

extern const Generator kTraceReplayGenerator;
const Generator kTraceReplayGenerator = {"trace-replay", "the operations of a DeepSpeed log", "csv",
                                         flag_table, generate};

}  // namespace lockstep
