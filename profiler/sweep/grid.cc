#include "profiler/sweep/grid.h"

#include <set>

namespace lockstep {
namespace {

class Collector {
 public:
  void add(const Kernel& kernel) {
    if (known_.insert(kernel).second) {
      kernels_.push_back(kernel);
    }
  }
  void add_linear(std::int64_t rows, std::int64_t in, std::int64_t out) {
    constexpr Precision kType = Precision::kBf16;
    add(make_kernel(KernelKind::kGemm, kType, {rows, out, in}, false, "forward"));
    add(make_kernel(KernelKind::kGemm, kType, {rows, in, out}, false, "input-gradient"));
    add(make_kernel(KernelKind::kGemm, kType, {out, in, rows}, false, "weight-gradient"));
  }
  void add_both(Kernel kernel) {
    add(kernel);
    kernel.backward = true;
    add(kernel);
  }
  std::vector<Kernel> take() { return std::move(kernels_); }

 private:
  std::vector<Kernel> kernels_;
  std::set<Kernel> known_;
};

}  // namespace

std::vector<Kernel> sweep_kernels(const SweepGrid& grid) {
  Collector out;
  for (const std::int64_t hidden : grid.hidden) {
    const std::int64_t heads = hidden / grid.head_dim;
    for (const std::int64_t sequence : grid.sequence) {
      for (const std::int64_t batch : grid.micro_batch) {
        for (const std::int64_t tp : grid.tp) {
          if (heads == 0 || heads % tp != 0) {
            continue;
          }
          const std::int64_t rows = sequence * batch;
          out.add_linear(rows, hidden, 3 * hidden / tp);
          out.add_linear(rows, hidden / tp, hidden);
          out.add_linear(rows, hidden, 4 * hidden / tp);
          out.add_linear(rows, 4 * hidden / tp, hidden);
          Kernel attention = make_kernel(
              KernelKind::kAttention, Precision::kBf16,
              {batch, heads / tp, heads / tp, sequence, sequence, grid.head_dim, grid.head_dim});
          attention.causal = true;
          out.add_both(attention);
          out.add_both(make_kernel(KernelKind::kNorm, Precision::kBf16, {rows, hidden}));
        }
      }
    }
  }
  return out.take();
}

}  // namespace lockstep
