#include "generator/exact/operator_parts.h"

#include <utility>

namespace lockstep {
namespace {

/// The sizes of a matrix product, `groups` of them.
struct Gemm {
  std::int64_t m = 0, n = 0, k = 0, groups = 1;
};

Operator gemm(std::string name, const Gemm& size, const RankSizes& sizes, int operand) {
  Operator op;
  op.name = std::move(name);
  op.kind = size.groups > 1 ? OperatorKind::kGroupedGemm : OperatorKind::kGemm;
  op.m = size.m;
  op.n = size.n;
  op.k = size.k;
  op.groups = size.groups;
  op.flops = 2 * product_of({size.m, size.n, size.k, size.groups});
  op.bytes = static_cast<double>(size.groups) *
             (static_cast<double>(operand) *
                  (product_of({size.m, size.k}) + product_of({size.k, size.n})) +
              static_cast<double>(sizes.activation) * product_of({size.m, size.n}));
  op.element_bytes = operand;
  return op;
}

/// Traffic of making an operand of fp8 from one element: read, and written along rows and along
/// columns, since the weight's gradient needs it the other way round; with a scale of its own for
/// each tensor its largest value is looked for first.
double cast_bytes(const RankSizes& sizes) {
  return (sizes.shares_largest ? 2.0 : 1.0) * sizes.activation + 2.0 * sizes.operand;
}

}  // namespace

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double product_of(std::initializer_list<std::int64_t> factors) {
  double result = 1;
  for (const std::int64_t factor : factors) {
    result *= static_cast<double>(factor);
  }
  return result;
}

ModuleOperators linear(const std::string& name, std::int64_t rows, std::int64_t in,
                       std::int64_t out, const RankSizes& sizes, int operand, std::int64_t groups) {
  ModuleOperators ops;
  ops.forward = {gemm(name + " forward", {rows, out, in, groups}, sizes, operand)};
  ops.input_grad = {gemm(name + " input gradient", {rows, in, out, groups}, sizes, operand)};
  Operator weight = gemm(name + " weight gradient", {out, in, rows, groups}, sizes, operand);
  weight.bytes += product_of({groups, out, in}) * (2.0 * sizes.gradient - sizes.activation);
  ops.weight_grad = {std::move(weight)};
  for (auto* backward : {&ops.input_grad, &ops.weight_grad}) {
    backward->front().backward = true;
  }
  if (operand < sizes.activation) {
    const auto cast = [&](const char* what, std::int64_t width, bool backward) {
      return memory_bound(name + what, product_of({groups, rows, width}) * cast_bytes(sizes),
                          backward, sizes.activation);
    };
    ops.forward.insert(ops.forward.begin(), cast(" cast forward", in, false));
    ops.input_grad.insert(ops.input_grad.begin(), cast(" cast backward", out, true));
  }
  return ops;
}

Operator product_of_size(const Operator& whole, std::int64_t m, std::int64_t n,
                         const RankSizes& sizes) {
  Operator op = gemm(whole.name, {m, n, whole.k, whole.groups}, sizes, whole.element_bytes);
  op.backward = whole.backward;
  return op;
}

Operator memory_bound(std::string name, double bytes, bool backward, int element_bytes,
                      MemoryWork work) {
  Operator op;
  op.name = std::move(name);
  op.bytes = bytes;
  op.memory_work = work;
  op.backward = backward;
  op.element_bytes = element_bytes;
  return op;
}

ModuleOperators elementwise(const std::string& name, double forward, double backward,
                            int element_bytes, MemoryWork work) {
  ModuleOperators ops;
  ops.forward = {memory_bound(name + " forward", forward, false, element_bytes, work)};
  ops.input_grad = {memory_bound(name + " backward", backward, true, element_bytes, work)};
  return ops;
}

bool computes_tangents(const Module& activation) {
  return activation.in == activation.out && activation.name.find("relu") == std::string::npos;
}

}  // namespace lockstep
