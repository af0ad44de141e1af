#include "generator/exact/context_attention.h"

#include <algorithm>

namespace lockstep {
namespace {

/// Bytes of keys and values of one rank's tokens.
Bytes kv_bytes(const Module& module, const RankSizes& sizes) {
  const std::int64_t heads = std::max<std::int64_t>(1, module.kv_heads / sizes.tp);
  return Bytes(sizes.tokens) * (heads * (module.head_dim + module.value_dim)) * sizes.activation;
}

Bytes query_bytes(const Module& module, const RankSizes& sizes) {
  return Bytes(sizes.tokens) * (module.heads / sizes.tp * module.head_dim) * sizes.activation;
}

Bytes output_bytes(const Module& module, const RankSizes& sizes) {
  return Bytes(sizes.tokens) * (module.heads / sizes.tp * module.value_dim) * sizes.activation;
}

PassComm collective(CommType comm, Bytes bytes) { return {comm, RankGroup::kCp, bytes, false}; }

/// One round of a ring, beside the chain: a chunk to the next rank, after what it is made from.
/// Returns the receive.
std::int32_t exchange(PassBuilder& out, const std::string& name, Bytes bytes,
                      std::vector<std::int32_t> after) {
  const PassComm to{CommType::kSendRecv, RankGroup::kCp, bytes, true};
  const PassComm from{CommType::kSendRecv, RankGroup::kCp, bytes, false};
  out.beside(name + " send", to, after);
  return out.beside(name + " receive", from, std::move(after));
}

void ring_forward(PassBuilder& out, const Module& module, const RankSizes& sizes) {
  const Operator part = operators_of(module, sizes, Region::kTensor, sizes.cp).forward.front();
  std::vector<std::int32_t> source = out.tail();
  for (std::int64_t round = 0; round < sizes.cp; ++round) {
    std::int32_t received = -1;
    if (round + 1 < sizes.cp) {
      received = exchange(out, module.name + " ring", kv_bytes(module, sizes), source);
      source = {received};
    }
    out.compute(part);
    if (received >= 0) {
      out.join(received);
    }
  }
}

/// Chunks go round once more, from the ranks where forward left them, so that after cp - 1 hops
/// they are home. Their gradients follow, a round behind: the sum over the ranks before goes on
/// while the rank's own part of the next chunk is computed (Transformer Engine,
/// context_parallel.py).
void ring_backward(PassBuilder& out, const Module& module, const RankSizes& sizes) {
  const Operator part = operators_of(module, sizes, Region::kTensor, sizes.cp).input_grad.front();
  const Bytes kv = kv_bytes(module, sizes);
  std::vector<std::int32_t> source = out.tail();
  for (std::int64_t round = 0; round < sizes.cp; ++round) {
    std::vector<std::int32_t> received;
    if (round + 1 < sizes.cp) {
      source = {exchange(out, module.name + " ring backward", kv, source)};
      received = source;
    }
    if (round > 0) {
      received.push_back(exchange(out, module.name + " ring gradient", kv, out.tail()));
    }
    out.compute(part);
    for (const std::int32_t each : received) {
      out.join(each);
    }
  }
}

}  // namespace

std::vector<Operator> of_all_tokens(std::vector<Operator> operators, const RankSizes& sizes) {
  for (Operator& op : operators) {
    if (op.kind == OperatorKind::kAttention) {
      op.heads /= sizes.cp;
      op.kv_heads = std::max<std::int64_t>(1, op.kv_heads / sizes.cp);
      op.queries = op.keys;
    }
  }
  return operators;
}

void attention_forward(PassBuilder& out, const Module& module, const PassOptions& options) {
  const RankSizes& sizes = options.sizes;
  const ModuleOperators whole = operators_of(module, sizes, Region::kTensor);
  if (sizes.cp == 1) {
    out.compute_all(whole.forward);
    return;
  }
  switch (options.context_comm) {
    case ContextComm::kRing:
      ring_forward(out, module, sizes);
      break;
    case ContextComm::kAllGather:
      out.transfer(module.name + " gather",
                   collective(CommType::kAllGather, kv_bytes(module, sizes) * sizes.cp));
      out.compute_all(whole.forward);
      break;
    case ContextComm::kAllToAll:
      out.transfer(
          module.name + " scatter heads",
          collective(CommType::kAllToAll, query_bytes(module, sizes) + kv_bytes(module, sizes)));
      out.compute_all(of_all_tokens(whole.forward, sizes));
      out.transfer(module.name + " gather heads",
                   collective(CommType::kAllToAll, output_bytes(module, sizes)));
      break;
  }
}

void attention_backward(PassBuilder& out, const Module& module, const PassOptions& options) {
  const RankSizes& sizes = options.sizes;
  const ModuleOperators whole = operators_of(module, sizes, Region::kTensor);
  if (sizes.cp == 1) {
    out.compute_all(whole.input_grad);
    return;
  }
  const Bytes gathered = kv_bytes(module, sizes) * sizes.cp;
  switch (options.context_comm) {
    case ContextComm::kRing:
      ring_backward(out, module, sizes);
      break;
    case ContextComm::kAllGather:
      out.transfer(module.name + " gather again", collective(CommType::kAllGather, gathered));
      out.compute_all(whole.input_grad);
      out.transfer(module.name + " gradient scatter",
                   collective(CommType::kReduceScatter, gathered));
      break;
    case ContextComm::kAllToAll:
      out.transfer(module.name + " gradient scatter heads",
                   collective(CommType::kAllToAll, output_bytes(module, sizes)));
      out.compute_all(of_all_tokens(whole.input_grad, sizes));
      out.transfer(
          module.name + " gradient gather heads",
          collective(CommType::kAllToAll, query_bytes(module, sizes) + kv_bytes(module, sizes)));
      break;
  }
}

}  // namespace lockstep
