#include "app/profile/run_profile.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <set>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include "app/generate_exact.h"
#include "app/terminal.h"
#include "app/usage.h"
#include "base/atomic_file.h"
#include "base/file.h"
#include "base/json.h"
#include "base/progress.h"
#include "base/text.h"
#include "generator/compute/gpu_spec.h"
#include "profiler/aceso_profile.h"
#include "profiler/gpu_module.h"
#include "profiler/kernel.h"
#include "profiler/outputs.h"
#include "profiler/profile_plan.h"
#include "profiler/sweep/efficiency_json.h"
#include "profiler/sweep/grid.h"
#include "profiler/sweep/interference.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

/// A file of the output folder.
class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}
  bool wanted() const { return !path_.empty(); }
  void write(const std::string& name, std::string_view text) {
    make_folder(path_);
    const std::string file = (fs::path(path_) / name).string();
    write_file(file, text);
    fmt::print(stderr, "{}: {} bytes\n", file, text.size());
  }

 private:
  std::string path_;
};

std::string command_line(const ProfileOptions& options) {
  std::string text = "lockstep profile";
  for (const CLI::Option* option : options.app->get_options()) {
    // Where the results went says nothing of how they came about.
    if (option->count() > 0 && option->get_name() != "--from" && option->get_name() != "--output") {
      text += " " + option->get_name();
      for (const std::string& value :
           option->get_expected_min() > 0 ? option->results() : std::vector<std::string>()) {
        text += " " + value;
      }
    }
  }
  for (const std::string& word : options.app->remaining()) {
    text += " " + word;
  }
  return text;
}

void sign(Measurements& measurements, const ProfileOptions& options) {
  measurements.when = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  measurements.command = command_line(options);
}

/// --limit, from now on.
class Limit {
 public:
  explicit Limit(const ProfileOptions& options) : seconds_(options.limit_s) {}
  bool is_over() const {
    const std::chrono::duration<double> taken = Clock::now() - begin_;
    return seconds_ > 0 && taken.count() >= seconds_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_;
  Clock::time_point begin_ = Clock::now();
};

/// The GPU. First the folder is made: one that cannot be is not found out after hours.
std::unique_ptr<Device> open_device(const ProfileOptions& options) {
  if (!options.output.empty()) {
    make_folder(options.output);
  }
  return gpu_module().open_device(options.gpu);
}

/// The measurements of --from, or those that `take` makes with a GPU.
template <class Take>
Measurements measure(const ProfileOptions& options, const Take& take) {
  if (!options.from.empty()) {
    const FileText text(options.from);
    return read_measurements(text.view(), options.from);
  }
  const std::unique_ptr<Device> device = open_device(options);
  Measurements measurements = take(*device);
  sign(measurements, options);
  return measurements;
}

/// Each kernel by itself.
Measurements measure_each(const ProfileOptions& options, const std::vector<Kernel>& kernels) {
  return measure(options, [&](Device& device) {
    const Limit limit(options);
    Progress progress("timing", static_cast<std::int64_t>(kernels.size()));
    return measure_all(device, kernels, options.timing, [&](std::size_t i) {
      progress.update(static_cast<std::int64_t>(i));
      return !limit.is_over();
    });
  });
}

void print_left_out(const Measurements& measurements) {
  for (const std::string& left_out : measurements.left_out) {
    fmt::print(stderr, "lockstep: warning: left out: {}\n", left_out);
  }
}

/// What every way of measuring ends with: the measurements themselves.
void finish(const ProfileOptions& options, const Measurements& measurements, Folder& folder,
            const std::string& name) {
  if (folder.wanted() && options.from.empty()) {
    folder.write(name + ".measurements.json", to_measurements_json(measurements));
  }
  if (options.json) {
    write_file("-", to_measurements_json(measurements));
  } else {
    print_left_out(measurements);
    write_file("-", for_terminal(measurement_table(measurements)));
  }
}

ExitCode print_list(const ProfileOptions& options, const std::vector<Kernel>& kernels) {
  if (options.json) {
    Json all = Json::array();
    for (const Kernel& kernel : kernels) {
      write_kernel(kernel, all.emplace_back(Json::object()));
    }
    write_file("-", to_text(Json{{"schema", "lockstep-kernels/1"}, {"kernels", std::move(all)}}));
    return ExitCode::kDone;
  }
  std::string text;
  for (const Kernel& kernel : kernels) {
    text += to_text(kernel) + "\n";
  }
  write_file("-", text);
  fmt::print(stderr, "{} operators\n", kernels.size());
  return ExitCode::kDone;
}

/// Job name as the start of file names: "llama3-8b-tp2-mbs1-seq4096-bf16".
std::string stem(const Job& job) {
  return fmt::format("{}-tp{}-cp{}-ep{}-mbs{}-seq{}-{}", job.model.name, job.tp, job.cp, job.ep,
                     job.micro_batch, job.seq, to_text(job.precision));
}

/// A job, and what is to be timed for it.
struct PlannedJob {
  Job job;
  std::string name;  ///< how its files begin
  ProfilePlan plan;
};

PlannedJob planned_job(std::span<const std::string> flags) {
  const ExactJob described = exact_job(flags);
  for (const std::string& note : described.notes) {
    fmt::print(stderr, "lockstep: {}\n", note);
  }
  PlannedJob job{described.job, stem(described.job), plan_profile(described.job)};
  for (const std::string& name : job.plan.not_measured) {
    fmt::print(stderr,
               "lockstep: warning: left out: {}: of its mask there is no kernel here, so that the "
               "roofline times it\n",
               printable(name));
  }
  return job;
}

/// The jobs of a file: a job's flags on each line; empty lines and those that begin with # are
/// none. ERRORS: with the line: those of a job; two jobs whose files would have the same names; no
/// job.
std::vector<PlannedJob> read_jobs(const std::string& file) {
  const FileText text(file);
  std::vector<PlannedJob> jobs;
  std::size_t number = 0;
  for (const std::string_view line : split(text.view(), '\n')) {
    ++number;
    const std::vector<std::string_view> words = split_blanks(line);
    const std::vector<std::string> flags(words.begin(), words.end());
    if (flags.empty() || flags.front().starts_with('#')) {
      continue;
    }
    try {
      PlannedJob job = planned_job(flags);
      if (std::ranges::find(jobs, job.name, &PlannedJob::name) != jobs.end()) {
        throw Error(fmt::format("a line before has a job of the same name, {}", job.name));
      }
      jobs.push_back(std::move(job));
    } catch (Error& error) {
      error.locate(file, number);
      throw;
    }
  }
  if (jobs.empty()) {
    throw Error("there is no job").at(file).expected("flags of a job on each line");
  }
  return jobs;
}

/// All that can be made of what was measured.
void write_job(const PlannedJob& job, const Measurements& measurements, Folder& folder) {
  const OperatorProfile profile = operator_profile(job.plan, measurements);
  if (profile.times.empty()) {
    fmt::print(stderr, "lockstep: warning: {}: none of its operators was timed\n", job.name);
    return;
  }
  folder.write(job.name + ".profile.json", to_profile_json(profile));
  const auto measured = [&](const Kernel& kernel) { return measurements.has(kernel); };
  if (std::ranges::all_of(job.plan.aiob, [&](const AiobPart& part) {
        return std::ranges::all_of(part.kernels, measured);
      })) {
    folder.write(aiob_file_name(job.job), aiob_text(job.plan, measurements));
  } else {
    fmt::print(stderr, "lockstep: warning: {}: no AIOB file: some of its operators were left out\n",
               job.name);
  }
  if (is_metis_job(job.job) && job.plan.not_measured.empty() &&
      std::ranges::all_of(job.plan.kernels, measured)) {
    folder.write(metis_file_name(job.job, measurements.device), metis_json(job.job, measurements));
  }
}

Measurements measure_planned(Device& device, const PlannedJob& job, const TimingOptions& options) {
  std::vector<StepKernel> kernels;
  for (std::size_t i = 0; i < job.plan.kernels.size(); ++i) {
    kernels.push_back({job.plan.kernels[i], job.plan.times[i]});
  }
  return measure_job(device, kernels, options);
}

ExitCode profile_job(const ProfileOptions& options) {
  const PlannedJob job = planned_job(options.app->remaining());
  if (options.list) {
    return print_list(options, job.plan.kernels);
  }
  const Measurements measurements = measure(
      options, [&](Device& device) { return measure_planned(device, job, options.timing); });
  Folder folder(options.output);
  if (folder.wanted()) {
    write_job(job, measurements, folder);
  }
  finish(options, measurements, folder, job.name);
  return ExitCode::kDone;
}

/// Each job of a file into a folder of its own name.
ExitCode profile_jobs(const ProfileOptions& options) {
  const std::vector<PlannedJob> jobs = read_jobs(options.jobs);
  if (options.list) {
    std::vector<Kernel> kernels;
    std::set<Kernel> known;
    for (const PlannedJob& job : jobs) {
      std::ranges::copy_if(job.plan.kernels, std::back_inserter(kernels),
                           [&](const Kernel& kernel) { return known.insert(kernel).second; });
    }
    return print_list(options, kernels);
  }
  const std::unique_ptr<Device> device = open_device(options);
  const Limit limit(options);
  Progress progress("jobs", static_cast<std::int64_t>(jobs.size()));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    progress.update(static_cast<std::int64_t>(i));
    if (limit.is_over()) {
      fmt::print(stderr, "lockstep: warning: {} jobs are left out from {} on: no time left\n",
                 jobs.size() - i, jobs[i].name);
      break;
    }
    Measurements measurements = measure_planned(*device, jobs[i], options.timing);
    sign(measurements, options);
    Folder folder((fs::path(options.output) / jobs[i].name).string());
    write_job(jobs[i], measurements, folder);
    folder.write(jobs[i].name + ".measurements.json", to_measurements_json(measurements));
    print_left_out(measurements);
  }
  return ExitCode::kDone;
}

ExitCode profile_aceso(const ProfileOptions& options) {
  std::vector<AcesoGpt> tables;
  std::vector<Kernel> kernels;
  std::set<Kernel> known;
  for (const std::int64_t mbs : options.aceso_micro_batch) {
    for (const std::int64_t tp : options.aceso_tp) {
      for (const int algorithm : {0, 1}) {
        const AcesoGpt& table =
            tables.emplace_back(AcesoGpt{options.aceso_size, mbs, tp, algorithm});
        for (const AcesoOp& op : aceso_ops(table)) {
          for (const auto* list : {&op.forward, &op.backward}) {
            for (const Kernel& kernel : *list) {
              if (known.insert(kernel).second) {
                kernels.push_back(kernel);
              }
            }
          }
        }
      }
    }
  }
  if (options.list) {
    return print_list(options, kernels);
  }
  const Measurements measurements = measure_each(options, kernels);
  Folder folder(options.output);
  if (folder.wanted()) {
    const auto has_all = [&](const std::vector<Kernel>& some) {
      return std::ranges::all_of(some, [&](const Kernel& k) { return measurements.has(k); });
    };
    for (const AcesoGpt& table : tables) {
      if (std::ranges::all_of(aceso_ops(table), [&](const AcesoOp& op) {
            return has_all(op.forward) && has_all(op.backward);
          })) {
        folder.write(aceso_file_name(table), aceso_csv(table, measurements));
      } else {
        fmt::print(stderr, "lockstep: warning: no {}: some of its operators were left out\n",
                   aceso_file_name(table));
      }
    }
  }
  finish(options, measurements, folder, "aceso-gpt-" + options.aceso_size);
  return ExitCode::kDone;
}

SweepGrid grid_of(const ProfileOptions& options) {
  SweepGrid grid;
  const auto take = [](std::vector<std::int64_t>& to, const std::vector<std::int64_t>& from) {
    if (!from.empty()) {
      to = from;
    }
  };
  take(grid.hidden, options.sweep_hidden);
  take(grid.sequence, options.sweep_sequence);
  take(grid.micro_batch, options.sweep_micro_batch);
  take(grid.tp, options.sweep_tp);
  return grid;
}

ExitCode profile_sweep(const ProfileOptions& options) {
  const std::vector<Kernel> kernels = sweep_kernels(grid_of(options));
  if (options.list) {
    return print_list(options, kernels);
  }
  const Measurements measurements = measure_each(options, kernels);
  Folder folder(options.output);
  if (folder.wanted() && options.from.empty()) {  // first: they may be too few for a fit
    folder.write("sweep.measurements.json", to_measurements_json(measurements));
  }
  const FittedEfficiency fitted = fit_efficiency(measurements);
  const std::string text = to_efficiency_json(fitted, measurements);
  if (folder.wanted()) {
    folder.write("efficiency.json", text);
  }
  print_left_out(measurements);
  write_file("-", options.json ? text : for_terminal(efficiency_table(fitted)));
  return ExitCode::kDone;
}

ExitCode profile_interference(const ProfileOptions& options) {
  const std::unique_ptr<Device> device = open_device(options);
  const InterferenceTable table = measure_interference(*device, options.timing);
  const std::string text = to_interference_json(table);
  Folder folder(options.output);
  if (folder.wanted()) {
    folder.write("interference.json", text);
  }
  write_file("-", options.json ? text : for_terminal(interference_text(table)));
  return ExitCode::kDone;
}

}  // namespace

ExitCode run_profile(ProfileOptions& options) {
  if (options.help) {
    write_file("-", root_help(*options.app) + "\n" + exact_flags_help());
    return ExitCode::kDone;
  }
  options.timing.flush_l2 = !options.no_flush;
  options.timing.load = !options.no_load;
  options.timing.search = !options.no_search;
  const int ways = (options.sweep ? 1 : 0) + (options.interference ? 1 : 0) +
                   (options.aceso_size.empty() ? 0 : 1) + (options.jobs.empty() ? 0 : 1);
  if (ways > 1) {
    throw Error("two things to profile at once")
        .expected("one of a job's flags, --jobs, --sweep, --interference and --aceso-size");
  }
  if (ways == 1 && !options.app->remaining().empty()) {
    throw Error(fmt::format("'{}' has no meaning here", printable(options.app->remaining()[0])))
        .hint("--jobs, --sweep, --interference and --aceso-size take no flags of a job");
  }
  if (options.limit_s > 0 && (options.interference || ways == 0 || !options.from.empty())) {
    throw Error("has no effect here")
        .field("--limit")
        .expected("--jobs, --sweep or --aceso-size, on a GPU");
  }
  if (!options.jobs.empty() && (!options.from.empty() || (options.json && !options.list))) {
    throw Error("is measured on a GPU, into files")
        .field("--jobs")
        .expected("no --from, no --json but with --list");
  }
  if (options.list && !options.output.empty()) {
    throw Error("nothing is measured with --list, and no file written").field("-o");
  }
  if (!options.jobs.empty() && options.output.empty() && !options.list) {
    throw Error("needs a folder").field("--jobs").expected("-o FOLDER, or --list");
  }
  if (options.interference && (options.list || !options.from.empty())) {
    throw Error("is measured on a GPU").field("--interference").expected("no --list, no --from");
  }
  return options.sweep                 ? profile_sweep(options)
         : options.interference        ? profile_interference(options)
         : !options.aceso_size.empty() ? profile_aceso(options)
         : !options.jobs.empty()       ? profile_jobs(options)
                                       : profile_job(options);
}

}  // namespace lockstep
