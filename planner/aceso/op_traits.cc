#include "planner/aceso/op_traits.h"

namespace lockstep::aceso {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// enc-attention-qkv, dec-attention-qkv-1 … by what stands between "attention-" or "MLP-" and the
/// number of the attention.
bool is_linear(std::string_view name, std::string_view what) {
  return contains(name, what) && !contains(name, "dropout");
}

OpTraits resnet_traits(std::string_view name) {
  OpTraits traits;
  traits.tunable = contains(name, "conv") || contains(name, "downsample");
  traits.recomputable = name != "conv1";
  traits.boundary = contains(name, "-conv1");
  traits.greedy_skips = traits.boundary || contains(name, "-relu");
  if (name == "bn1" || contains(name, "-bn3") ||
      (contains(name, "-downsample") && !contains(name, "0-0"))) {
    traits.activation_factor = 0;
    traits.ordinary = false;
  }
  for (int algorithm : {0, 1}) {
    traits.input[algorithm] = traits.output[algorithm] = Layout::kBatchFirst;
  }
  return traits;
}

void set_layouts(OpTraits& traits, Layout input, Layout output) {
  for (int algorithm : {0, 1}) {
    traits.input[algorithm] = input;
    traits.output[algorithm] = output;
  }
}

}  // namespace

OpTraits traits_of(std::string_view name, bool resnet) {
  if (resnet) {
    return resnet_traits(name);
  }
  OpTraits traits;
  const bool embedding = contains(name, "embedding");
  const bool column_first = is_linear(name, "attention-qkv") || is_linear(name, "GEMM-1");
  const bool row_first = is_linear(name, "attention-dense") || is_linear(name, "GEMM-2");
  traits.tunable = embedding || column_first || row_first;
  traits.recomputable = !embedding && !contains(name, "post-process");
  traits.boundary = name == "enc-1st-layernorm" || contains(name, "-conv1");
  traits.greedy_skips = traits.boundary;
  if (name == "enc-attention-dropout") {
    traits.activation_factor = 1.5;
    traits.ordinary = false;
  } else if (name == "enc-attention-softmax") {
    traits.activation_factor = 0;
    traits.ordinary = false;
  }
  if (embedding) {
    set_layouts(traits, Layout::kAny, Layout::kReplicated);
  } else if (column_first || row_first) {
    const int column = column_first ? 0 : 1;  // the algorithm that cuts the weights by columns
    traits.input[column] = traits.output[1 - column] = Layout::kReplicated;
    traits.output[column] = traits.input[1 - column] = Layout::kColumn;
  } else if (contains(name, "attention-score")) {
    set_layouts(traits, Layout::kColumn, Layout::kHeads);
  } else if (contains(name, "attention-softmax") ||
             (contains(name, "attention-dropout") && !contains(name, "post-"))) {
    set_layouts(traits, Layout::kHeads, Layout::kHeads);
  } else if (contains(name, "attention-context")) {
    set_layouts(traits, Layout::kHeads, Layout::kColumn);
  } else if (contains(name, "gelu")) {
    set_layouts(traits, Layout::kColumn, Layout::kColumn);
  } else if (contains(name, "final-layernorm")) {
    set_layouts(traits, Layout::kReplicated, Layout::kBatchFirst);
  } else if (contains(name, "post-process")) {
    set_layouts(traits, Layout::kBatchFirst, Layout::kAny);
  }
  return traits;
}

}  // namespace lockstep::aceso
