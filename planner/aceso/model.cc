#include "planner/aceso/model.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"

namespace lockstep::aceso {
namespace {

struct GptSize {
  std::string_view size;
  std::int64_t layers, hidden, heads;
};
constexpr std::array<GptSize, 5> kGpt = {{{"350M", 24, 1024, 16},
                                          {"1_3B", 24, 2048, 32},
                                          {"2_6B", 32, 2560, 32},
                                          {"6_7B", 32, 4096, 32},
                                          {"13B", 40, 5120, 40}}};
struct T5Size {
  std::string_view size;
  std::int64_t layers, ffn, heads, kv;
  std::string_view tables;
};
constexpr std::array<T5Size, 5> kT5 = {{{"770M", 24, 4096, 16, 64, "770M"},
                                        {"3B", 24, 16384, 32, 128, "3B"},
                                        {"6B", 24, 32768, 64, 128, "6B"},
                                        {"11B", 24, 65536, 128, 128, "11B"},
                                        {"22B", 48, 65536, 128, 128, "11B"}}};
struct ResnetSize {
  std::string_view size;
  int in_channels, width_factor, third_blocks;
};
constexpr std::array<ResnetSize, 7> kResnet = {{{"250M", 160, 2, 6},
                                                {"500M", 224, 2, 6},
                                                {"1B", 320, 2, 6},
                                                {"2B", 448, 2, 6},
                                                {"4B", 640, 2, 6},
                                                {"6_8B", 320, 16, 6},
                                                {"13B", 320, 16, 23}}};
constexpr std::array<std::string_view, 4> kFamilies = {"gpt", "t5", "resnet", "scale-layer"};
constexpr std::int64_t kMaxLayers = 1 << 16;

template <class Sizes>
const auto& find_size(const Sizes& sizes, std::string_view family, std::string_view size) {
  std::vector<std::string_view> names;
  for (const auto& one : sizes) {
    if (one.size == size) {
      return one;
    }
    names.push_back(one.size);
  }
  throw Error(fmt::format("{} has no size '{}'", family, printable(size)))
      .field("--aceso-size")
      .expected(join(names, ", "));
}

Model gpt(std::string_view size) {
  const GptSize& one = find_size(kGpt, "gpt", size);
  Model model{.family = Family::kGpt, .layers = one.layers, .algorithms = 2, .resharding = true};
  model.runtime = {{"num_layers", one.layers},
                   {"seq_length", 2048},
                   {"max_position_embeddings", 2048},
                   {"num_attention_heads", one.heads},
                   {"hidden_size", one.hidden}};
  model.table_prefix = fmt::format("gpt_{}", size);
  return model;
}

Model t5(std::string_view size) {
  const T5Size& one = find_size(kT5, "t5", size);
  Model model{.family = Family::kT5, .layers = one.layers};
  model.runtime = {{"num_layers", one.layers},
                   {"encoder_seq_length", 2048},
                   {"decoder_seq_length", 512},
                   {"max_position_embeddings", 2048},
                   {"num_attention_heads", one.heads},
                   {"kv_channels", one.kv},
                   {"hidden_size", 1024},
                   {"ffn_hidden_size", one.ffn}};
  model.table_prefix = fmt::format("t5_{}", one.tables);
  return model;
}

Model resnet(std::string_view size) {
  const ResnetSize& one = find_size(kResnet, "resnet", size);
  Model model{.family = Family::kResnet,
              .layers = 3 + 4 + one.third_blocks + 3,
              .fp32 = true,
              .algorithms = 2,
              .resharding = true};
  model.runtime = {{"num_layers", Json::array({3, 4, one.third_blocks, 3})},
                   {"in_channels", one.in_channels},
                   {"width_factor", one.width_factor}};
  model.table_prefix = fmt::format("resnet_{}", size);
  return model;
}

Model scale_layer(std::string_view size, std::int64_t layers) {
  std::string_view digits = size;
  if (digits.ends_with("layers")) {
    digits.remove_suffix(6);
  }
  const auto named = to_int(digits);
  if (!size.empty() && named && layers != 0 && *named != layers) {
    throw Error(fmt::format("size {} and --num-layers {} differ", printable(size), layers))
        .field("--aceso-size");
  }
  const std::int64_t count = layers != 0 ? layers : named.value_or(0);
  if (count < 1 || count > kMaxLayers) {
    throw Error("scale-layer needs a number of layers")
        .field("--aceso-size")
        .expected(fmt::format("1layers … {}layers, or --num-layers", kMaxLayers));
  }
  Model model{.family = Family::kScaleLayer, .layers = count, .algorithms = 2, .resharding = true};
  model.size = fmt::format("{}layers", count);
  model.runtime = {{"num_layers", count},
                   {"seq_length", 2048},
                   {"max_position_embeddings", 2048},
                   {"num_attention_heads", 8},
                   {"hidden_size", 512}};
  model.table_prefix = "gpt_scale-layer";
  return model;
}

/// `count` times the rows [first, last).
void repeat(std::vector<int>& ops, int first, int last, std::int64_t count) {
  for (std::int64_t layer = 0; layer < count; ++layer) {
    for (int row = first; row < last; ++row) {
      ops.push_back(row);
    }
  }
}

}  // namespace

Model find_model(std::string_view name, std::string_view size, std::int64_t layers) {
  if (std::find(kFamilies.begin(), kFamilies.end(), name) == kFamilies.end()) {
    throw Error(fmt::format("no model '{}'", printable(name)))
        .field("--aceso-model")
        .expected(join(kFamilies, ", "));
  }
  if (layers != 0 && name != "scale-layer") {
    throw Error(fmt::format("the layers of {} are fixed by its size", name))
        .field("--num-layers")
        .expected("--aceso-model scale-layer");
  }
  Model model = name == "gpt"      ? gpt(size)
                : name == "t5"     ? t5(size)
                : name == "resnet" ? resnet(size)
                                   : scale_layer(size, layers);
  model.name = name;
  if (model.size.empty()) {
    model.size = size;
  }
  return model;
}

std::vector<int> op_rows(const Model& model, const std::vector<std::string>& rows,
                         const std::string& table_file) {
  const int count = static_cast<int>(rows.size());
  const auto need = [&](int wanted) {
    if (count != wanted) {
      throw Error(fmt::format("{} ops, but the op list of {} has {}", count, model.name, wanted))
          .at(table_file)
          .hint("all op tables of a model list the same ops, one row each");
    }
  };
  std::vector<int> ops;
  switch (model.family) {
    case Family::kGpt:
    case Family::kScaleLayer:
      need(1 + kEncoderLayer + 2);
      repeat(ops, 0, 1, 1);
      repeat(ops, 1, 1 + kEncoderLayer, model.layers);
      repeat(ops, 1 + kEncoderLayer, count, 1);
      break;
    case Family::kT5: {
      constexpr int kDecoder = 1 + kEncoderLayer + 2;
      need(kDecoder + kDecoderLayer + 2);
      repeat(ops, 0, 1, 1);
      repeat(ops, 1, 1 + kEncoderLayer, model.layers);
      repeat(ops, 1 + kEncoderLayer, kDecoder, 1);
      repeat(ops, kDecoder, kDecoder + kDecoderLayer, model.layers);
      repeat(ops, kDecoder + kDecoderLayer, count, 1);
      break;
    }
    case Family::kResnet:
      need(kResnetHead + kResnetBlock * static_cast<int>(model.layers) + 2);
      repeat(ops, 0, count, 1);
      break;
  }
  return ops;
}

}  // namespace lockstep::aceso
