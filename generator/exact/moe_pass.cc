#include "generator/exact/moe_pass.h"

#include "generator/exact/product_pieces.h"

namespace lockstep {
namespace {

/// The transfers around the experts of one MoE.
class ExpertTransfers {
 public:
  ExpertTransfers(PassBuilder& out, const Module& module, const RankSizes& sizes)
      : out_(out), module_(module), sizes_(sizes), rows_(dispatched_rows(module, sizes)) {}

  /// To the ranks of the experts, then to all ranks that share each of them: what their products
  /// read, tokens or the gradients of their outputs.
  void outwards(const std::string& name) {
    all_to_all(name, sizes_.dispatches_operands);
    expert_tp(name + " gather", CommType::kAllGather, sizes_.dispatches_operands);
  }
  void back(const std::string& name) {
    expert_tp(name + " scatter", CommType::kReduceScatter, false);
    all_to_all(name, false);
  }
  /// What the shared experts multiply (`what`: their input, or their output's gradient), which is
  /// gathered over tp, and its products.
  void shared_in(const std::string& what, const std::vector<Operator>& products, bool overlap) {
    if (sizes_.tp > 1 && sizes_.shares_largest) {
      out_.transfer(module_.name + what + " largest value",
                    {CommType::kAllReduce, RankGroup::kTp, Bytes(4), false});
    }
    const std::string name = module_.name + what + " gather";
    if (overlap) {
      gather_and_multiply(out_, name, shared(CommType::kAllGather, true), products, sizes_);
      return;
    }
    if (sizes_.tp > 1) {
      out_.transfer(name, shared(CommType::kAllGather, true));
    }
    out_.compute_all(products);
  }
  /// Their last product, whose output is reduce-scattered.
  void shared_out(const std::vector<Operator>& products, bool overlap) {
    const std::string name = module_.name + ".shared scatter";
    if (overlap) {
      multiply_and_reduce(out_, name, shared(CommType::kReduceScatter, false), products, sizes_);
      return;
    }
    out_.compute_all(products);
    if (sizes_.tp > 1) {
      out_.transfer(name, shared(CommType::kReduceScatter, false));
    }
  }
  /// The gradients of their first product, as of a column linear (pass.h): the input is gathered
  /// again beside the input's gradient, whose reduction runs beside the weight's.
  void shared_gradients(const ModuleOperators& in, ParameterCount ready, bool overlap) {
    const bool cut = sizes_.tp > 1;
    const std::string again = module_.name + ".shared gather again";
    const std::string reduce = module_.name + ".shared gradient scatter";
    const PassComm reduction = shared(CommType::kReduceScatter, false);
    std::int32_t gathered = -1, reduced = -1;
    if (cut) {
      gathered = out_.beside(again, shared(CommType::kAllGather, true), out_.tail(), true);
    }
    if (overlap) {
      multiply_and_reduce(out_, reduce, reduction, in.input_grad, sizes_);
    } else {
      out_.compute_all(in.input_grad);
      if (cut) {
        reduced = out_.beside(reduce, reduction, out_.tail());
      }
    }
    if (gathered >= 0) {
      out_.join(gathered);
    }
    out_.weight_gradients(in.weight_grad, ready);
    if (reduced >= 0) {
      out_.join(reduced);
    }
  }

 private:
  PassComm shared(CommType comm, bool operands) const {
    return {comm, RankGroup::kTp, bytes(sizes_.tokens, operands), false};
  }
  Bytes bytes(std::int64_t rows, bool operands) const {
    return operands ? operand_bytes(rows, module_.in, sizes_)
                    : Bytes(rows) * module_.in * sizes_.activation;
  }
  void all_to_all(const std::string& name, bool operands) {
    if (sizes_.ep > 1) {
      out_.transfer(module_.name + name,
                    {CommType::kAllToAll, RankGroup::kEp, bytes(rows_, operands), false});
    }
  }
  void expert_tp(const std::string& name, CommType comm, bool operands) {
    if (sizes_.etp > 1) {
      out_.transfer(module_.name + name,
                    {comm, RankGroup::kExpertTp, bytes(rows_ * sizes_.etp, operands), false});
    }
  }

  PassBuilder& out_;
  const Module& module_;
  const RankSizes& sizes_;
  std::int64_t rows_;
};

void gradients(PassBuilder& out, const ModuleOperators& ops, ParameterCount ready) {
  out.compute_all(ops.input_grad);
  out.weight_gradients(ops.weight_grad, ready);
}

}  // namespace

void moe_forward(PassBuilder& out, const Module& module, const PassOptions& options) {
  const RankSizes& sizes = options.sizes;
  const MoeOperators moe = moe_operators(module, sizes);
  const ProductOverlap& overlap = options.product_overlap;
  ExpertTransfers transfers(out, module, sizes);
  out.compute_all(moe.router.forward);
  out.compute_all(moe.permute.forward);
  transfers.outwards(".dispatch");
  out.compute_all(moe.expert_in.forward);
  out.compute_all(moe.expert_activation.forward);
  out.compute_all(moe.expert_out.forward);
  transfers.back(".combine");
  out.compute_all(moe.unpermute.forward);
  if (module.shared_ffn > 0) {
    transfers.shared_in(".shared", moe.shared_in.forward, overlap.gather);
    out.compute_all(moe.shared_activation.forward);
    transfers.shared_out(moe.shared_out.forward, overlap.reduce);
  }
}

void moe_backward(PassBuilder& out, const Module& module, const PassOptions& options) {
  const RankSizes& sizes = options.sizes;
  const MoeOperators moe = moe_operators(module, sizes);
  const ProductOverlap& overlap = options.product_overlap;
  const ParameterCount all = parameters_of(module, sizes);
  const std::int64_t matrices = module.gated ? 3 : 2;
  ExpertTransfers transfers(out, module, sizes);
  if (module.shared_ffn > 0) {
    const std::int64_t shared = all.dense - all.replicated;
    transfers.shared_in(".shared gradient", moe.shared_out.input_grad, overlap.gather);
    out.weight_gradients(moe.shared_out.weight_grad, {shared / matrices, 0, 0});
    out.compute_all(moe.shared_activation.input_grad);
    transfers.shared_gradients(moe.shared_in, {shared - shared / matrices, 0, 0},
                               overlap.gradient_reduce);
  }
  out.compute_all(moe.unpermute.input_grad);
  transfers.outwards(".combine gradient");
  gradients(out, moe.expert_out, {0, all.expert / matrices, 0});
  out.compute_all(moe.expert_activation.input_grad);
  gradients(out, moe.expert_in, {0, all.expert - all.expert / matrices, 0});
  transfers.back(".dispatch gradient");
  out.compute_all(moe.permute.input_grad);
  gradients(out, moe.router, {all.replicated, 0, all.replicated});
}

}  // namespace lockstep
