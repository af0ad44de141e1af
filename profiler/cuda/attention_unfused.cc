#include <cmath>
#include <vector>

#include "profiler/cuda/attention.h"
#include "profiler/cuda/launch.h"

namespace lockstep::cuda {
namespace {

/// Products and softmax, one after the other, with what they keep.
struct Chain {
  std::vector<Gemm::Plan> products;
  Buffer scores, gradient;
};

}  // namespace

Gemm::Plan plan_unfused_attention(Gemm& gemm, const Kernel& kernel, Timer& timer,
                                  std::int64_t* held, bool search) {
  const std::int64_t batch = kernel.size("batch") * kernel.size("heads"),
                     s = kernel.size("queries"), t = kernel.size("keys"),
                     d = kernel.size("head_dim"), v = kernel.size("value_dim");
  const Element element = kernel.precision == Precision::kFp32   ? Element::kFp32
                          : kernel.precision == Precision::kFp16 ? Element::kFp16
                                                                 : Element::kBf16;
  const std::int64_t bytes = batch * s * t * (element == Element::kFp32 ? 4 : 2);
  auto chain = std::make_shared<Chain>();
  const auto product = [&](std::int64_t m, std::int64_t n, std::int64_t k, const char* variant) {
    chain->products.push_back(gemm.plan(
        make_kernel(KernelKind::kBatchedGemm, kernel.precision, {batch, m, n, k}, false, variant),
        search, timer, held));
  };
  chain->scores = Buffer(bytes, held);
  fill_random(element, chain->scores.get(), batch * s * t, 3, 1, timer.stream().get());
  SoftmaxArguments softmax_args;
  softmax_args.batch = batch;
  softmax_args.queries = s;
  softmax_args.keys = t;
  softmax_args.causal = kernel.causal;
  softmax_args.scale = 1 / std::sqrt(static_cast<float>(d));
  softmax_args.probabilities = chain->scores.get();
  if (!kernel.backward) {
    softmax_args.scores = chain->scores.get();
    product(s, t, d, "forward");         // scores = q kᵀ
    product(s, v, t, "input-gradient");  // out = p v
    return {[=](cudaStream_t on) {
              chain->products[0].launch(on);
              softmax(element, false, softmax_args, on);
              chain->products[1].launch(on);
            },
            chain->products[0].algorithm + "; " + chain->products[1].algorithm, chain};
  }
  chain->gradient = Buffer(bytes, held);
  fill_random(element, chain->gradient.get(), batch * s * t, 4, 1, timer.stream().get());
  softmax_args.gradient = chain->gradient.get();
  softmax_args.scores_gradient = chain->gradient.get();
  product(s, t, v, "forward");         // dp = do vᵀ
  product(s, d, t, "input-gradient");  // dq = ds k
  // dk = dsᵀ q and dv = pᵀ do, in the operands' precision: no sums over microbatches.
  product(t, d, s, "input-gradient");
  product(t, v, s, "input-gradient");
  return {[=](cudaStream_t on) {
            chain->products[0].launch(on);
            softmax(element, true, softmax_args, on);
            for (std::size_t i = 1; i < chain->products.size(); ++i) {
              chain->products[i].launch(on);
            }
          },
          chain->products[0].algorithm, chain};
}

}  // namespace lockstep::cuda
