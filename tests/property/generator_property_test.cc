// What holds for every workload of a random job: counts, conserved bytes, readable text, and no
// crash whatever the flags.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "base/text.h"
#include "generator/generator.h"
#include "tests/support/sanitized.h"
#include "workloads/simai_txt.h"

namespace lockstep::generator_property_test {
namespace {

std::string generate(const std::string& generator, const std::string& line) {
  GenerateRequest request;
  for (const std::string_view word : split_blanks(line)) {
    request.words.emplace_back(word);
  }
  return to_text(generator_named(generator).generate(request));
}

/// A job that is valid for every generator of training.
std::string random_job(Rng& rng, std::int64_t microbatches) {
  const std::int64_t tp = std::int64_t{1} << rng.below(4);
  const std::int64_t dp = rng.between(1, 5);
  const std::int64_t heads = tp * rng.between(1, 3);
  return fmt::format(
      "--world_size {} --tp {} --num_attention_heads {} --hidden_size {} --ffn_hidden_size {} "
      "--num_layers {} --seq_length {} --vocab_size {} --micro_batch 2 --global_batch {} {}{}",
      tp * dp, tp, heads, heads * 8, tp * rng.between(1, 40), rng.between(0, 5), rng.between(1, 64),
      rng.between(1, 1000), 2 * dp * microbatches, rng.below(2) == 0 ? "--sp " : "",
      rng.below(2) == 0 ? "--computation_enable " : "");
}

std::int64_t lines_of(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

/// Sum of the sizes of one kind of operation after init.
std::int64_t bytes_of(const std::string& text, std::string_view type) {
  std::int64_t sum = 0;
  bool started = false;
  for (const std::string_view line : split(text, '\n')) {
    const std::vector<std::string_view> cells = split(line, ',');
    started = started || cells[0] == "CommType.epoch_end";
    if (started && cells.size() == 12 && cells[0].substr(9) == type) {
      sum += to_int(cells[3]).value_or(0);
    }
  }
  return sum;
}

TEST(GeneratorProperty, MicrobatchesAddEqualNumbersOfRows) {
  for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(testing::cases_of(60)); ++seed) {
    for (const char* generator : {"simai-training", "megatron"}) {
      std::array<std::int64_t, 4> lines{};
      for (std::int64_t n = 1; n <= 3; ++n) {
        Rng rng(seed, "job");  // the same job each time but for the batch
        lines[static_cast<std::size_t>(n)] = lines_of(generate(generator, random_job(rng, n)));
      }
      EXPECT_EQ(lines[3] - lines[2], lines[2] - lines[1]) << generator << seed;
      EXPECT_GT(lines[2], lines[1]) << generator << seed;
    }
  }
}

TEST(GeneratorProperty, SimaiTextIsReadAndWrittenBack) {
  Rng rng(1, "simai");
  for (int i = 0; i < testing::cases_of(60); ++i) {
    const std::string text = generate("simai-training", random_job(rng, rng.between(0, 3)));
    EXPECT_EQ(to_simai_txt(read_simai_txt(text, "generated")), text);
  }
}

TEST(GeneratorProperty, EveryCsvRowHasTwelveColumns) {
  Rng rng(2, "csv");
  for (int i = 0; i < testing::cases_of(40); ++i) {
    for (const char* generator : {"megatron", "deepspeed12", "deepspeed3"}) {
      const std::string text = generate(
          generator, random_job(rng, 2) + (generator[0] == 'd' ? "--frame DeepSpeed" : ""));
      for (const std::string_view line : split(text, '\n')) {
        EXPECT_TRUE(line.empty() || split(line, ',').size() == 12) << line;
      }
    }
  }
}

// Every microbatch reduces every gradient once, whatever the buckets; 2 bytes an element.
TEST(GeneratorProperty, DeepSpeedReducesEveryGradient) {
  Rng rng(3, "deepspeed");
  for (int i = 0; i < testing::cases_of(60); ++i) {
    const std::int64_t microbatches = rng.between(1, 3);
    const std::string job =
        random_job(rng, microbatches) +
        fmt::format(
            "--frame DeepSpeed --reduce_bucket_size {} --prefetch_bucket_size {} "
            "--max_live_parameters {} --param_persistence_threshold {} "
            "--allgather_bucket_size {} ",
            rng.between(0, 5000), rng.between(0, 5000), rng.between(0, 9000), rng.between(0, 2000),
            rng.between(1, 5000));
    const std::string stage1 = generate("deepspeed12", job + "--stage 1");
    const std::int64_t bytes = bytes_of(stage1, "all_reduce") - 1;  // less has_overflow
    const std::string stage2 = generate("deepspeed12", job + "--stage 2 --contiguous_gradients");
    EXPECT_EQ(bytes_of(stage2, "reduce"), bytes);
    const std::string stage3 = generate("deepspeed3", job);
    EXPECT_EQ(bytes_of(stage3, "reduce_scatter"), bytes);
    EXPECT_GE(bytes_of(stage1, "all_gather") * microbatches, bytes);  // padded to the ranks
    EXPECT_EQ(bytes % microbatches, 0);
  }
}

TEST(GeneratorProperty, NoFlagsCrash) {
  Rng rng(4, "flags");
  const auto values = std::to_array<std::string>(
      {"0", "1", "2", "3", "7", "8", "64", "-1", "1000000000000000000", "9223372036854775807",
       "9007199254740992", "1e9", "abc", "", "nan", "0x10", "1_000", "DeepSeek", "DeepSpeed"});
  int workloads = 0;
  for (int i = 0; i < testing::cases_of(4000); ++i) {
    const Generator& generator = *generators()[rng.below(generators().size())];
    const std::span<const ArgSpec> flags = generator.flags().flags;
    GenerateRequest request;
    request.folder = "/nonexistent";
    request.script_compat = rng.below(4) == 0;
    for (std::uint64_t k = rng.below(7); k > 0; --k) {
      const ArgSpec& flag = flags[rng.below(flags.size())];
      request.words.push_back(fmt::format("--{}", flag.name));
      if (flag.kind != ArgKind::kSwitch || rng.below(10) == 0) {
        request.words.push_back(values[rng.below(values.size())]);
      }
    }
    try {
      const GeneratedWorkload workload = generator.generate(request);
      std::size_t bytes = 0;
      struct Enough {};
      try {
        BlockWriter writer([&](std::string_view piece) {
          bytes += piece.size();
          if (bytes > (std::size_t{4} << 20)) {
            throw Enough{};
          }
        });
        workload.write(writer);
        writer.flush();
      } catch (const Enough&) {
      }
      EXPECT_GT(bytes, 0U);
      ++workloads;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kBadInput) << error.what();
    }
  }
  EXPECT_GT(workloads, 100);
}

}  // namespace
}  // namespace lockstep::generator_property_test
