#include "app/simulate/simulate_outputs.h"

#include <filesystem>

#include "app/report_flags.h"
#include "app/simulate/byteps_trace.h"
#include "base/error.h"
#include "trace/read_trace.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// No two outputs are one file, and a JSON document stands alone on standard output.
void check_names(const SimulateOptions& options) {
  OutputNames files;
  const auto take = [&](const char* flag, const fs::path& file) {
    if (!file.empty()) {
      files.emplace_back(flag, file.string());
    }
  };
  take("--trace", options.trace);
  if (has_whatif_columns(options.trace)) {
    take("--trace", fs::path(options.trace).replace_extension(".yaml"));
  }
  take("--memory-csv", options.memory_csv);
  take("--fct", options.fct_file);
  take("--pfc", options.pfc_file);
  take("--samples", options.samples);
  for (const auto& [flag, file] : files_of(options.output)) {
    files.emplace_back(flag, file);
  }
  check_names_differ(files);
  if (options.json) {
    check_not_standard_output(files, "the JSON document");
  }
}

}  // namespace

bool has_whatif_columns(const std::string& path) {
  return path.ends_with(".parquet") || path.ends_with(".csv");
}

bool is_perfetto_proto(const std::string& path) {
  return path.ends_with(".pftrace") || path.ends_with(".pftrace.gz");
}

void check_simulate_outputs(const SimulateOptions& options) {
  if (!options.trace.empty()) {
    check_output_folder(options.trace, "--trace");
    const bool json = options.trace.ends_with(".json") || options.trace.ends_with(".json.gz");
    if (!has_whatif_columns(options.trace) && !json && !is_perfetto_proto(options.trace) &&
        !options.trace.ends_with(".csv.gz")) {
      throw Error("cannot tell the format of a trace by this name")
          .at(options.trace)
          .field("--trace")
          .expected(
              "a name that ends in .json, .json.gz, .pftrace, .pftrace.gz, .csv, .csv.gz or "
              ".parquet");
    }
    if (options.trace.ends_with(".parquet")) {
      require_parquet();
    }
  }
  const auto needs_transfers = [&](const char* flag, bool given, const char* why) {
    if (given && options.engine == "analytic") {
      throw Error(why).field(flag).hint("use --engine flow");
    }
  };
  needs_transfers("--trace", !options.trace.empty(), "the analytic engine has no time line");
  needs_transfers("--sensitivity", options.sensitivity, "the analytic engine has no links");
  if (options.sensitivity && error_budget(options.error_budget) > 0) {
    throw Error("what a tenth more brings is the difference of two steps that may both be off")
        .field("--sensitivity")
        .hint("leave out --error-budget");
  }
  needs_transfers("--byteps-trace", !options.byteps_trace.empty(),
                  "the analytic engine has no time line");
  needs_transfers("--job-matrix", options.job_matrix, "jobs do not meet in the analytic engine");
  needs_transfers("--explain", options.explain, "the analytic engine has no critical path");
  if (!options.byteps_trace.empty()) {
    traced_steps(options.steps);
  }
  if (options.memory_over_time || !options.memory_csv.empty()) {
    if (options.engine == "analytic" || !options.workload.empty()) {
      throw Error("what ranks hold is known of a model that runs on the flow or packet engine")
          .field(options.memory_over_time ? "--memory" : "--memory-csv")
          .expected("--model NAME, --from-megatron-args SCRIPT and their kin");
    }
    check_output_folder(options.memory_csv, "--memory-csv");
  }
  if (!options.csv_dir.empty()) {
    std::error_code problem;
    const fs::file_type type = fs::status(options.csv_dir, problem).type();
    if (type == fs::file_type::none || type == fs::file_type::unknown) {
      throw Error("cannot be a folder: " + problem.message()).at(options.csv_dir).field("--csv");
    }
    if (type != fs::file_type::not_found && type != fs::file_type::directory) {
      throw Error("is a file, not a folder").at(options.csv_dir).field("--csv");
    }
  }
  check_names(options);
}

}  // namespace lockstep
