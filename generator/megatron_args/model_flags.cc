#include "generator/megatron_args/model_flags.h"

#include <array>
#include <string>

namespace lockstep {
namespace {

constexpr std::int64_t kMaxSize = std::int64_t{1} << 40;

constexpr auto kFlags = std::to_array<ArgSpec>({
    {"num_layers",
     "",
     ArgKind::kInteger,
     "",
     "layers, in place of the model's; of T5 those of the encoder and of the decoder, each",
     {},
     1,
     kMaxSize},
    {"hidden_size", "", ArgKind::kInteger, "", "likewise its width", {}, 1, kMaxSize},
    {"num_attention_heads", "", ArgKind::kInteger, "", "its attention heads", {}, 1, kMaxSize},
    {"num_query_groups",
     "",
     ArgKind::kInteger,
     "",
     "its heads of keys and values",
     {},
     1,
     kMaxSize},
    {"kv_channels", "", ArgKind::kInteger, "", "the size of a head", {}, 1, kMaxSize},
    {"ffn_hidden_size", "", ArgKind::kInteger, "", "the width of its MLP", {}, 1, kMaxSize},
    {"vocab_size", "", ArgKind::kInteger, "", "its vocabulary", {}, 1, kMaxSize},
    {"num_experts", "experts", ArgKind::kInteger, "", "its experts", {}, 1, kMaxSize},
    {"moe_router_topk", "topk", ArgKind::kInteger, "", "experts a token goes to", {}, 1, kMaxSize},
    {"moe_ffn_hidden_size", "", ArgKind::kInteger, "", "the width of an expert", {}, 1, kMaxSize},
});

/// The variables, in the order of the flags.
constexpr std::array<std::string_view, kFlags.size()> kVariables{
    "layers", "hidden",     "heads",   "kv_heads", "head_dim",
    "ffn",    "vocabulary", "experts", "topk",     "expert_ffn"};

}  // namespace

std::span<const ArgSpec> model_size_flags() { return kFlags; }

Variables model_sizes(const ArgValues& args) {
  Variables sizes;
  for (std::size_t i = 0; i < kFlags.size(); ++i) {
    if (const auto value = args.integer_if(kFlags[i].name)) {
      sizes.emplace(kVariables[i], static_cast<double>(*value));
    }
  }
  return sizes;
}

}  // namespace lockstep
