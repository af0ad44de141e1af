#include "generator/exact/pass.h"

#include <array>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generator/exact/context_attention.h"
#include "generator/exact/moe_pass.h"
#include "generator/exact/pass_builder.h"
#include "generator/exact/product_pieces.h"
#include "generator/exact/shared_input.h"

namespace lockstep {
namespace {

/// What both directions know about a list of modules.
class ModuleList {
 public:
  ModuleList(std::span<const Module> modules, const PassOptions& options)
      : modules_(modules),
        options_(options),
        regions_(regions_of(modules)),
        inputs_(shared_inputs(modules)) {}

  std::size_t size() const { return modules_.size(); }
  const Module& module(std::size_t i) const { return modules_[i]; }
  const SharedInput& input(std::size_t i) const { return inputs_[i]; }
  ModuleOperators operators(std::size_t i) const {
    return operators_of(modules_[i], options_.sizes, regions_[i]);
  }
  ParameterCount parameters(std::size_t i) const {
    return parameters_of(modules_.subspan(i, 1), options_);
  }
  /// What runs beside pieces of a module's products: linears of the layers have it, a head has not.
  ProductOverlap overlap(std::size_t i) const {
    const ModuleKind kind = modules_[i].kind;
    const bool linear = kind == ModuleKind::kColumnLinear || kind == ModuleKind::kRowLinear;
    return linear ? options_.product_overlap : ProductOverlap();
  }
  /// Whether a module's output is a sum over tp. Embeddings in a row (words, positions) are added
  /// up before they are reduced, and so are parallel row linears.
  bool reduces(std::size_t i) const {
    const bool last = i + 1 == modules_.size() || modules_[i + 1].kind != ModuleKind::kEmbedding;
    return ends_branch(i) || (modules_[i].kind == ModuleKind::kEmbedding && last);
  }
  /// Whether a row linear's output goes to the residual.
  bool ends_branch(std::size_t i) const {
    return modules_[i].kind == ModuleKind::kRowLinear && !modules_[i].parallel;
  }
  PassComm over_tp(CommType comm, std::int64_t width, int element) const {
    return {comm, RankGroup::kTp, Bytes(options_.sizes.tokens) * width * element, false};
  }
  /// Heads stay in bf16, and embeddings multiply nothing.
  static bool has_operands(const Module& module) {
    return module.kind != ModuleKind::kHead && module.kind != ModuleKind::kEmbedding;
  }
  /// Of what a module multiplies: what it reads, or the gradient of what it writes.
  PassComm gather_over_tp(const Module& module, std::int64_t width) const {
    return has_operands(module)
               ? PassComm{CommType::kAllGather, RankGroup::kTp,
                          operand_bytes(options_.sizes.tokens, width, options_.sizes), false}
               : over_tp(CommType::kAllGather, width, options_.sizes.activation);
  }
  /// Of what linears read, with what comes beside it and is not multiplied (shared_input.h).
  PassComm gather_input(std::size_t i) const {
    PassComm gather = gather_over_tp(modules_[i], inputs_[i].operand_width);
    gather.bytes += over_tp(CommType::kAllGather, inputs_[i].width - inputs_[i].operand_width,
                            options_.sizes.activation)
                        .bytes;
    return gather;
  }
  /// With a scale of its own a tensor is cut by the largest value on any rank.
  bool shares_largest(const Module& module) const {
    return options_.sizes.shares_largest && has_operands(module);
  }
  static PassComm largest() { return {CommType::kAllReduce, RankGroup::kTp, Bytes(4), false}; }
  /// Fewer key and value heads than ranks: a rank's columns of their projection are no whole heads,
  /// so that all are gathered and the own ones taken (Megatron Core, attention.py).
  bool gathers_heads(const Module& module) const { return module.kv_heads < options_.sizes.tp; }
  PassComm heads_over_tp(CommType comm, const Module& module) const {
    const std::int64_t width =
        module.heads * module.head_dim + module.kv_heads * (module.head_dim + module.value_dim);
    return over_tp(comm, width, options_.sizes.activation);
  }
  /// Adds a module's output to the residual, or its gradient to the residual's.
  Operator residual(const Module& module, bool backward) const {
    Operator op;
    const std::int64_t width = module.kind == ModuleKind::kMoe ? module.in : module.out;
    op.name = module.name + (backward ? " residual backward" : " residual forward");
    const double mask = options_.sizes.dropout ? 1 : 0;  // a byte an element
    op.bytes = (3.0 * options_.sizes.activation + mask) *
               static_cast<double>(options_.sizes.local_tokens) * static_cast<double>(width);
    op.element_bytes = options_.sizes.activation;
    op.backward = backward;
    return op;
  }

 private:
  std::span<const Module> modules_;
  const PassOptions& options_;
  std::vector<Region> regions_;
  std::vector<SharedInput> inputs_;
};

/// What a custom module's author gives, where the group has more than one rank.
void custom_transfers(PassBuilder& out, const std::string& name,
                      const std::vector<ModuleComm>& comms, const RankSizes& sizes) {
  const std::array<std::pair<RankGroup, std::int64_t>, 4> groups{
      {{RankGroup::kTp, sizes.tp},
       {RankGroup::kCp, sizes.cp},
       {RankGroup::kEp, sizes.ep},
       {RankGroup::kExpertTp, sizes.etp}}};  // as ModuleGroup
  for (const ModuleComm& comm : comms) {
    const auto& [group, ranks] = groups.at(static_cast<std::size_t>(comm.group));
    if (ranks > 1) {
      const double bytes = std::round(comm.bytes * static_cast<double>(sizes.tokens));
      if (!(bytes < 9e18)) {
        throw Error(fmt::format("{} communicates {} bytes", name, bytes))
            .field(name)
            .expected("less than 9e18, a microbatch's tokens together");
      }
      out.transfer(fmt::format("{} {}", name, name_of(comm.comm)),
                   {comm.comm, group, Bytes(static_cast<std::int64_t>(bytes)), false});
    }
  }
}

/// The products of linears that read the same input, from the first of them on, piece by piece as
/// it is gathered. Returns the last of them.
std::size_t gathered_products(PassBuilder& out, const ModuleList& list, std::size_t first,
                              const PassComm& gather, const RankSizes& sizes) {
  std::vector<Operator> products = list.operators(first).forward;
  std::size_t last = first;
  while (!list.input(last).last) {
    const std::vector<Operator> more = list.operators(++last).forward;
    products.insert(products.end(), more.begin(), more.end());
  }
  gather_and_multiply(out, list.module(first).name + " gather", gather, products, sizes);
  return last;
}

void forward_steps(PassBuilder& out, std::span<const Module> modules, const PassOptions& options) {
  const ModuleList list(modules, options);
  const RankSizes& sizes = options.sizes;
  const bool cut = sizes.tp > 1, gathers = sizes.sequence_parallel;
  const CommType reduce = gathers ? CommType::kReduceScatter : CommType::kAllReduce;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Module& module = list.module(i);
    if (module.kind == ModuleKind::kAttention) {
      if (list.gathers_heads(module)) {
        out.transfer(module.name + " gather heads",
                     list.heads_over_tp(CommType::kAllGather, module));
      }
      attention_forward(out, module, options);
      continue;
    }
    if (module.kind == ModuleKind::kMoe) {
      moe_forward(out, module, options);
      out.compute(list.residual(module, false));
      continue;
    }
    if (reads_columns(module) && gathers && list.input(i).first) {
      if (list.shares_largest(module)) {
        out.transfer(module.name + " largest value", ModuleList::largest());
      }
      const PassComm gather = list.gather_input(i);
      if (list.overlap(i).gather) {
        i = gathered_products(out, list, i, gather, sizes);
        continue;
      }
      out.transfer(module.name + " gather", gather);
    }
    const bool partial = list.reduces(i);
    const bool in_pieces = partial && list.overlap(i).reduce;
    if (in_pieces) {
      multiply_and_reduce(out, module.name + " reduce",
                          list.over_tp(reduce, module.out, sizes.activation),
                          list.operators(i).forward, sizes);
    } else {
      out.compute_all(list.operators(i).forward);
    }
    custom_transfers(out, module.name, module.custom_forward, sizes);
    if (module.kind == ModuleKind::kHead && cut) {
      for (const char* what : {" maximum", " target", " sum"}) {
        out.transfer(module.name + what, list.over_tp(CommType::kAllReduce, 1, 4));
      }
    }
    if (partial && cut && !in_pieces) {
      out.transfer(module.name + " reduce", list.over_tp(reduce, module.out, sizes.activation));
    }
    if (list.ends_branch(i)) {
      out.compute(list.residual(module, false));
    }
  }
}

/// The backward pass of linears that read columns: the reduction of the input's gradient and the
/// second gathering of the input run beside the products.
void column_backward(PassBuilder& out, const ModuleList& list, std::size_t i,
                     const RankSizes& sizes, std::int32_t& gathered) {
  const Module& module = list.module(i);
  const SharedInput& input = list.input(i);
  const ModuleOperators ops = list.operators(i);
  if (input.last) {
    gathered = sizes.sequence_parallel
                   ? out.beside(module.name + " gather again",
                                list.gather_over_tp(module, input.operand_width), out.tail(), true)
                   : -1;
  }
  const auto reduction = [&] {
    return list.over_tp(sizes.sequence_parallel ? CommType::kReduceScatter : CommType::kAllReduce,
                        input.width, sizes.activation);
  };
  const std::string reduce = module.name + " gradient reduce";
  std::int32_t reduced = -1;
  if (input.first && list.overlap(i).gradient_reduce) {
    multiply_and_reduce(out, reduce, reduction(), ops.input_grad, sizes);
  } else {
    out.compute_all(ops.input_grad);
    if (input.first && sizes.tp > 1) {
      reduced = out.beside(reduce, reduction(), out.tail());
    }
  }
  if (gathered >= 0) {
    out.join(gathered);
  }
  out.weight_gradients(ops.weight_grad, list.parameters(i));
  if (reduced >= 0) {
    out.join(reduced);
  }
}

void backward_steps(PassBuilder& out, std::span<const Module> modules, const PassOptions& options) {
  const ModuleList list(modules, options);
  const RankSizes& sizes = options.sizes;
  std::int32_t gathered = -1;
  for (std::size_t i = list.size(); i-- > 0;) {
    const Module& module = list.module(i);
    switch (module.kind) {
      case ModuleKind::kAttention:
        if (options.recompute == Recompute::kSelective) {
          attention_forward(out, module, options);
        }
        attention_backward(out, module, options);
        if (list.gathers_heads(module)) {
          out.transfer(module.name + " gradient scatter heads",
                       list.heads_over_tp(CommType::kReduceScatter, module));
        }
        continue;
      case ModuleKind::kMoe:
        out.compute(list.residual(module, true));
        moe_backward(out, module, options);
        continue;
      case ModuleKind::kColumnLinear:
      case ModuleKind::kHead:
        column_backward(out, list, i, sizes, gathered);
        continue;
      case ModuleKind::kRowLinear:
        if (list.ends_branch(i)) {
          out.compute(list.residual(module, true));
        }
        break;
      default:
        break;
    }
    const bool gathers = list.reduces(i) && sizes.sequence_parallel;
    const std::string gather = module.name + " gradient gather";
    if (gathers && list.shares_largest(module)) {
      out.transfer(module.name + " gradient largest value", ModuleList::largest());
    }
    const ModuleOperators ops = list.operators(i);
    const bool weights = !ops.weight_grad.empty();
    if (gathers && list.overlap(i).gather) {
      gather_and_multiply(out, gather, list.gather_over_tp(module, module.out), ops.input_grad,
                          sizes);
    } else {
      if (gathers) {
        out.transfer(gather, list.gather_over_tp(module, module.out));
      }
      out.compute_all(ops.input_grad, weights ? ParameterCount() : list.parameters(i));
    }
    out.weight_gradients(ops.weight_grad, list.parameters(i));
    custom_transfers(out, module.name, module.custom_backward, sizes);
  }
}

PassOptions own_options(std::span<const Module> modules, PassOptions options) {
  if (!overlaps_products(modules, options)) {
    options.product_overlap = {};
  }
  return options;
}

}  // namespace

Pass forward_pass(std::span<const Module> modules, const PassOptions& options) {
  PassBuilder out;
  forward_steps(out, modules, own_options(modules, options));
  return out.take();
}

Pass backward_pass(std::span<const Module> modules, const PassOptions& given) {
  const PassOptions options = own_options(modules, given);
  PassBuilder out;
  const bool edge = !modules.empty() && (modules.front().kind == ModuleKind::kEmbedding ||
                                         modules.back().kind == ModuleKind::kHead);
  if (options.recompute == Recompute::kFull && !edge) {
    forward_steps(out, modules, options);
  }
  backward_steps(out, modules, options);
  return out.take();
}

ParameterCount parameters_of(std::span<const Module> modules, const PassOptions& options) {
  ParameterCount sum;
  for (const Module& module : modules) {
    Module own = module;
    own.shared = module.shared && !options.tied_copy;
    sum += parameters_of(own, options.sizes);
  }
  return sum;
}

}  // namespace lockstep
