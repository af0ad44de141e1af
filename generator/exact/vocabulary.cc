#include "generator/exact/vocabulary.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMaxMultiple = std::int64_t{1} << 40;
constexpr std::int64_t kMaxRows = std::int64_t{1} << 60;

}  // namespace

Job with_padded_vocabulary(Job job) {
  std::int64_t unit = 0;
  if (job.vocab_multiple < 1 || job.vocab_multiple > kMaxMultiple || job.tp < 1 ||
      __builtin_mul_overflow(job.vocab_multiple, job.tp, &unit) || unit > kMaxMultiple) {
    throw Error(fmt::format("{} x tp = {} is out of range", job.vocab_multiple, job.tp))
        .field("--make_vocab_size_divisible_by")
        .expected(fmt::format("a product from 1 to {}", kMaxMultiple));
  }
  for (Module& head : job.model.after) {
    if (head.kind != ModuleKind::kHead || head.out < 1 || head.out > kMaxRows) {
      continue;
    }
    const auto is_its_table = [&](const Module& module) {
      return module.kind == ModuleKind::kEmbedding && module.in == head.out;
    };
    const auto padded = (head.out + unit - 1) / unit * unit;
    if (std::ranges::any_of(job.model.before, is_its_table)) {
      for (Module& table : job.model.before) {
        table.in = is_its_table(table) ? padded : table.in;
      }
      head.out = padded;
    }
  }
  return job;
}

}  // namespace lockstep
