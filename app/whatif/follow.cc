#include "app/whatif/follow.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <sys/stat.h>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/whatif/documents.h"
#include "base/atomic_file.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/output_capture.h"
#include "base/stop_signal.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

bool is_trace_name(const std::string& name) {
  const std::string ending = fs::path(name).extension().string();
  return name.front() != '.' && (ending == ".parquet" || ending == ".csv");
}

/// The trace files of the folder, the oldest first.
std::vector<TraceFile> trace_files(const std::string& folder) {
  std::error_code problem;
  std::vector<TraceFile> files;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end;
       at.increment(problem)) {
    struct stat info {};
    const std::string name = at->path().filename().string();
    if (is_trace_name(name) && ::stat(at->path().c_str(), &info) == 0 && S_ISREG(info.st_mode)) {
      files.push_back({name, info.st_size,
                       std::int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec});
    }
  }
  if (problem) {
    throw Error(fmt::format("cannot read the folder: {}", problem.message()))
        .at(folder)
        .field("--follow");
  }
  std::sort(files.begin(), files.end(), [](const TraceFile& a, const TraceFile& b) {
    return std::tie(a.modified_ns, a.name) < std::tie(b.modified_ns, b.name);
  });
  return files;
}

std::vector<FollowJournal::Step> steps_of(const whatif::JobAnalysis& job) {
  std::vector<FollowJournal::Step> steps;
  for (std::size_t s = 0; s < job.causes.steps.size(); ++s) {
    const whatif::StepPattern& own = job.causes.steps[s];
    steps.push_back({.step = own.step,
                     .slowdown = own.slowdown,
                     .step_time_s = job.model.nodelay.span[s],
                     .ideal_step_time_s = job.model.ideal.optimizer[s],
                     .pattern = std::string(to_text(own.pattern)),
                     .slowest_rank = job.table.ranks[own.worker],
                     .slowest_stage = own.stage});
  }
  return steps;
}

std::string as_text(const Json& line) {
  const std::string& event = line.at("event").get_ref<const std::string&>();
  if (event == "step") {
    return fmt::format("step {}: S = {:.3f}, {}\n", line.at("step").get<std::int64_t>(),
                       line.at("slowdown").get<double>(),
                       line.at("pattern").get_ref<const std::string&>());
  }
  if (event == "alert") {
    return fmt::format("ALERT: step {}: S = {:.3f} over {} steps, at least {:g}; rank {}; {}\n",
                       line.at("step").get<std::int64_t>(), line.at("slowdown").get<double>(),
                       line.at("steps").get<std::int64_t>(), line.at("threshold").get<double>(),
                       line.at("slowest_rank").get<std::int64_t>(),
                       line.at("evidence").get_ref<const std::string&>());
  }
  if (event == "clear") {
    return fmt::format("CLEAR: step {}: below {:g} again\n", line.at("step").get<std::int64_t>(),
                       line.at("threshold").get<double>());
  }
  if (event == "file") {
    return fmt::format("{}: {} new steps\n", line.at("file").get_ref<const std::string&>(),
                       line.at("steps").get<std::int64_t>());
  }
  return "";
}

/// By what the meta file says, not by how.
FollowedJob job_of(const JobMeta& meta) { return {meta.trial_name, digest_of(to_yaml_text(meta))}; }

class Follower {
 public:
  Follower(const FollowOptions& options, const JobMeta& meta)
      : options_(options),
        meta_(meta),
        journal_((fs::path(options.output) / ("follow-" + meta.trial_name + ".jsonl")).string(),
                 job_of(meta), options.alert) {
    // Whoever has the journal is the only one that writes the documents.
    remove_abandoned(options.output, document_names(meta.trial_name));
    if (options.json) {
      print({FollowJournal::first_line(job_of(meta))});
    }
  }

  /// Takes what has landed since the last scan.
  void scan(const StopSignal& stop) {
    const auto now = std::chrono::steady_clock::now();
    std::map<std::string, Seen> seen;
    for (const TraceFile& file : trace_files(options_.folder)) {
      if (stop.requested()) {
        return;
      }
      const auto before = seen_.find(file.name);
      const auto since =
          before != seen_.end() && before->second.file == file ? before->second.since : now;
      if ((options_.once || now - since >= options_.settle) && !journal_.has(file)) {
        take(file);
      }
      seen.emplace(file.name, Seen{file, since});
    }
    seen_ = std::move(seen);
  }

 private:
  /// A file, and the first scan that found it so.
  struct Seen {
    TraceFile file;
    std::chrono::steady_clock::time_point since;
  };

  /// The trace must be of the whole job: text that is cut off at the end of a line reads well.
  void require_whole(const whatif::OpTable& table, const std::string& path) const {
    if (table.dp != meta_.dp_size || table.stages != meta_.pp_size) {
      throw Error(fmt::format("{} dp_ranks and {} stages, but {} says {} and {}", table.dp,
                              table.stages, options_.meta, meta_.dp_size, meta_.pp_size))
          .at(path)
          .expected("all workers in every file");
    }
    if ((table.tp > 1 && table.tp != meta_.tp_size) ||
        (table.cp > 1 && table.cp != meta_.dsp_size)) {
      throw Error(fmt::format("{} tp_ranks and {} cp_ranks, but {} says {} and {}", table.tp,
                              table.cp, options_.meta, meta_.tp_size, meta_.dsp_size))
          .at(path)
          .expected("all workers in every file");
    }
  }

  void take(const TraceFile& file) {
    const std::string path = (fs::path(options_.folder) / file.name).string();
    Warnings warnings;
    std::unique_ptr<whatif::JobAnalysis> job;
    try {
      job = std::make_unique<whatif::JobAnalysis>(
          whatif::load_job({&path, 1}, {.drop_incomplete_steps = options_.drop_incomplete_steps},
                           &warnings),
          meta_, path, options_.analysis, &warnings);
      require_whole(job->table, path);
    } catch (const Error& error) {
      if (error.code() == ExitCode::kMissingPart) {
        throw;
      }
      fmt::print(standard_error(), "lockstep: warning: passed over: {}\n", error.what());
      print(journal_.add_refused(file, error.what()));
      return;
    }
    write_documents(*job, options_.output);
    const std::string evidence =
        job->causes.causes.empty() ? "no cause stands out" : job->causes.causes.front().evidence;
    const std::vector<Json> lines = journal_.add_file(file, steps_of(*job), evidence);
    if (const auto known = lines.back().at("known_steps").get<std::int64_t>(); known > 0) {
      warnings.add(
          fmt::format("{}: {} steps were known already; they are not counted again", path, known));
    }
    print_warnings(warnings);
    print(lines);
  }

  void print(const std::vector<Json>& lines) const {
    std::string text;
    for (const Json& line : lines) {
      text += options_.json ? to_line(line) + "\n" : as_text(line);
    }
    write_file("-", text);
  }

  const FollowOptions& options_;
  const JobMeta& meta_;
  FollowJournal journal_;
  std::map<std::string, Seen> seen_;
};

}  // namespace

ExitCode follow(const FollowOptions& options) {
  const FileText meta_text(options.meta, Bytes(1 << 20));
  const JobMeta meta = read_job_meta(meta_text.view(), options.meta);
  trace_files(options.folder);  // a folder that is missing is told before anything is written
  make_folder(options.output);
  Follower follower(options, meta);
  const StopSignal stop;
  follower.scan(stop);
  while (!options.once && !stop.wait_for(options.poll)) {
    follower.scan(stop);
  }
  return ExitCode::kDone;
}

}  // namespace lockstep
