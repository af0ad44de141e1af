#include "app/simulate/job_matrix.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"

namespace lockstep {
namespace {

/// The jobs that are `on`; the others keep their GPUs and do nothing.
Workload with_only(Workload workload, const std::vector<bool>& on) {
  for (std::size_t i = 0; i < workload.jobs.size(); ++i) {
    if (!on[i]) {
      workload.jobs[i].work = OpTable{};
    }
  }
  return workload;
}

/// Every job says how many GPUs it takes, so that idle ones keep them.
Workload with_gpus(Workload workload, std::int64_t gpus) {
  std::int64_t taken = 0;
  for (WorkloadJob& job : workload.jobs) {
    if (job.parallel.gpus == 0) {
      if (&job != &workload.jobs.back()) {
        throw Error("a job that others follow does not say how many GPUs it takes")
            .field(job.name)
            .expected("all_gpus in its first line, or gpus in its parallelism");
      }
      job.parallel.gpus = std::max<std::int64_t>(1, gpus - taken);
    }
    taken += job.parallel.gpus;
  }
  return workload;
}

double ratio(Time time, Time of) { return of > Time() ? time / of : 1; }

constexpr std::size_t kNameWidth = 24;

std::string short_name(std::string_view name) {
  return printable(name.size() > kNameWidth ? name.substr(0, kNameWidth) : name);
}

}  // namespace

JobMatrix job_matrix(const Workload& given, std::int64_t gpus, int threads,
                     const std::function<std::vector<Time>(const Workload&)>& run) {
  const std::size_t jobs = given.jobs.size();
  if (jobs < 2) {
    throw Error("there is one job only")
        .field("--job-matrix")
        .expected("a workload of several jobs, or --beside FILE");
  }
  const Workload workload = with_gpus(given, gpus);
  JobMatrix matrix;
  for (const WorkloadJob& job : workload.jobs) {
    matrix.names.push_back(job.name);
  }
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0; i < jobs; ++i) {
    for (std::size_t j = i; j < jobs; ++j) {
      pairs.emplace_back(i, j);
    }
  }
  const bool more = jobs > 2;  // two jobs together are a pair
  std::vector<std::vector<Time>> ends(pairs.size() + (more ? 1 : 0));
  for_each_in_parallel(ends.size(), threads, [&](std::size_t k) {
    std::vector<bool> on(jobs, k == pairs.size());
    if (k < pairs.size()) {
      on[pairs[k].first] = on[pairs[k].second] = true;
    }
    ends[k] = run(with_only(workload, on));
  });
  matrix.beside.assign(jobs, std::vector<Time>(jobs));
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const auto [i, j] = pairs[k];
    matrix.beside[i][j] = ends[k][i];
    matrix.beside[j][i] = ends[k][j];
  }
  for (std::size_t i = 0; i < jobs; ++i) {
    matrix.alone.push_back(matrix.beside[i][i]);
    matrix.together.push_back(more ? ends.back()[i] : matrix.beside[i][1 - i]);
  }
  return matrix;
}

std::string job_matrix_text(const JobMatrix& matrix) {
  std::string text = fmt::format("{:<{}} {:>10}", "slowdown beside", kNameWidth, "alone ms");
  for (const std::string& name : matrix.names) {
    text += fmt::format(" {:>12}", short_name(name).substr(0, 12));
  }
  text += fmt::format(" {:>8}\n", "all");
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    text += fmt::format("{:<{}} {:>10.3f}", short_name(matrix.names[i]), kNameWidth,
                        matrix.alone[i].seconds() * 1e3);
    for (std::size_t j = 0; j < matrix.names.size(); ++j) {
      text += i == j ? fmt::format(" {:>12}", "-")
                     : fmt::format(" {:>12.4f}", ratio(matrix.beside[i][j], matrix.alone[i]));
    }
    text += fmt::format(" {:>8.4f}\n", ratio(matrix.together[i], matrix.alone[i]));
  }
  return text;
}

Json job_matrix_json(const JobMatrix& matrix) {
  Json json = Json::array();
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    Json beside = Json::object();
    for (std::size_t j = 0; j < matrix.names.size(); ++j) {
      if (i != j) {
        beside[matrix.names[j]] = ratio(matrix.beside[i][j], matrix.alone[i]);
      }
    }
    json.push_back({{"name", matrix.names[i]},
                    {"alone_s", matrix.alone[i].seconds()},
                    {"slowdown_beside", std::move(beside)},
                    {"together_s", matrix.together[i].seconds()},
                    {"slowdown_together", ratio(matrix.together[i], matrix.alone[i])}});
  }
  return json;
}

}  // namespace lockstep
