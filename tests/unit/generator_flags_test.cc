// Command lines read as Python's argparse and AICB's script read them; Python's numbers.
#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "generator/argparse.h"
#include "generator/python_text.h"
#include "generator/rules.h"
#include "generator/scripts.h"
#include "generator/training_flags.h"
#include "tests/support/error_of.h"

namespace lockstep::generator_flags_test {
namespace {

using lockstep::testing::error_of;
using ::testing::HasSubstr;

std::vector<std::string> words(const std::string& line) {
  std::vector<std::string> result;
  for (const std::string_view word : split_blanks(line)) {
    result.emplace_back(word);
  }
  return result;
}

ArgValues parse(const std::string& line) { return parse_args(training_flag_table(), words(line)); }

std::string parse_error(const std::string& line) {
  return error_of([&] { parse(line); });
}

TEST(Argparse, BothFormsOfAValueAndTheLastOneWins) {
  EXPECT_EQ(parse("--world_size 8").integer("world_size"), 8);
  EXPECT_EQ(parse("--world_size=8").integer("world_size"), 8);
  EXPECT_EQ(parse("--world_size=8 --world_size 16").integer("world_size"), 16);
  EXPECT_EQ(parse("").integer("world_size"), 1);
  EXPECT_EQ(parse("--pp_rank -1").integer("pp_rank"), -1);
}

TEST(Argparse, TwoNamesMustAgreeWhereAskedFor) {
  const auto strict = [](const std::string& line) {
    return parse_args(training_flag_table(), words(line), Names::kOneAtATime);
  };
  EXPECT_EQ(strict("--tp 8 --tensor_model_parallel_size 8").text("tensor_model_parallel_size"),
            "8");
  EXPECT_EQ(strict("--tp 8 --tensor_model_parallel_size 08").integer("tensor_model_parallel_size"),
            8);
  EXPECT_THAT(error_of([&] { strict("--seq_length 8 --seq-length 4"); }),
              HasSubstr("--seq-length: is given 2 times"));
  EXPECT_THAT(error_of([&] { strict("--tp 8 --tp=8"); }), HasSubstr("--tp: is given 2 times"));
  EXPECT_TRUE(strict("--sp --sp").on("enable_sequence_parallel"));
  EXPECT_EQ(parse("--tp 8 --tp 4").text("tensor_model_parallel_size"), "4");
  EXPECT_EQ(parse("--tp 8 --tensor_model_parallel_size 4").text("tensor_model_parallel_size"), "4");
  EXPECT_THAT(error_of([&] { strict("--tp 8 --tensor-model-parallel-size=4"); }),
              HasSubstr("--tensor_model_parallel_size: --tp says '8', and "
                        "--tensor-model-parallel-size '4'"));
}

TEST(Argparse, PrefixesAliasesAndDashes) {
  EXPECT_EQ(parse("--tensor 4").integer("tensor_model_parallel_size"), 4);
  EXPECT_EQ(parse("--tp 4").integer("tensor_model_parallel_size"), 4);
  EXPECT_EQ(parse("--tp_num 4").integer("tensor_model_parallel_size"), 4);
  EXPECT_EQ(parse("--tensor-model-parallel-size=4").integer("tensor_model_parallel_size"), 4);
  EXPECT_EQ(parse("--seq_len 9").integer("seq_length"), 9);
  EXPECT_EQ(parse("--n_dense_layer 2").integer("n_dense_layers"), 2);
  EXPECT_TRUE(parse("--use-dist").on("use_distributed_optimizer"));
  EXPECT_EQ(parse("-m 7").text("model"), "7");
}

// AICB would read --pp as pp_rank and --ep as epoch_num; its scripts, and everyone, mean these.
TEST(Argparse, ShortNamesOfDegreesGoBeforePrefixes) {
  EXPECT_EQ(parse("--pp 2").integer("pipeline_model_parallel"), 2);
  EXPECT_EQ(parse("--ep 8").integer("expert_model_parallel_size"), 8);
}

TEST(Argparse, NumbersAsPythonReadsThem) {
  EXPECT_EQ(parse("--world_size=1_024").integer("world_size"), 1024);
  EXPECT_EQ(parse("--world_size=+8").integer("world_size"), 8);
  EXPECT_THAT(parse_error("--world_size=8.0"), HasSubstr("'8.0' is no whole number"));
  EXPECT_THAT(parse_error("--world_size=1e3"), HasSubstr("--world_size"));
  EXPECT_THAT(parse_error("--world_size=_8"), HasSubstr("no whole number"));
  EXPECT_THAT(parse_error("--world_size="), HasSubstr("no whole number"));
  EXPECT_THAT(parse_error("--world_size=99999999999999999999"), HasSubstr("we can hold"));
}

TEST(Argparse, MistakesAreNamed) {
  EXPECT_THAT(parse_error("--wrld_size 8"), HasSubstr("did you mean '--world_size'"));
  EXPECT_THAT(parse_error("--num 8"), HasSubstr("--num_layers, --num_attention_heads"));
  EXPECT_THAT(parse_error("--world_size"), HasSubstr("needs a value"));
  EXPECT_THAT(parse_error("--world_size --swiglu"), HasSubstr("needs a value"));
  EXPECT_THAT(parse_error("--swiglu=1"), HasSubstr("takes no value"));
  EXPECT_THAT(parse_error("--frame Foo"), HasSubstr("Megatron, DeepSpeed"));
  EXPECT_THAT(parse_error("--frame DeepSeak"), HasSubstr("did you mean 'DeepSeek'"));
  EXPECT_THAT(parse_error("--stage 4"), HasSubstr("out of range"));
  EXPECT_THAT(parse_error("eight"), HasSubstr("unexpected argument 'eight'"));
  EXPECT_THAT(parse_error("-w 8"), HasSubstr("unknown flag '--w'"));
  EXPECT_THAT(parse_error("--"), HasSubstr("unknown flag"));
}

TEST(Argparse, HelpListsEveryFlag) {
  const std::string help = args_help(training_flag_table());
  for (const ArgSpec& flag : training_flag_table().flags) {
    EXPECT_THAT(help, HasSubstr("--" + std::string(flag.name)));
  }
}

TEST(Presets, TheUserWinsAndTheScriptFillsTheRest) {
  ArgValues flags = parse("--model gpt-7b --tp 2");
  apply_preset(flags, PresetFamily::kSimai);
  EXPECT_EQ(flags.integer("tensor_model_parallel_size"), 2);
  EXPECT_EQ(flags.integer("num_layers"), 36);
  EXPECT_EQ(flags.integer("seq_length"), 4096);
  EXPECT_EQ(flags.text("model_name"), "gpt_7B");
  EXPECT_THAT(error_of([] {
                ArgValues wrong = parse("--model gpt-7c");
                apply_preset(wrong, PresetFamily::kSimai);
              }),
              HasSubstr("did you mean 'gpt-7b'"));
}

// Megatron's script: the batch is 2 x dp x micro_batch = 2 x (32 / 8) x 3.
TEST(Presets, MegatronsBatchFollowsTheWorld) {
  ArgValues flags = parse("--model gpt-22b --micro_batch 3");
  apply_preset(flags, PresetFamily::kMegatron);
  EXPECT_EQ(flags.integer("global_batch"), 24);
}

ArgValues script(PresetFamily family, const std::string& line) {
  return script_flags(family, words(line));
}

TEST(Scripts, OverrideTheUserAndStopAtWhatTheyDoNotKnow) {
  const ArgValues flags =
      script(PresetFamily::kSimai, "-m 7 --tp 2 --pp 2 --sp --bogus 1 --world_size 64");
  EXPECT_EQ(flags.integer("tensor_model_parallel_size"), 4);
  EXPECT_EQ(flags.integer("pipeline_model_parallel"), 2);
  EXPECT_TRUE(flags.on("enable_sequence_parallel"));
  EXPECT_EQ(flags.integer("world_size"), 32);
  EXPECT_EQ(script(PresetFamily::kSimai, "-m 65").text("model_name"), "gpt_13B");
  Warnings warnings;
  const std::vector<std::string> unknown = words("-m 7b");
  EXPECT_EQ(script_flags(PresetFamily::kSimai, unknown, &warnings).text("model_name"), "gpt_13B");
  ASSERT_EQ(warnings.total(), 1);
  EXPECT_EQ(warnings.entries()[0].text, "the script has no model '7b' and takes gpt-13b for it");
  for (const Preset& preset : presets()) {  // by our names, too
    if (preset.in_simai_script) {
      EXPECT_EQ(script(PresetFamily::kSimai, "--tp 3 --model " + std::string(preset.name))
                    .text("tensor_model_parallel_size"),
                script(PresetFamily::kSimai, "--tp 3 -m " + std::string(preset.script_key))
                    .text("tensor_model_parallel_size"));
    }
  }
}

// The world passed on is nodes x GPUs, the batch that of --world_size: 2 (64 / 8 / 2) 3 = 24.
TEST(Scripts, MegatronsTakesTheWorldFromTheLauncher) {
  const ArgValues flags =
      script(PresetFamily::kMegatron,
             "--world_size 64 -m 65 --micro_batch 3 --global_batch 7 --nnodes 2 "
             "--master_addr 10.0.0.1 --sp --recompute --num_layers 3");
  EXPECT_EQ(flags.text("model_name"), "llama_65B");
  EXPECT_EQ(flags.integer("num_layers"), 80);  // the preset's; what follows --recompute is ignored
  EXPECT_EQ(flags.integer("pipeline_model_parallel"), 2);
  EXPECT_EQ(flags.integer("world_size"), 16);
  EXPECT_EQ(flags.integer("global_batch"), 24);
  EXPECT_EQ(flags.integer("seq_length"), 2048);
  EXPECT_TRUE(flags.on("enable_sequence_parallel") && flags.on("use_distributed_optimizer"));
  EXPECT_FALSE(flags.on("recompute_activations"));
}

TEST(Scripts, MegatronsDefaults) {
  Warnings warnings;
  const ArgValues flags = script_flags(PresetFamily::kMegatron,
                                       words("--nproc_per_node 4 cp_num 2 tp_num 2"), &warnings);
  EXPECT_EQ(warnings.total(), 1);  // no --world_size, no batch
  EXPECT_EQ(flags.text("model_name"), "gpt_13B");
  EXPECT_EQ(flags.integer("world_size"), 4);
  EXPECT_EQ(flags.integer("tensor_model_parallel_size"), 2);
  EXPECT_EQ(flags.integer("global_batch"), 0);
  EXPECT_EQ(script(PresetFamily::kMegatron, "").integer("tensor_model_parallel_size"), 8);
}

TEST(Scripts, DeepSpeedsSwallowsAndForgets) {
  const ArgValues flags = script(PresetFamily::kDeepSpeed,
                                 "-m 13 --zero-stage 2 --batch-size 2 --max_live_parameters 5 "
                                 "--contiguous-gradients --seq-len "
                                 "--seq-len 512");
  EXPECT_EQ(flags.text("model_name"), "llama_13b");
  EXPECT_EQ(flags.integer("stage"), 2);
  EXPECT_EQ(flags.integer("global_batch"), 16);  // 8 GPUs of 2
  EXPECT_EQ(flags.integer("max_live_parameters"), 1'000'000'000);
  EXPECT_TRUE(flags.on("contiguous_gradients"));
  EXPECT_EQ(flags.integer("seq_length"), 512);
  EXPECT_EQ(flags.integer("epoch_num"), 10);
  EXPECT_EQ(script(PresetFamily::kDeepSpeed, "--model_name mine").text("model_name"), "mine");
  EXPECT_EQ(script(PresetFamily::kDeepSpeed, "-m 9").integer("num_layers"), 32);
}

TEST(Scripts, ErrorsNameTheFlag) {
  EXPECT_THAT(error_of([] { script(PresetFamily::kMegatron, "--nnodes"); }),
              HasSubstr("--nnodes: this flag needs a value"));
  EXPECT_THAT(error_of([] { script(PresetFamily::kMegatron, "--nnodes x"); }),
              HasSubstr("--nnodes: 'x' does not say how many"));
  EXPECT_THAT(error_of([] { script(PresetFamily::kDeepSpeed, "--batch-size 0"); }),
              HasSubstr("--micro_batch: 0 is out of range"));
}

TEST(Presets, EveryOneGivesAJob) {
  for (const Preset& preset : presets()) {
    ArgValues flags = parse("--sp --model " + std::string(preset.name));
    apply_preset(flags, PresetFamily::kSimai);
    EXPECT_GT(training_args(flags).dp, 0) << preset.name;
  }
  for (const Preset& preset : deepspeed_presets()) {
    ArgValues flags = parse("--model " + std::string(preset.name));
    apply_preset(flags, PresetFamily::kDeepSpeed);
    EXPECT_EQ(training_args(flags).microbatches, 1) << preset.name;
  }
}

// 8/3 x 4096 = 10922.67, down to a multiple of 64: 10880.
TEST(TrainingArgs, DerivedSizes) {
  const TrainingArgs args = training_args(
      parse("--hidden_size 4096 --swiglu --vocab_size 50257 --tp 4 --pp 3 --world_size 24 "
            "--num_layers 11 --global_batch 9 --micro_batch 2"));
  EXPECT_EQ(args.ffn, Count(10880));
  EXPECT_EQ(args.padded_vocab, Count(50688));  // 99 x 128 x 4
  EXPECT_EQ(args.layers, Count(3));
  EXPECT_EQ(args.heads, Count(11));
  EXPECT_EQ(args.dp, Count(2));
  EXPECT_EQ(args.microbatches, Count(2));
}

TEST(Rules, NearestDivisors) {
  EXPECT_EQ(nearest_divisors(48, 7).below, Count(6));
  EXPECT_EQ(nearest_divisors(48, 7).above, Count(8));
  EXPECT_EQ(nearest_divisors(5, 9).below, Count(5));
  EXPECT_EQ(nearest_divisors(5, 9).above, Count(0));
  EXPECT_THAT(error_of([] { require_row_limit(3e9L); }), HasSubstr("3e+09 rows"));
}

TEST(Count, OverflowIsAnError) {
  const Count large = Count(1) * (std::int64_t{1} << 62);
  EXPECT_THROW(large * 2, Error);
  EXPECT_THROW(large + large, Error);
  EXPECT_EQ(ceil_div(7, 2), Count(4));
  EXPECT_EQ(round_up(9, 4), Count(12));
}

TEST(PythonText, FloatsAsRepr) {
  EXPECT_EQ(python_repr(4194304.0), "4194304.0");
  EXPECT_EQ(python_repr(291714.28571428574), "291714.28571428574");
  EXPECT_EQ(python_repr(0.0001), "0.0001");
  EXPECT_EQ(python_repr(0.00001), "1e-05");
  EXPECT_EQ(python_repr(1e16), "1e+16");
  EXPECT_EQ(python_repr(9007199254740992.0), "9007199254740992.0");
  EXPECT_EQ(python_repr(1.5e300), "1.5e+300");
  EXPECT_EQ(python_repr(0.0), "0.0");
}

TEST(PythonText, RoundsHalvesToEven) {
  EXPECT_EQ(python_round(0.5), 0);
  EXPECT_EQ(python_round(1.5), 2);
  EXPECT_EQ(python_round(2.5), 2);
  EXPECT_EQ(python_round(2.5000001), 3);
  EXPECT_THROW(python_round(1e19), Error);
}

}  // namespace
}  // namespace lockstep::generator_flags_test
