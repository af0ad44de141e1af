#include "generator/model/model_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "generator/model/parameters.h"

namespace lockstep::model_file_test {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kSmall = R"(name: small
variables:
  hidden: 8
  layers: 3
  ffn: 4 * hidden
  gate: 0
before:
  - {kind: embedding, name: words, in: 100, out: hidden}
blocks:
  - name: decoder
    layers: layers
    modules:
      - {kind: norm, name: norm, width: hidden}
      - {kind: column_linear, name: in, in: hidden, out: ffn, bias: true}
      - {kind: plain_linear, name: gate, in: hidden, out: 1, when: gate}
      - {kind: row_linear, name: out, in: ffn, out: hidden}
after:
  - {kind: head, name: head, in: hidden, out: 100, shared: true}
)";

std::string failure(std::string text, std::string_view from, std::string_view to,
                    const Variables& given = {}) {
  const std::size_t found = text.find(from);
  EXPECT_NE(found, std::string::npos) << from;
  text.replace(found, from.size(), to);
  try {
    parse_model(text, "small.yaml", given);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string failure(std::string_view from, std::string_view to) {
  return failure(std::string(kSmall), from, to);
}

TEST(ModelFile, ReadsBlocksAndExpressions) {
  const Model model = parse_model(kSmall, "small.yaml");
  EXPECT_EQ(model.name, "small");
  ASSERT_EQ(model.blocks.size(), 1U);
  EXPECT_EQ(model.blocks[0].layers, 3);
  ASSERT_EQ(model.blocks[0].modules.size(), 3U);  // the gate is left out
  EXPECT_EQ(model.blocks[0].modules[1].out, 32);
  EXPECT_TRUE(model.blocks[0].modules[1].bias);
  // 100 * 8, three times 8 + (8 * 32 + 32) + 32 * 8; the head shares the embedding.
  EXPECT_EQ(model_parameters(model).total, 800 + 3 * (8 + 288 + 256));
}

TEST(ModelFile, WhatFollowsFromAGivenVariableFollows) {
  const Model model = parse_model(kSmall, "small.yaml", {{"hidden", 16}, {"gate", 1}});
  EXPECT_EQ(model.variables.at("ffn"), 64);
  EXPECT_EQ(model.blocks[0].modules.size(), 4U);
}

TEST(ModelFile, AModuleMayStandSeveralTimes) {
  const std::string text = std::string(kSmall);
  const std::string from = "name: norm, width: hidden}";
  std::string changed = text;
  changed.replace(changed.find(from), from.size(), "name: norm, width: hidden, times: layers}");
  EXPECT_EQ(parse_model(changed, "small.yaml").blocks[0].modules.size(), 5U);
  EXPECT_EQ(parse_model(changed, "small.yaml", {{"layers", 1}}).blocks[0].modules.size(), 3U);
}

TEST(ModelFile, CustomModulesMayCommunicate) {
  const std::string from = "{kind: plain_linear, name: gate, in: hidden, out: 1, when: gate}";
  const auto with = [&](std::string_view comm) {
    std::string text(kSmall);
    text.replace(text.find(from), from.size(),
                 "{kind: custom, name: c, forward: [" + std::string(comm) + "]}");
    return text;
  };
  const Model model = parse_model(with("{comm: all_to_all, group: tp.expert, bytes: 2 * hidden}, "
                                       "{comm: all_gather, group: cp, bytes: 1, when: 0}"),
                                  "small.yaml");
  const std::vector<ModuleComm>& comms = model.blocks[0].modules[2].custom_forward;
  ASSERT_EQ(comms.size(), 1U);
  EXPECT_EQ(comms[0].comm, CommType::kAllToAll);
  EXPECT_EQ(comms[0].group, ModuleGroup::kExpertTp);
  EXPECT_EQ(comms[0].bytes, 16);
  const auto wrong = [&](std::string_view comm) {
    return failure(with(comm), "name: c", "name: c");
  };
  EXPECT_THAT(wrong("{comm: all_reduc, group: tp, bytes: 1}"),
              HasSubstr("did you mean all_reduce?"));
  EXPECT_THAT(wrong("{comm: all_reduce, group: dp, bytes: 1}"), HasSubstr("unknown group 'dp'"));
  EXPECT_THAT(wrong("{comm: all_reduce, group: tp}"), HasSubstr("'bytes' is missing"));
  EXPECT_THAT(wrong("{comm: all_reduce, group: tp, bytes: 0 - 1}"), HasSubstr("below 0"));
  EXPECT_THAT(wrong("{comm: all_reduce, group: tp, bytes: hiden}"),
              HasSubstr("small.yaml:15: blocks[0][2].forward[0].bytes: unknown variable 'hiden'"));
}

TEST(ModelFile, AHuggingFaceConfigIsNone) {
  EXPECT_THAT(failure("variables:", "model_type: llama\nvariables:"),
              HasSubstr("--hf-config reads it"));
}

TEST(ModelFile, LimitsAreTheCallers) {
  const std::string text(kSmall);
  EXPECT_THAT(failure(text, "hidden: 8", "hidden: 0"), HasSubstr("out of range"));
  std::string empty = text;
  empty.replace(empty.find("layers: 3"), 9, "layers: 0");
  EXPECT_THAT(failure(empty, "hidden: 8", "hidden: 8"), HasSubstr("no layer at all"));
  const Model none =
      parse_model(empty, "small.yaml", {{"hidden", 0}}, {.smallest = 0, .no_layers = true});
  EXPECT_TRUE(none.blocks.empty());
  EXPECT_EQ(none.after.size(), 1U);
}

TEST(ModelFile, JsonIsReadToo) {
  const Model model = parse_model(
      R"({"name": "j", "variables": {"n": 2}, "blocks": [{"name": "b", "layers": "n",
          "modules": [{"kind": "moe", "name": "m", "width": 4, "experts": 8, "topk": "n",
                       "expert_ffn": 3, "shared_ffn": 5}]}]})",
      "j.json");
  // router 4 * 8; an expert 3 * 4 * 3; shared 3 * 4 * 5
  const ParameterTotals counted = model_parameters(model);
  EXPECT_EQ(counted.total, 2 * (32 + 8 * 36 + 60));
  EXPECT_EQ(counted.active, 2 * (32 + 2 * 36 + 60));
}

TEST(ModelFile, ErrorsNameFileLineAndField) {
  const std::string text = failure("out: ffn,", "out: fnn,");
  EXPECT_THAT(text, HasSubstr("small.yaml:14"));
  EXPECT_THAT(text, HasSubstr("blocks[0][1].out"));
  EXPECT_THAT(text, HasSubstr("did you mean ffn?"));
  EXPECT_THAT(failure("kind: norm", "kind: nrom"), HasSubstr("did you mean norm?"));
  EXPECT_THAT(failure("width: hidden", "widht: hidden"), HasSubstr("did you mean width?"));
  EXPECT_THAT(failure(", width: hidden", ""), HasSubstr("'width' is missing"));
  EXPECT_THAT(failure("width: hidden", "width: hidden / 3"), HasSubstr("no whole number"));
  EXPECT_THAT(failure("width: hidden", "width: 0"), HasSubstr("from 1 to"));
  EXPECT_THAT(failure("width: hidden", "width: [1]"), HasSubstr("not a single value"));
  EXPECT_THAT(failure("layers: layers", "layers: 0"), HasSubstr("no layer at all"));
  EXPECT_THAT(failure("layers: layers", "layers: 1e12"), HasSubstr("from 0 to 100000"));
  EXPECT_THAT(failure("hidden: 8", "min: 8"), HasSubstr("cannot name a variable"));
  EXPECT_THAT(failure("  layers: 3", "  hidden: 3"), HasSubstr("stands twice"));
  EXPECT_THAT(failure("gate: 0", "gate: {"), HasSubstr("no YAML"));
  EXPECT_THAT(failure("name: x", "x", std::string(10'000, '[')), HasSubstr("less than 500 levels"));
  EXPECT_THAT(failure("name: small", "- x"), HasSubstr("small.yaml:"));
  EXPECT_THAT(failure("blocks:", "block:"), HasSubstr("did you mean blocks?"));
  EXPECT_THAT(failure(std::string(kSmall), "3", "3", {{"hiden", 3}}),
              HasSubstr("did you mean hidden?"));
}

// What is reduced together with the next row linear's output needs that one.
TEST(ModelFile, AParallelRowLinearNeedsAnother) {
  EXPECT_THAT(failure(std::string(kSmall), "in: ffn, out: hidden}",
                      "in: ffn, out: hidden, parallel: true}"),
              HasSubstr("blocks[0]: no row_linear behind out, which is parallel"));
}

TEST(ModelFile, AParallelRowLinearIsAsWideAsTheNext) {
  const std::string_view row = "{kind: row_linear, name: out, in: ffn, out: hidden}";
  const auto of = [&](std::string_view width) {
    return failure(
        std::string(kSmall), row,
        fmt::format("{{kind: row_linear, name: first, in: ffn, out: {}, parallel: true}}\n"
                    "      - {}",
                    width, row));
  };
  EXPECT_THAT(of("hidden + 8"),
              HasSubstr("first is 16 wide, and so is not added to out, which is 8"));
  EXPECT_EQ(of("hidden"), "no error");
}

// 8 experts of 3 8 16 weights and 2 16 + 8 biases, a router of 8 8 and 8; two pass a token.
TEST(ModelFile, ExpertsAndRouterMayHaveBiases) {
  std::string text(kSmall);
  const std::string_view row = "{kind: row_linear, name: out, in: ffn, out: hidden}";
  text.replace(
      text.find(row), row.size(),
      "{kind: moe, name: moe, width: hidden, experts: 8, topk: 2, expert_ffn: 16, bias: true}");
  const ParameterTotals both =
      module_parameters(parse_model(text, "small.yaml").blocks[0].modules.back());
  EXPECT_EQ(both.total, 8 * (3 * 8 * 16 + 2 * 16 + 8) + 8 * 8 + 8);
  EXPECT_EQ(both.active, 2 * (3 * 8 * 16 + 2 * 16 + 8) + 8 * 8 + 8);
  text.replace(text.find(", bias: true}", text.find("kind: moe")), 13, ", router_bias: true}");
  EXPECT_EQ(module_parameters(parse_model(text, "small.yaml").blocks[0].modules.back()).total,
            8 * 3 * 8 * 16 + 8 * 8 + 8);
}

TEST(ModelFile, RepetitionIsBounded) {
  EXPECT_THAT(failure("  - name: decoder",
                      "  - repeat: 100000\n    blocks:\n      - {name: b, layers: 1, modules: "
                      "[{kind: custom, name: c}]}\n  - name: decoder"),
              HasSubstr("too many modules"));
  // 9000 (11 + 1) blocks, 9000 modules: those without layers count, too.
  std::string blocks = "  - repeat: 9000\n    blocks:\n";
  for (int i = 0; i < 11; ++i) {
    blocks += "      - {name: a, layers: 0, modules: []}\n";
  }
  blocks += "      - {name: b, layers: 1, modules: [{kind: custom, name: c}]}\n";
  EXPECT_THAT(failure("  - name: decoder", blocks + "  - name: decoder"),
              HasSubstr("too many blocks"));
}

TEST(ModelFile, HeadsThatDoNotDivide) {
  EXPECT_THAT(failure("{kind: norm, name: norm, width: hidden}",
                      "{kind: attention, name: a, heads: 8, kv_heads: 3, head_dim: 4}"),
              HasSubstr("3 does not divide the 8 heads"));
}

}  // namespace
}  // namespace lockstep::model_file_test
