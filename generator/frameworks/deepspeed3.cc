#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "generator/csv_row.h"
#include "generator/deepspeed_parameters.h"
#include "generator/deepspeed_workload.h"
#include "generator/generator.h"

namespace lockstep {
namespace {

/// ZeRO 3 as AICB imitates DeepSpeed's parameter coordinator: parameters are gathered when a pass
/// comes to them. From the second backward pass on, the order is known and later ones are gathered
/// ahead, up to a number of elements; parameters needed again soon, and small ones, are kept.
///
/// The known order is 0 … P-1 (forward), then P-1 … 0; entry k of it is step k.
class Zero3 {
 public:
  explicit Zero3(const TrainingArgs& args)
      : args_(args),
        parameters_(args),
        count_(parameters_.size()),
        next_(2 * count_),
        gathered_(static_cast<std::size_t>(count_)),
        persistent_(static_cast<std::size_t>(count_)),
        needed_(static_cast<std::size_t>(count_)) {
    Count kept;
    for (std::int64_t i = 0; i < count_; ++i) {
      const Count n = elements(i);
      if (n <= args.param_persistence && n <= args.model_persistence - kept) {
        persistent_[index(i)] = 1;
        kept += n;
      }
    }
  }

  void init(BlockWriter& out) {
    for (std::int64_t i = 0; !args_.amp && i < count_; ++i) {
      const std::string size = fmt::format("{}", (2 * elements(i)).value);
      CsvRow row{"broadcast", "dp_group", args_.dp, size, "init._broadcast_model"};
      row.src = Count(0);
      out.text(rows([&](std::string& text) { append(text, row); }));
    }
    comm(out, "barrier", "all", 0, "init._create_fp16_partitions_with_defragmentation");
    comm(out, "barrier", "all", 0, "init._setup_for_real_optimizer");
    comm(out, "barrier", "all", 0, "init._setup_for_real_optimizer");
    for (std::int64_t i = 0; i < count_; ++i) {
      comm(out, "all_gather", "dp_group", 2 * elements(i), "init._allgather_params");
    }
  }

  void forward(BlockWriter& out) {
    for (std::int64_t i = 0; i < count_; ++i) {
      fetch(out, i, true);
      release(i, i);
    }
  }

  void backward(BlockWriter& out) {
    for (std::int64_t k = 0; k < count_; ++k) {
      const std::int64_t i = count_ - 1 - k;
      fetch(out, i, false);
      release(i, count_ + k);
      const Count n = elements(i);
      if (n + bucket_ > args_.reduce_bucket) {
        comm(out, "reduce_scatter", "dp_group", 2 * bucket_, "backward.reduce_scatter_fn");
        bucket_ = 0;
      }
      bucket_ += n;
    }
    next_ = 0;
    std::fill(needed_.begin(), needed_.end(), -1);
  }

  void step(BlockWriter& out) {
    comm(out, "reduce_scatter", "dp_group", 2 * bucket_, "step.reduce_scatter_fn");
    comm(out, "all_reduce", "dp_group", 1, "step.has_overflow");
    comm(out, "all_reduce", "dp_group", 8, "step.get_grad_norm_direct");
    bucket_ = 0;
    live_ = 0;
    std::fill(gathered_.begin(), gathered_.end(), 0);
    for (std::int64_t i = 0; i < count_; ++i) {
      if (persistent_[index(i)] != 0) {
        gather(i);
        comm(out, "all_gather", "dp_group", 2 * elements(i), "step.allgather_fn");
      }
    }
  }

  long double row_estimate() const {
    const auto count = static_cast<long double>(count_);
    const long double microbatch = count * (args_.computation ? 6 : 3);
    return 2 * count +
           static_cast<long double>(args_.epochs.value) *
               (static_cast<long double>(args_.microbatches.value) * microbatch + count + 4);
  }

 private:
  static std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }
  Count elements(std::int64_t i) const { return parameters_[i].elements(); }
  bool order_known() const { return next_ < 2 * count_; }

  void comm(BlockWriter& out, std::string_view type, std::string_view group, Count bytes,
            std::string_view stage) const {
    out.text(
        rows([&](std::string& text) { append_comm(text, type, group, args_.dp, bytes, stage); }));
  }

  void gather(std::int64_t i) {
    gathered_[index(i)] = 1;
    live_ += elements(i);
  }

  void compute(BlockWriter& out, std::int64_t i, bool forward) const {
    if (!args_.computation) {
      return;
    }
    out.text(rows([&](std::string& text) {
      const DeepSpeedParameter parameter = parameters_[i];
      append_forward_product(text, args_, parameter,
                             forward ? "forward.computation" : "backward.computation");
      if (!forward) {
        append_gradient_product(text, args_, parameter, "");  // AICB leaves this stage out
      }
    }));
  }

  void fetch(BlockWriter& out, std::int64_t i, bool forward) {
    const std::string_view stage = forward ? "forward.allgather_fn" : "backward.allgather_fn";
    const bool missing = gathered_[index(i)] == 0;
    if (!order_known()) {
      if (missing) {
        comm(out, "all_gather", "dp_group", 2 * elements(i), stage);
        gather(i);
      }
      compute(out, i, forward);
      return;
    }
    group_.clear();
    Count sum;
    if (missing) {
      gather(i);
      group_.push_back(i);
      sum += elements(i);
      ++next_;  // whichever entry that is
    }
    while (order_known() && sum < args_.prefetch_bucket && live_ < args_.max_live) {
      const std::int64_t when = next_++;
      const std::int64_t j = when < count_ ? when : 2 * count_ - 1 - when;
      needed_[index(j)] = std::max(needed_[index(j)], when);
      if (gathered_[index(j)] == 0) {
        gather(j);
        group_.push_back(j);
        sum += elements(j);
      }
    }
    if (!group_.empty()) {
      comm(out, "all_gather", "dp_group", 2 * sum, stage);
      for (const std::int64_t j : group_) {
        compute(out, j, forward);
      }
    }
  }

  void release(std::int64_t i, std::int64_t now) {
    const bool keep = order_known() && (persistent_[index(i)] != 0 || needed_[index(i)] > now);
    if (!keep) {
      gathered_[index(i)] = 0;
      live_ -= elements(i);
    }
  }

  const TrainingArgs& args_;
  DeepSpeedParameters parameters_;
  std::int64_t count_;
  std::int64_t next_;  ///< next step of the known order; 2P: unknown or used up
  std::vector<char> gathered_, persistent_;
  std::vector<std::int64_t> needed_;  ///< last step a parameter was gathered ahead for
  std::vector<std::int64_t> group_;
  Count live_;    ///< elements gathered
  Count bucket_;  ///< elements of gradients waiting
};

GeneratedWorkload generate(const GenerateRequest& request) {
  return deepspeed_workload<Zero3>(
      request, [](const TrainingArgs&) -> std::string_view { return "deepspeed_stage3"; },
      warn_of_losses);
}

}  // namespace

extern const Generator kDeepspeed3Generator;
const Generator kDeepspeed3Generator = {"deepspeed3", "operations of a rank of DeepSpeed ZeRO 3",
                                        "csv", training_flag_table, generate};

}  // namespace lockstep
