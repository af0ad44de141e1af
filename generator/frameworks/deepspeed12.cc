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

/// ZeRO 1 and 2 (Rajbhandari et al., ZeRO, arXiv 1910.02054) as AICB imitates DeepSpeed: gradients
/// are reduced bucket by bucket in the backward pass, each microbatch anew; the bucket is carried
/// from one microbatch to the next and flushed in the step.
class Zero12 {
 public:
  explicit Zero12(const TrainingArgs& args)
      : args_(args), parameters_(args), part_(ceil_div(parameters_.total(), args.dp)) {}

  void init(BlockWriter& out) {
    const std::int64_t count = parameters_.size();
    for (std::int64_t i = 0; !args_.amp && i < count; ++i) {
      comm(out, "broadcast", "dp_group", 2 * parameters_[i].elements(), "init");
    }
    comm(out, "barrier", "all", 2 * parameters_[count - 1].elements(), "init.__init__");
  }

  void forward(BlockWriter& out) {
    for (std::int64_t i = 0; args_.computation && i < parameters_.size(); ++i) {
      out.text(rows([&](std::string& text) {
        append_forward_product(text, args_, parameters_[i], "forward.computation");
      }));
    }
  }

  void backward(BlockWriter& out) {
    for (std::int64_t i = parameters_.size() - 1; i >= 0; --i) {
      const DeepSpeedParameter parameter = parameters_[i];
      if (parameter.elements() + bucket_ > args_.reduce_bucket) {
        flush(out, "backward");
      }
      bucket_ += parameter.elements();
      if (partitioned()) {
        remember(i);
      }
      if (args_.computation) {
        out.text(rows([&](std::string& text) {
          append_forward_product(text, args_, parameter, "backward.computation");
          append_gradient_product(text, args_, parameter, "backward.computation");
        }));
      }
    }
  }

  void step(BlockWriter& out) {
    flush(out, "step");
    comm(out, "all_reduce", "dp_group", 1, "step.has_overflow");
    const Count total = parameters_.total();
    const Count shards = std::max(total / args_.allgather_bucket, Count(1));
    const Count shard = total / shards;
    for (Count i = 0; i < shards; i += 1) {
      const Count elements = i + 1 < shards ? shard : total - shard * i;
      comm(out, "all_gather", "dp_group", 2 * round_up(elements, args_.dp),
           "step.all_gather_dp_groups");
    }
  }

  long double row_estimate() const {
    const auto real = [](Count count) { return static_cast<long double>(count.value); };
    const auto count = static_cast<long double>(parameters_.size());
    const long double pieces = partitioned() ? real(args_.dp) + 2 * count : count;
    const long double microbatch = pieces + (args_.computation ? 3 * count : 0);
    return count + real(args_.epochs) * (real(args_.microbatches) * microbatch +
                                         real(parameters_.total() / args_.allgather_bucket) + 3);
  }

 private:
  /// Parameters first, first - 1 … last, all of it `times` over: whole microbatches in one bucket.
  struct Run {
    std::int64_t first = 0, last = 0, times = 1;
  };

  void remember(std::int64_t i) {
    if (!in_bucket_.empty() && in_bucket_.back().last == i + 1) {
      in_bucket_.back().last = i;
    } else {
      in_bucket_.push_back({i, i});
    }
    const std::size_t n = in_bucket_.size();
    if (i == 0 && n > 1 && in_bucket_[n - 2].first == in_bucket_[n - 1].first &&
        in_bucket_[n - 2].last == 0) {
      in_bucket_.pop_back();
      ++in_bucket_.back().times;
    }
  }

  bool partitioned() const { return args_.stage >= 2 && args_.contiguous_gradients; }

  void comm(BlockWriter& out, std::string_view type, std::string_view group, Count bytes,
            std::string_view stage) const {
    out.text(
        rows([&](std::string& text) { append_comm(text, type, group, args_.dp, bytes, stage); }));
  }

  void flush(BlockWriter& out, std::string_view operation) {
    if (partitioned()) {
      reduce_to_owners(out, fmt::format("{}.average_tensor", operation));
    } else {
      comm(out, "all_reduce", "dp_group", 2 * bucket_,
           fmt::format("{}.allreduce_bucket", operation));
    }
    bucket_ = 0;
    in_bucket_.clear();
  }

  /// Every rank owns `part_` elements of the flattened model. A parameter is cut where owners
  /// change; one that begins on such a border also has an empty piece of the owner before it. The
  /// pieces of one owner that follow each other are reduced together, from where the first begins
  /// to where the last ends; so AICB counts them even where one GPU owns all, where the pieces of
  /// several microbatches follow each other and that is less than all of them, or below 0.
  void reduce_to_owners(BlockWriter& out, const std::string& stage) const {
    Count owner = -1, begin, end;
    const auto reduce = [&] {
      if (owner >= 0) {
        const std::string size = fmt::format("{}", (2 * end).value - (2 * begin).value);
        CsvRow row{"reduce", "dp_group", args_.dp, size, stage};
        row.dst = owner;
        out.text(rows([&](std::string& text) { append(text, row); }));
      }
    };
    const auto piece = [&](Count rank, Count from, Count to) {
      if (rank != owner) {
        reduce();
        owner = rank;
        begin = from;
      }
      end = to;
    };
    const auto cut = [&](std::int64_t i) {
      Count at = parameters_.offset(i);
      const Count stop = parameters_.offset(i + 1);
      Count rank = at > 0 ? ceil_div(at, part_) - 1 : 0;
      for (; (rank + 1) * part_ < stop; rank += 1) {
        piece(rank, at, (rank + 1) * part_);
        at = (rank + 1) * part_;
      }
      piece(rank, at, stop);
    };
    for (auto run = in_bucket_.rbegin(); run != in_bucket_.rend(); ++run) {
      for (std::int64_t k = 0; k < run->times; ++k) {
        for (std::int64_t i = run->last; i <= run->first; ++i) {
          cut(i);
        }
      }
    }
    reduce();
  }

  const TrainingArgs& args_;
  DeepSpeedParameters parameters_;
  Count part_;                  ///< elements of one owner
  Count bucket_;                ///< elements waiting
  std::vector<Run> in_bucket_;  ///< their parameters, in backward order
};

GeneratedWorkload generate(const GenerateRequest& request) {
  return deepspeed_workload<Zero12>(
      request,
      [](const TrainingArgs& args) -> std::string_view {
        return args.stage == 1 ? "deepspeed_stage1" : "deepspeed_stage2";
      },
      [](const TrainingArgs& args, Warnings& warnings) {
        warn_of_losses(args, warnings);
        if (args.amp) {
          warnings.add(
              "amp_enabled: AICB itself fails on it at stages 1 and 2; what is written leaves out "
              "the broadcasts of the start, as at stage 3");
        }
      });
}

}  // namespace

extern const Generator kDeepspeed12Generator;
const Generator kDeepspeed12Generator = {"deepspeed12",
                                         "operations of a rank of DeepSpeed ZeRO 1 or 2", "csv",
                                         training_flag_table, generate};

}  // namespace lockstep
