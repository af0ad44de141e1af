#include "workloads/describe.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "workloads/rank_programs.h"

namespace lockstep {
namespace {

constexpr std::size_t kProgramsShown = 10;

class Summary {
 public:
  void add_compute(Time time) { compute_s_ += time.seconds(); }

  void add_comm(CommType comm, std::int32_t place, std::string_view group, Bytes bytes) {
    CommSummary& sum = comms_[{comm, place}];
    if (sum.count == 0) {
      sum.comm = comm;
      sum.group = group;
    }
    ++sum.count;
    sum.bytes += static_cast<double>(bytes.count());
  }

  RankSummary take(std::int64_t ranks, std::string who, std::size_t items) {
    RankSummary out{ranks, std::move(who), static_cast<std::int64_t>(items), compute_s_, {}};
    for (auto& [key, sum] : comms_) {
      out.comms.push_back(std::move(sum));
    }
    return out;
  }

 private:
  double compute_s_ = 0;
  std::map<std::pair<CommType, std::int32_t>, CommSummary> comms_;
};

RankSummary summarize_layers(const LayerTable& table, std::int64_t gpus) {
  Summary summary;
  for (const Layer& layer : table.layers) {
    for (const LayerPhase* phase : {&layer.forward, &layer.input_grad, &layer.weight_grad}) {
      summary.add_compute(phase->compute);
      if (phase->comm != CommType::kNone) {
        summary.add_comm(phase->comm, static_cast<std::int32_t>(phase->group),
                         name_of(phase->group), phase->bytes);
      }
    }
  }
  return summary.take(gpus, "all ranks", table.layers.size());
}

std::string text_of(const std::vector<RankRange>& ranges) {
  std::string out;
  for (const RankRange& range : ranges) {
    out += out.empty() ? "" : ", ";
    const std::int64_t last = range.first + (rank_count(range) - 1) * range.stride;
    fmt::format_to(std::back_inserter(out), "{}", range.first);
    if (last != range.first) {
      fmt::format_to(std::back_inserter(out), " to {}", last);
    }
    if (last != range.first && range.stride != 1) {
      fmt::format_to(std::back_inserter(out), " by {}", range.stride);
    }
  }
  return out;
}

RankSummary summarize_program(const OpTable& table, const OpProgram& program) {
  Summary summary;
  for (const Op& op : program.ops) {
    summary.add_compute(op.compute);
    if (op.comm == CommType::kSendRecv) {
      summary.add_comm(op.comm, op.send ? 0 : 1, op.send ? "to peers" : "from peers", op.bytes);
    } else if (op.comm != CommType::kNone) {
      summary.add_comm(op.comm, op.group, table.groups[static_cast<std::size_t>(op.group)].name,
                       op.bytes);
    }
  }
  std::int64_t ranks = 0;
  for (const RankRange& range : program.ranks) {
    ranks += rank_count(range);
  }
  return summary.take(ranks, (ranks == 1 ? "rank " : "ranks ") + text_of(program.ranks),
                      program.ops.size());
}

std::string size_text(double bytes) {
  constexpr double kLimit = 9e18;
  return bytes < kLimit ? to_text(Bytes(static_cast<std::int64_t>(bytes)))
                        : fmt::format("{:.4g} B", bytes);
}

void append_ranks(const RankSummary& ranks, std::string_view items, std::string& out) {
  auto end = std::back_inserter(out);
  fmt::format_to(end, "  {}: {} {}, compute {:.6g} s\n", printable(ranks.who, 60), ranks.items,
                 items, ranks.compute_s);
  for (const CommSummary& comm : ranks.comms) {
    fmt::format_to(end, "    {:<14} {:<12} {:>9} x  {:>12}\n", name_of(comm.comm),
                   printable(comm.group, 40), comm.count, size_text(comm.bytes));
  }
}

}  // namespace

std::vector<JobSummary> summarize(const Workload& workload) {
  std::vector<JobSummary> jobs;
  for (const WorkloadJob& job : workload.jobs) {
    JobSummary summary{job.name, job.parallel, std::holds_alternative<OpTable>(job.work), {}};
    if (const auto* layers = std::get_if<LayerTable>(&job.work)) {
      summary.ranks.push_back(summarize_layers(*layers, job.parallel.gpus));
    } else {
      const auto& ops = std::get<OpTable>(job.work);
      for (const OpProgram& program : ops.programs) {
        summary.ranks.push_back(summarize_program(ops, program));
      }
    }
    jobs.push_back(std::move(summary));
  }
  return jobs;
}

std::string describe(const Workload& workload) {
  std::string out;
  auto end = std::back_inserter(out);
  for (const JobSummary& job : summarize(workload)) {
    const Parallelism& parallel = job.parallel;
    fmt::format_to(end, "job {}: {} GPUs, tp {}, {}ep {}, pp {}, vpp {}, ga {}\n",
                   printable(job.name),
                   parallel.gpus == 0 ? "unknown number of" : fmt::format("{}", parallel.gpus),
                   parallel.tp, parallel.cp > 1 ? fmt::format("cp {}, ", parallel.cp) : "",
                   parallel.ep, parallel.pp, parallel.vpp, parallel.ga);
    const std::size_t shown = std::min(job.ranks.size(), kProgramsShown);
    for (std::size_t i = 0; i < shown; ++i) {
      append_ranks(job.ranks[i], job.rank_by_rank ? "operations" : "layers", out);
    }
    if (shown < job.ranks.size()) {
      fmt::format_to(end, "  and {} more programs\n", job.ranks.size() - shown);
    }
  }
  return out;
}

}  // namespace lockstep
