#include "app/generate_exact.h"

#include <functional>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "generator/compute/compute_times.h"
#include "generator/exact/job_flags.h"
#include "generator/model/hf_config.h"
#include "generator/model/model_file.h"
#include "generator/model/zoo.h"

namespace lockstep {
namespace {

std::vector<ArgSpec> exact_flags() {
  std::vector<ArgSpec> flags{
      {"model", "model_name", ArgKind::kText, "", "a model of --list-models"},
      {"model_file", "", ArgKind::kText, "", "a model file, YAML or JSON"},
      {"hf_config", "", ArgKind::kText, "", "a Hugging Face config.json"},
      {"process", "", ArgKind::kText, "",
       "the training process: a file, or data-parallel, distributed-optimizer, fully-sharded; "
       "else that of the model file, else the built-in step"},
      {"with_init", "", ArgKind::kSwitch, "", "the process's init items too, ahead of the step"}};
  flags.insert(flags.end(), job_flags().begin(), job_flags().end());
  return flags;
}

Model model_of(const ArgValues& args) {
  const int named =
      int{args.given("model")} + int{args.given("model_file")} + int{args.given("hf_config")};
  if (named != 1) {
    throw Error(named == 0 ? "no model is named" : "more than one model is named")
        .field("--model")
        .expected("one of --model NAME, --model-file F, --hf-config F")
        .hint("'lockstep generate --list-models' shows the names");
  }
  return args.given("model")        ? find_model(args.text("model"))
         : args.given("model_file") ? read_model(args.text("model_file"))
                                    : read_hf_config(args.text("hf_config"));
}

/// The process that is named, or the model file's own.
std::optional<Process> process_of(const ArgValues& args) {
  if (args.given("process")) {
    return find_process(args.text("process"));
  }
  if (args.given("model_file")) {
    const std::string path = args.text("model_file");
    const FileText file(path);
    if (has_process(file.view(), path)) {
      return parse_process(file.view(), path);
    }
  }
  return std::nullopt;
}

}  // namespace

ProcessWorkload exact_from_flags(std::span<const std::string> words) {
  const std::vector<ArgSpec> flags = exact_flags();
  const ArgValues args = parse_args({flags}, words);
  Job job = job_from_flags(args);
  job.model = model_of(args);
  ComputeTimes times(gpu_spec(job.gpu_type), job.precision);
  if (const std::optional<Process> process = process_of(args); process.has_value()) {
    return process_workload(job, std::ref(times), *process, args.on("with_init"));
  }
  if (args.on("with_init")) {
    throw Error("the built-in step has no init items")
        .field("--with-init")
        .expected("--process F, or a model file with a process");
  }
  return {exact_workload(job, std::ref(times)), {}};
}

std::string exact_flags_help() {
  const std::vector<ArgSpec> flags = exact_flags();
  return args_help({flags});
}

}  // namespace lockstep
