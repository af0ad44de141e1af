#include "analysis/whatif/load_job.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/large_pages.h"
#include "trace/read_trace.h"

namespace lockstep::whatif {
namespace {

/// The operations that `table` lacks or has beyond those of `reference`; "" if none.
std::string difference(const OpTable& reference, const OpTable& table) {
  const std::int64_t step = table.steps.front();
  if (reference.ranks != table.ranks || reference.dp != table.dp || reference.tp != table.tp ||
      reference.expert_group != table.expert_group) {
    return fmt::format("step {} has other workers than step {}", step, reference.steps.front());
  }
  const auto key = [](const OpNode& n) { return std::tuple(n.stage, n.type, n.seq); };
  const auto [ours, theirs] = std::mismatch(
      reference.nodes.begin(), reference.nodes.end(), table.nodes.begin(), table.nodes.end(),
      [&](const OpNode& a, const OpNode& b) { return key(a) == key(b); });
  if (ours != reference.nodes.end() && (theirs == table.nodes.end() || key(*ours) < key(*theirs))) {
    return fmt::format("step {}: no {}", step, to_text(*ours));
  }
  return theirs == table.nodes.end() ? ""
                                     : fmt::format("step {}: {} is not in step {}", step,
                                                   to_text(*theirs), reference.steps.front());
}

/// Takes rows in and closes one step after the other.
class StepByStep {
 public:
  StepByStep(std::string file, const LoadOptions& options, Warnings* warnings)
      : file_(std::move(file)), options_(options), warnings_(warnings) {}

  void add(const Trace& rows) {
    for (std::size_t row = 0; row < rows.size();) {
      std::size_t end = row + 1;
      while (end < rows.size() && rows.step[end] == rows.step[row]) {
        ++end;
      }
      if (open_.size() > 0 && open_.step.front() != rows.step[row]) {
        close();
      }
      append_rows(open_, rows, row, end);
      row = end;
    }
  }

  OpTable finish() {
    close();
    std::vector<std::size_t> order(tables_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return tables_[a].steps.front() < tables_[b].steps.front();
    });
    OpTable out;
    const OpTable& reference = tables_[order.front()];
    out.nodes = reference.nodes;
    out.ranks = reference.ranks;
    out.dp = reference.dp;
    out.tp = reference.tp;
    out.cp = reference.cp;
    out.expert_group = reference.expert_group;
    out.stages = reference.stages;
    for (const std::size_t t : order) {
      if (std::string problem = difference(reference, tables_[t]); !problem.empty()) {
        leave_out(problem);
        tables_[t] = {};
      } else {
        out.steps.push_back(tables_[t].steps.front());
      }
    }
    const auto gather = [&](std::vector<float> OpTable::*column) {
      std::vector<float>& to = out.*column;
      resize_large(to, out.size());
      std::size_t first_lane = 0;
      for (const std::size_t t : order) {
        std::vector<float>& from = tables_[t].*column;
        if (from.empty()) {
          continue;
        }
        const std::size_t width = out.width();
        for (std::size_t n = 0; n < out.nodes.size(); ++n) {
          std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(n * width), width,
                      to.begin() + static_cast<std::ptrdiff_t>(n * out.lanes() + first_lane));
        }
        first_lane += width;
        from = {};
      }
    };
    gather(&OpTable::start_s);
    gather(&OpTable::duration_s);
    return out;
  }

 private:
  void close() {
    const std::int64_t step = open_.step.front();
    if (!seen_.insert(step).second) {
      throw Error(fmt::format("the rows of step {} are in two places", step))
          .at(file_)
          .field("step")
          .expected(fmt::format("rows sorted by step, in a trace of more than {} rows",
                                options_.most_rows));
    }
    sort_rows(open_);
    tables_.push_back(make_op_table(open_, file_, {.keep_places = false}, warnings_));
    open_.resize(0);  // the next step's rows go where these were
    open_.extra = {};
  }

  void leave_out(const std::string& problem) const {
    if (!options_.drop_incomplete_steps) {
      throw Error(problem).at(file_).hint(kIncompleteStepHint);
    }
    if (warnings_ != nullptr) {
      warnings_->add(fmt::format("{}: a step is left out: {}", file_, problem));
    }
  }

  std::string file_;
  const LoadOptions& options_;
  Warnings* warnings_;
  Trace open_;  ///< rows of the step that is being read
  std::set<std::int64_t> seen_;
  std::vector<OpTable> tables_;  ///< one a step
};

}  // namespace

LoadedJob load_job(std::span<const std::string> files, const LoadOptions& options,
                   Warnings* warnings) {
  const std::string path = files.size() == 1 ? files.front() : files.front() + " and others";
  LoadedJob job;
  std::vector<bool> met(options.steps.size(), false);
  StepByStep streamed(path, options, warnings);
  bool whole = true;
  const auto take = [&](Trace&& rows) {
    if (!options.steps.empty()) {
      keep_steps(rows, options.steps, met);
    }
    if (whole && job.trace.size() + rows.size() > options.most_rows) {
      whole = false;
      streamed.add(job.trace);
      job.trace = {};
    }
    if (whole) {
      append_rows(job.trace, std::move(rows));
    } else {
      streamed.add(rows);
    }
  };
  for (const std::string& file : files) {
    read_trace(file, take, warnings);
  }
  require_steps(options.steps, met, path);
  if (whole) {
    sort_rows(job.trace);
    job.table = make_op_table(job.trace, path,
                              {.drop_incomplete_steps = options.drop_incomplete_steps}, warnings);
  } else {
    job.table = streamed.finish();
  }
  return job;
}

}  // namespace lockstep::whatif
