// One transformer layer's forward and backward pass on an A100 against vTrain's measured steps. Of
// rows that differ only in layers L and microbatches M (tensor and pipeline degree 1), the second
// difference over L and M is the time of one layer for one microbatch: embedding, head, optimizer
// and the reduction of gradients drop out.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/text.h"
#include "generator/compute/roofline.h"
#include "generator/exact/operators.h"
#include "tests/support/reference.h"

namespace lockstep::compute_layer_test {
namespace {

Module module(ModuleKind kind, std::int64_t in, std::int64_t out) {
  Module made;
  made.kind = kind;
  made.in = in;
  made.out = out;
  return made;
}

/// GPT's layer as Megatron-LM of 2021 ran it: no fused attention.
double layer_s(std::int64_t hidden, std::int64_t heads, std::int64_t seq, std::int64_t micro) {
  Module attention = module(ModuleKind::kAttention, 0, 0);
  attention.heads = attention.kv_heads = heads;
  attention.head_dim = attention.value_dim = hidden / heads;
  // The product of all queries and keys is made, then masked.
  attention.causal = false;
  const Module norm = module(ModuleKind::kNorm, hidden, hidden);
  const Module residual = module(ModuleKind::kActivation, 2 * hidden, hidden);
  const std::array layer{norm,
                         module(ModuleKind::kPlainLinear, hidden, 3 * hidden),
                         attention,
                         module(ModuleKind::kPlainLinear, hidden, hidden),
                         residual,
                         norm,
                         module(ModuleKind::kPlainLinear, hidden, 4 * hidden),
                         module(ModuleKind::kActivation, 4 * hidden, 4 * hidden),
                         module(ModuleKind::kPlainLinear, 4 * hidden, hidden),
                         residual};
  RankSizes sizes;
  sizes.micro_batch = micro;
  sizes.seq = seq;
  sizes.tokens = sizes.local_tokens = micro * seq;
  sizes.flash_attention = false;
  sizes.gradient = 2;
  double sum = 0;
  for (const Module& part : layer) {
    const ModuleOperators ops = operators_of(part, sizes, Region::kSequence);
    for (const auto* list : {&ops.forward, &ops.input_grad, &ops.weight_grad}) {
      for (const Operator& op : *list) {
        sum += operator_time(op, gpu_spec("A100"), Precision::kFp16).seconds();
      }
    }
  }
  return sum;
}

struct Shape {
  std::int64_t gpus, micro, hidden, heads, seq;
  friend auto operator<=>(const Shape&, const Shape&) = default;
};

TEST(LayerReference, VtrainA100) {
  LOCKSTEP_NEEDS_REFERENCE();
  const std::string text =
      testing::slurp(testing::reference_dir() + "/physical/vtrain_a100_single_node_steps.csv");
  std::map<Shape, std::map<std::int64_t, std::map<std::int64_t, double>>> steps;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> f = split(trim(line), ',');
    const auto number = [&](std::size_t i) { return to_int(f[i]).value(); };
    if (f.size() != 11 || !to_int(f[0]) || number(7) != 1 || number(9) != 1) {
      continue;
    }
    const std::int64_t microbatches = number(1) / (number(2) * number(8));
    steps[{number(0), number(2), number(3), number(4), number(6)}][number(5)][microbatches] =
        to_double(f[10]).value() * 1e-3;
  }
  std::map<std::array<std::int64_t, 2>, std::vector<double>> ratios;  // by hidden, micro batch
  for (const auto& [shape, by_layers] : steps) {
    for (const auto& [low, few] : by_layers) {
      for (const auto& [high, many] : by_layers) {
        for (const auto& [m1, step] : few) {
          for (const auto& [m2, longer] : few) {
            if (low >= high || m1 >= m2 || !many.contains(m1) || !many.contains(m2)) {
              continue;
            }
            const double measured = ((many.at(m2) - many.at(m1)) - (longer - step)) /
                                    static_cast<double>((high - low) * (m2 - m1));
            const double model = layer_s(shape.hidden, shape.heads, shape.seq, shape.micro);
            ratios[{shape.hidden, shape.micro}].push_back(model / measured);
          }
        }
      }
    }
  }
  std::printf("%8s %6s %6s %28s\n", "hidden", "micro", "pairs", "model / measured, median");
  for (auto& [key, list] : ratios) {
    std::ranges::sort(list);
    std::printf("%8lld %6lld %6zu %28.2f\n", static_cast<long long>(key[0]),
                static_cast<long long>(key[1]), list.size(), list[list.size() / 2]);
    // The model has no host, whose launches bound these small layers: it must not be slower than
    // the measurement, and must get near where kernels are long.
    EXPECT_LT(list[list.size() / 2], 1);
    EXPECT_GT(list[list.size() / 2], key[0] >= 2048 ? 0.60 : 0.25);
  }
  EXPECT_EQ(ratios.size(), 6U);
}

}  // namespace
}  // namespace lockstep::compute_layer_test
