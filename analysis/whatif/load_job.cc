#include "analysis/whatif/load_job.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "analysis/whatif/step_filler.h"
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
  /// `rows`: how many will come, 0 if nobody knows.
  StepByStep(std::string file, std::size_t rows, const LoadOptions& options, Warnings* warnings)
      : file_(std::move(file)), rows_(rows), options_(options), warnings_(warnings) {}

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
    if (closed_.empty()) {
      throw no_complete_step(first_problem_, file_);
    }
    std::vector<std::size_t> order(closed_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return step_of(a) < step_of(b); });
    OpTable out;
    // A step may lack workers, and be complete by itself.
    const OpTable& reference =
        closed_[*std::ranges::max_element(order, {}, [&](std::size_t c) {
          return options_.drop_incomplete_steps ? closed_[c].table.ranks.size() : 0;
        })].table;
    out.nodes = reference.nodes;
    out.ranks = reference.ranks;
    out.dp = reference.dp;
    out.tp = reference.tp;
    out.cp = reference.cp;
    out.expert_group = reference.expert_group;
    out.stages = reference.stages;
    out.both_ways = reference.both_ways;
    out.side_by_side = reference.side_by_side;
    out.turns_with = reference.turns_with;
    std::vector<std::size_t> kept;
    for (const std::size_t c : order) {
      if (std::string problem = difference(reference, closed_[c].table); !problem.empty()) {
        leave_out(problem);
      } else {
        kept.push_back(c);
        out.steps.push_back(step_of(c));
      }
    }
    // All steps stand where they belong already.
    bool in_place = kept.size() == slots_;
    for (std::size_t k = 0; k < kept.size(); ++k) {
      in_place = in_place && closed_[kept[k]].slot == k;
    }
    gather(&OpTable::start_s, kept, in_place, out);
    gather(&OpTable::duration_s, kept, in_place, out);
    for (std::vector<float> OpTable::*column : kColumnsIfAny) {
      if (std::ranges::all_of(kept, [&](std::size_t c) {
            return !((closed_[c].slot == kOwn ? closed_[c].table : all_).*column).empty();
          })) {
        gather(column, kept, in_place, out);
      }
    }
    return out;
  }

 private:
  /// A step's table; its columns are its own, or stand in a slot of `all_`.
  struct Closed {
    OpTable table;
    std::size_t slot = kOwn;
  };
  static constexpr std::size_t kOwn = static_cast<std::size_t>(-1);
  static constexpr std::array kColumnsIfAny = {&OpTable::alone_s, &OpTable::undisturbed_s};

  std::int64_t step_of(std::size_t closed) const { return closed_[closed].table.steps.front(); }

  void gather(std::vector<float> OpTable::*column, const std::vector<std::size_t>& kept,
              bool in_place, OpTable& out) {
    if (in_place) {
      out.*column = std::move(all_.*column);
      return;
    }
    const std::size_t width = out.width(), nodes = out.nodes.size();
    resize_large(out.*column, out.size());
    for (std::size_t k = 0; k < kept.size(); ++k) {
      Closed& from = closed_[kept[k]];
      const std::vector<float>& values = from.slot == kOwn ? from.table.*column : all_.*column;
      copy_step(values, from.slot == kOwn ? 1 : slots_, from.slot == kOwn ? 0 : from.slot,
                out.*column, kept.size(), k, nodes, width);
      from.table.*column = std::vector<float>();  // "{}" would keep the memory
    }
    all_.*column = std::vector<float>();
  }

  /// Copies the lanes of one of `from_steps` steps to those of one of `to_steps`.
  static void copy_step(const std::vector<float>& from, std::size_t from_steps,
                        std::size_t from_step, std::vector<float>& to, std::size_t to_steps,
                        std::size_t to_step, std::size_t nodes, std::size_t width) {
    for (std::size_t n = 0; n < nodes; ++n) {
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>((n * from_steps + from_step) * width),
                  width,
                  to.begin() + static_cast<std::ptrdiff_t>((n * to_steps + to_step) * width));
    }
  }

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
    try {
      Closed closed{make_op_table(open_, file_, {.keep_places = false}, warnings_)};
      put_in_slot(closed);
      closed_.push_back(std::move(closed));
    } catch (const Error& error) {
      if (!options_.drop_incomplete_steps) {
        throw;
      }
      leave_out(error.message());
    }
    open_.resize(0);  // the next step's rows go where these were
    open_.extra = {};
  }

  /// The first step tells how many of its kind will come, and so how long the columns will be.
  void put_in_slot(Closed& closed) {
    OpTable& table = closed.table;
    if (closed_.empty() && rows_ > 0) {
      slots_ = std::max<std::size_t>(1, rows_ / open_.size());
      slot_nodes_ = table.nodes.size();
      slot_width_ = table.width();
      resize_large(all_.start_s, slots_ * table.size());
      resize_large(all_.duration_s, slots_ * table.size());
      for (std::vector<float> OpTable::*column : kColumnsIfAny) {
        if (!(table.*column).empty()) {
          resize_large(all_.*column, slots_ * table.size());
        }
      }
    }
    if (next_slot_ == slots_ || table.nodes.size() != slot_nodes_ || table.width() != slot_width_ ||
        std::ranges::any_of(kColumnsIfAny, [&](std::vector<float> OpTable::*column) {
          return (table.*column).empty() != (all_.*column).empty();
        })) {
      return;
    }
    closed.slot = next_slot_++;
    for (std::vector<float> OpTable::*column :
         {&OpTable::start_s, &OpTable::duration_s, &OpTable::alone_s, &OpTable::undisturbed_s}) {
      if ((all_.*column).empty()) {
        continue;
      }
      copy_step(table.*column, 1, 0, all_.*column, slots_, closed.slot, table.nodes.size(),
                table.width());
      table.*column = std::vector<float>();  // "{}" would keep the memory
    }
  }

  void leave_out(const std::string& problem) {
    if (!options_.drop_incomplete_steps) {
      throw Error(problem).at(file_).hint(kIncompleteStepHint);
    }
    first_problem_ = first_problem_.empty() ? problem : first_problem_;
    warn_of_step(problem, file_, warnings_);
  }

  std::string file_;
  std::size_t rows_;
  const LoadOptions& options_;
  Warnings* warnings_;
  Trace open_;  ///< rows of the step that is being read
  std::set<std::int64_t> seen_;
  std::string first_problem_;  ///< of the steps left out
  std::vector<Closed> closed_;
  OpTable all_;  ///< columns of `slots_` steps of `slot_nodes_` nodes, filled in turn
  std::size_t slots_ = 0, next_slot_ = 0;
  std::size_t slot_nodes_ = 0, slot_width_ = 0;
};

/// How many rows the files say that they have; 0 if one does not say.
std::size_t told_rows_of(std::span<const std::string> files) {
  std::size_t rows = 0;
  for (const std::string& file : files) {
    const auto told = static_cast<std::size_t>(told_rows(file).value_or(0));
    if (told == 0) {
      return 0;
    }
    rows += told;
  }
  return rows;
}

}  // namespace

LoadedJob load_job(std::span<const std::string> files, const LoadOptions& options,
                   Warnings* warnings) {
  const std::string path = files.size() == 1 ? files.front() : files.front() + " and others";
  LoadedJob job;
  std::vector<bool> met(options.steps.size(), false);
  const std::size_t rows_to_come = options.steps.empty() ? told_rows_of(files) : 0;
  StepByStep streamed(path, rows_to_come, options, warnings);
  bool whole = rows_to_come <= options.most_rows;
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
