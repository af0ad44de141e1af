#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/generator.h"
#include "generator/message_sizes.h"
#include "generator/simai_row.h"
#include "generator/training_flags.h"

namespace lockstep {
namespace {

/// SimAI's word; AICB prints None for what it does not know.
std::string_view simai_word(std::string_view name) {
  if (name == "all_reduce" || name == "allreduce") {
    return "ALLREDUCE";
  }
  if (name == "all_gather" || name == "allgather") {
    return "ALLGATHER";
  }
  if (name == "reduce_scatter" || name == "reducescatter") {
    return "REDUCESCATTER";
  }
  return name == "all_to_all" || name == "alltoall" ? "ALLTOALL" : "None";
}

GeneratedWorkload generate(const GenerateRequest& request) {
  const TrainingArgs args = training_args(parse_args(training_flag_table(), request.words));
  if (args.multi_all_reduce) {
    throw Error("SimAI's text has no word for a test in the pipeline groups")
        .field("--multi_all_reduce_enable")
        .expected("0")
        .hint("--generator collective can write it");
  }
  const std::vector<Count> sizes = message_sizes(args.begin_size, args.end_size);
  std::string text = fmt::format("MICRO\n{}\n", sizes.size());
  for (const Count bytes : sizes) {
    append(text, {"micro_test", {}, {}, {1, simai_word(args.test_comm), bytes}, 1});
  }
  GeneratedWorkload workload;
  workload.file_name = fmt::format("micro_{}.txt", args.test_comm);
  workload.write = [text](BlockWriter& out) { out.text(text); };
  if (simai_word(args.test_comm) == "None") {
    workload.warnings.add(
        fmt::format("SimAI knows no '{}': the type is written as None", args.test_comm));
  }
  return workload;
}

}  // namespace

extern const Generator kMicroGenerator;
const Generator kMicroGenerator = {"micro", "a collective at sizes that double, as layers", "simai",
                                   training_flag_table, generate};

}  // namespace lockstep
