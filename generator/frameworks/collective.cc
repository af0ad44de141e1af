#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/comm_names.h"
#include "generator/csv_program.h"
#include "generator/csv_row.h"
#include "generator/generator.h"
#include "generator/message_sizes.h"
#include "generator/rules.h"

namespace lockstep {
namespace {

void check_operation(const std::string& name) {
  if (!is_aicb_operation(name)) {
    const std::string_view near = closest(name, aicb_operations());
    throw Error(fmt::format("unknown collective '{}'", printable(name)))
        .field("--test_comm")
        .expected(join(aicb_operations(), ", "))
        .hint(near.empty() ? std::string() : fmt::format("did you mean '{}'?", near));
  }
}

GeneratedWorkload generate(const GenerateRequest& request) {
  const auto args = std::make_shared<const TrainingArgs>(
      training_args(parse_args(training_flag_table(), request.words)));
  check_operation(args->test_comm);
  const std::vector<Count> sizes = message_sizes(args->begin_size, args->end_size);
  require_row_limit(static_cast<long double>(args->epochs.value + 1) * 2 *
                    static_cast<long double>(sizes.size()) *
                    static_cast<long double>(args->iterations.value));
  GeneratedWorkload workload;
  workload.file_name = "multi_all_reduce_workload.csv";
  workload.write = [args, sizes](BlockWriter& out) {
    const auto test = [&](BlockWriter& to, std::string_view group, Count size, Count bytes,
                          std::string_view stage) {
      to.repeat(rows([&](std::string& text) {
                  append_comm(text, args->test_comm, group, size, bytes, stage);
                }),
                args->iterations.value);
    };
    CsvProgram program;
    program.init = [&](BlockWriter& to) {
      test(to, "dp_group", args->dp, args->begin_size, "warmup");
    };
    program.forward = program.backward = [](BlockWriter&) {};
    program.step = [&](BlockWriter& to) {
      for (const Count bytes : sizes) {
        args->multi_all_reduce ? test(to, "pp_group", args->pp, bytes, "test_step")
                               : test(to, "dp_group", args->dp, bytes, "test_step");
      }
    };
    write_csv(*args, program, out);
  };
  return workload;
}

}  // namespace

extern const Generator kCollectiveGenerator;
const Generator kCollectiveGenerator = {"collective", "a collective at sizes that double", "csv",
                                        training_flag_table, generate};

}  // namespace lockstep
