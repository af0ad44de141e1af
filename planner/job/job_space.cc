#include "planner/job/job_space.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "generator/exact/rank_sizes.h"
#include "generator/exact/stage_plan.h"
#include "generator/exact/vocabulary.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMostContext = 16, kLeastTokens = 1024, kMostFewer = 3,
                       kMostRagged = 16;  // virtual stages
constexpr std::array<std::int64_t, 6> kMicrobatches = {1, 2, 4, 8, 16, 32};
/// Of more samples, products are large enough; they are looked at where sequences are short.
constexpr std::int64_t kFreeMicrobatch = 8, kMostMicrobatchTokens = 65536;
constexpr std::array<std::string_view, 2> kOrders = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};

/// Whether a job follows the rules; else the rule that it breaks is counted, by its flag.
bool allowed(const Job& job, LeftOut& left_out) {
  try {
    check_job(job);
    return true;
  } catch (const Error& error) {
    const std::string_view text = error.what();  // its place and message, without advice
    ++left_out[std::string(text.substr(0, text.find('\n')))];
    return false;
  }
}

/// Walks the axes of a node one after the other.
class Nodes {
 public:
  Nodes(const Job& base, const PlanAxes& axes, const SpaceLimits& limits, LeftOut& left_out)
      : job_(base),
        base_(base),
        axes_(axes),
        limits_(limits),
        left_out_(left_out),
        layers_(layer_count(base.model)),
        experts_(experts_of(base.model)) {
    job_.vpp = 1;
    job_.sharding = Sharding::kNone;
    job_.hsdp_replicas = 1;
    job_.first_stage_layers = job_.last_stage_layers = 0;
    job_.stage_layers.clear();
    job_.schedule = "1f1b";
  }

  std::vector<Job> run() {
    for (const std::int64_t gpus : axes_.gpus) {
      job_.gpus = gpus;
      for (const std::int64_t tp : or_free(axes_.tp, divisors(gpus, 2 * limits_.gpus_per_server))) {
        job_.tp = tp;
        job_ = with_model(base_, std::move(job_));
        context();
      }
    }
    return std::move(nodes_);
  }

 private:
  void context() {
    for (const std::int64_t cp : or_free(axes_.cp, free_context(job_.seq))) {
      job_.cp = cp;
      const std::int64_t rest = job_.gpus / std::max<std::int64_t>(1, job_.tp * cp);
      for (const std::int64_t pp : or_free(axes_.pp, divisors(rest, layers_))) {
        job_.pp = pp;
        if (job_.gpus % (job_.tp * cp * pp) != 0) {
          ++left_out_[fmt::format("tp {} x cp {} x pp {} does not divide {} GPUs", job_.tp, cp, pp,
                                  job_.gpus)];
          continue;
        }
        experts();
      }
    }
  }

  void experts() {
    const std::int64_t rest = job_.gpus / job_.pp;
    for (const std::int64_t etp : or_free(axes_.expert_tp, free_expert_tp(experts_, job_.tp))) {
      job_.expert_tp = etp;
      for (const std::int64_t ep : or_free(
               axes_.ep, experts_ > 0 ? divisors(experts_, rest) : std::vector<std::int64_t>{1})) {
        job_.ep = ep;
        batch();
      }
    }
  }

  void batch() {
    for (const std::int64_t size : or_free(axes_.micro_batch, free_microbatches(job_.seq))) {
      job_.micro_batch = size;
      for (const bool sequence :
           or_free(axes_.sequence_parallel, free_sequence_parallel(job_.tp))) {
        job_.sequence_parallel = sequence;
        for (const Recompute recompute : or_free(axes_.recompute, free_recompute(job_))) {
          job_.recompute = recompute;
          placements();
        }
      }
    }
  }

  void placements() {
    const bool choice = job_.pp > 1 && job_.dp() > 1;
    const std::vector<ContextComm> comms = job_.cp > 1
                                               ? or_free(axes_.context_comm, {job_.context_comm})
                                               : std::vector<ContextComm>{job_.context_comm};
    std::vector<std::string> orders(kOrders.begin(), kOrders.end());
    orders.resize(choice ? kOrders.size() : 1);
    for (const std::string& order : or_free(axes_.rank_order, orders)) {
      job_.rank_order = order;
      for (const ContextComm comm : comms) {
        Job node = job_;
        node.context_comm = comm;
        if (allowed(node, left_out_)) {
          node.model = {};
          nodes_.push_back(std::move(node));
        }
      }
    }
  }

  Job job_;
  const Job& base_;
  const PlanAxes& axes_;
  const SpaceLimits& limits_;
  LeftOut& left_out_;
  std::int64_t layers_, experts_;
  std::vector<Job> nodes_;
};

/// How layers are spread: all alike where first and last are 0 and no list is given.
struct Split {
  std::int64_t first = 0, last = 0;
  std::vector<std::int64_t> stage_layers = {};  ///< of each virtual stage
};

/// Splits in which the last virtual stage, and maybe the first, has fewer layers than the longest,
/// and as many of the middle ones a layer fewer as it takes to add up to the model: at least so
/// many, and not all. These come first, since they hold the activations of more microbatches. None
/// is the even one, in which the first and the last are as short as the shorter ones.
std::vector<Split> ragged_splits(std::int64_t layers, std::int64_t stages,
                                 std::int64_t least_shorter) {
  constexpr std::array<std::pair<std::int64_t, std::int64_t>, 4> kFewer = {
      {{0, 1}, {0, 2}, {1, 2}, {1, 3}}};
  std::vector<Split> splits;
  for (const auto& [first, last] : kFewer) {
    const std::int64_t each = (layers + first + last + stages - 1) / stages;
    const std::int64_t shorter = each * stages - first - last - layers;
    if (shorter < least_shorter || shorter > stages - 3 || each <= last) {
      continue;
    }
    std::vector<std::int64_t> list;
    for (std::int64_t v = 0; v < stages; ++v) {
      const std::int64_t fewer = v == 0 ? first : v + 1 == stages ? last : v <= shorter ? 1 : 0;
      list.push_back(each - fewer);
    }
    splits.push_back({0, 0, std::move(list)});
  }
  return splits;
}

/// Ways to spread layers: the first is even.
std::vector<Split> splits_of(const Job& job, const PlanAxes& axes) {
  const std::int64_t layers = layer_count(job.model);
  if (axes.first_stage_layers > 0 || axes.last_stage_layers > 0 || !axes.stage_layers.empty()) {
    return {{axes.first_stage_layers, axes.last_stage_layers, axes.stage_layers}};
  }
  std::vector<Split> splits = {{}};
  const std::int64_t others = job.pp - 2;
  if (axes.even_stages || others < 1) {
    return splits;
  }
  for (std::int64_t each = job.vpp; each * others < layers; each += job.vpp) {
    for (std::int64_t first = 0; first <= kMostFewer; ++first) {
      for (std::int64_t last = 0; last <= kMostFewer; ++last) {
        const std::int64_t front = each - first * job.vpp, back = each - last * job.vpp;
        // Without chunks, those with one layer fewer in the last stage are the even one.
        const bool even =
            job.vpp == 1 ? first <= 1 && last <= 1 && first <= last : first == 0 && last == 0;
        if (!even && front > 0 && back > 0 && front + back + each * others == layers) {
          splits.push_back({front, back});
        }
      }
    }
  }
  if (job.pp * job.vpp <= kMostRagged) {
    // Without chunks those above are the ones in which none in the middle is shorter.
    std::ranges::move(ragged_splits(layers, job.pp * job.vpp, job.vpp > 1 ? 0 : 1),
                      std::back_inserter(splits));
  }
  return splits;
}

std::string_view word(Recompute recompute) {
  return recompute == Recompute::kFull        ? "full"
         : recompute == Recompute::kSelective ? "selective"
                                              : "none";
}

std::string_view word(ContextComm comm) {
  return comm == ContextComm::kRing        ? "ring"
         : comm == ContextComm::kAllGather ? "allgather"
                                           : "alltoall";
}

}  // namespace

std::vector<std::int64_t> free_context(std::int64_t seq) {
  std::vector<std::int64_t> free = {1};
  while (free.back() < kMostContext && seq / (2 * free.back()) >= kLeastTokens) {
    free.push_back(2 * free.back());
  }
  return free;
}

std::vector<std::int64_t> free_expert_tp(std::int64_t experts, std::int64_t tp) {
  return experts > 0 && tp > 1 ? std::vector<std::int64_t>{0, 1} : std::vector<std::int64_t>{0};
}

std::vector<bool> free_sequence_parallel(std::int64_t tp) {
  return tp == 1 ? std::vector<bool>{false} : std::vector<bool>{false, true};
}

std::vector<Recompute> free_recompute(const Job& base) {
  return base.flash_attention
             ? std::vector<Recompute>{Recompute::kNone, Recompute::kFull}
             : std::vector<Recompute>{Recompute::kNone, Recompute::kSelective, Recompute::kFull};
}

std::vector<std::int64_t> free_microbatches(std::int64_t seq) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : kMicrobatches) {
    if (size <= kFreeMicrobatch || size * seq <= kMostMicrobatchTokens) {
      sizes.push_back(size);
    }
  }
  return sizes;
}

std::vector<std::int64_t> free_replicas(const Job& job, const SpaceLimits& limits) {
  const std::int64_t copies = job.dp() * job.cp;
  const std::int64_t local = std::max<std::int64_t>(1, limits.gpus_per_server / job.tp);
  if (local > 1 && copies % local == 0 && copies > local) {
    return {1, copies / local};
  }
  return {1};
}

std::int64_t experts_of(const Model& model) {
  std::int64_t experts = 0;
  for (const LayerBlock& block : model.blocks) {
    for (const Module& module : block.modules) {
      experts = module.kind == ModuleKind::kMoe ? std::max(experts, module.experts) : experts;
    }
  }
  return experts;
}

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> result;
  for (std::int64_t d = 1; d <= std::min(number, most); ++d) {
    if (number % d == 0) {
      result.push_back(d);
    }
  }
  return result;
}

Job with_model(const Job& base, Job cut) {
  cut.model = base.model;
  return with_padded_vocabulary(std::move(cut));
}

std::vector<Job> job_nodes(const Job& base, const PlanAxes& axes, const SpaceLimits& limits,
                           LeftOut& left_out) {
  return Nodes(base, axes, limits, left_out).run();
}

std::vector<Job> job_leaves(const Job& node, const PlanAxes& axes, const SpaceLimits& limits,
                            LeftOut& left_out) {
  std::vector<Job> leaves;
  const std::int64_t copies = node.dp() * node.cp;
  std::vector<Sharding> stages = {Sharding::kNone};
  if (copies > 1) {
    stages.insert(stages.end(), {Sharding::kZero1, Sharding::kZero2, Sharding::kZero3});
  }
  std::vector<std::int64_t> chunks = {1};
  while (node.pp > 1 && chunks.back() < kMostChunks &&
         node.pp * (chunks.back() + 1) <= layer_count(node.model) &&
         node.microbatches() % node.pp == 0) {
    chunks.push_back(chunks.back() + 1);
  }
  for (const Sharding sharding : or_free(axes.sharding, stages)) {
    for (const std::int64_t count : sharding == Sharding::kZero3
                                        ? or_free(axes.hsdp_replicas, free_replicas(node, limits))
                                        : std::vector<std::int64_t>{1}) {
      for (const std::int64_t vpp : or_free(axes.vpp, chunks)) {
        for (const std::string& schedule : or_free(axes.schedule, {"1f1b"})) {
          Job leaf = node;
          leaf.sharding = sharding;
          leaf.hsdp_replicas = count;
          leaf.vpp = vpp;
          leaf.schedule = schedule;
          for (const Split& split : splits_of(leaf, axes)) {
            leaf.first_stage_layers = split.first;
            leaf.last_stage_layers = split.last;
            leaf.stage_layers = split.stage_layers;
            if (allowed(leaf, left_out)) {
              leaves.push_back(leaf);
            }
          }
        }
      }
    }
  }
  return leaves;
}

std::vector<std::string> axis_words(const Job& job) {
  std::vector<std::string> words;
  const auto add = [&](std::string_view flag, std::int64_t value) {
    words.push_back(fmt::format("--{}", flag));
    words.push_back(std::to_string(value));
  };
  const auto add_text = [&](std::string_view flag, std::string_view value) {
    words.push_back(fmt::format("--{}", flag));
    words.emplace_back(value);
  };
  add("gpus", job.gpus);
  add("tp", job.tp);
  add("cp", job.cp);
  add("pp", job.pp);
  add("vpp", job.vpp);
  add("ep", job.ep);
  add("etp", job.expert_tp);
  add("mbs", job.micro_batch);
  add("gbs", job.global_batch);
  add("zero", static_cast<std::int64_t>(job.sharding));
  add("hsdp_replicas", job.hsdp_replicas);
  add_text("recompute", word(job.recompute));
  if (job.sequence_parallel) {
    words.emplace_back("--sp");
  }
  add_text("rank_order", job.rank_order);
  add_text("context_comm", word(job.context_comm));
  add_text("schedule", job.schedule);
  if (job.first_stage_layers > 0) {
    add("first_stage_layers", job.first_stage_layers);
  }
  if (job.last_stage_layers > 0) {
    add("last_stage_layers", job.last_stage_layers);
  }
  if (!job.stage_layers.empty()) {
    add_text("stage_layers", fmt::format("{}", fmt::join(job.stage_layers, ",")));
  }
  return words;
}

std::string plan_text(const Job& job) {
  std::string text = fmt::format("tp {} pp {} dp {}", job.tp, job.pp, job.dp());
  const auto more = [&](bool given, std::string_view name, std::int64_t value) {
    text += given ? fmt::format(" {} {}", name, value) : "";
  };
  more(job.cp > 1, "cp", job.cp);
  more(job.ep > 1, "ep", job.ep);
  more(job.expert_tp > 0 && job.expert_tp != job.tp, "etp", job.expert_tp);
  more(job.vpp > 1, "vpp", job.vpp);
  text += fmt::format(", microbatch {}", job.micro_batch);
  if (job.sharding != Sharding::kNone) {
    text += fmt::format(", ZeRO-{}", static_cast<int>(job.sharding));
    text += job.hsdp_replicas > 1 ? fmt::format(" x{}", job.hsdp_replicas) : "";
  }
  text += job.sequence_parallel ? ", sequence parallel" : "";
  if (job.recompute != Recompute::kNone) {
    text += fmt::format(", {} recompute", word(job.recompute));
  }
  if (job.rank_order != kOrders.front()) {
    text += fmt::format(", ranks {}", job.rank_order);
  }
  if (job.cp > 1) {
    text += fmt::format(", context by {}", word(job.context_comm));
  }
  if (job.schedule != "1f1b") {
    text += fmt::format(", {}", job.schedule);
  }
  if (job.first_stage_layers > 0 || job.last_stage_layers > 0) {
    text +=
        fmt::format(", {} layers first, {} last", job.first_stage_layers, job.last_stage_layers);
  }
  if (!job.stage_layers.empty()) {
    text += fmt::format(", layers {}", fmt::join(job.stage_layers, ","));
  }
  return text;
}

}  // namespace lockstep
