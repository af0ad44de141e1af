#include "generator/deepspeed_parameters.h"

#include "generator/csv_row.h"
#include "generator/layers/aicb_layers.h"

namespace lockstep {

namespace {

std::vector<DeepSpeedParameter> tensors_of(const std::vector<Module>& modules) {
  std::vector<DeepSpeedParameter> tensors;
  for (const Module& module : modules) {
    tensors.push_back({module.in, module.kind == ModuleKind::kNorm ? Count(1) : module.out});
  }
  return tensors;
}

}  // namespace

DeepSpeedParameters::DeepSpeedParameters(const TrainingArgs& args) : layers_(args.layers) {
  const Model model = aicb_layers("deepspeed", {{"hidden_size", args.hidden},
                                                {"ffn_hidden_size", args.ffn},
                                                {"num_layers", args.layers},
                                                {"num_attention_heads", args.heads},
                                                {"vocab_size", args.vocab}});
  before_ = tensors_of(model.before);
  after_ = tensors_of(model.after);
  if (!model.blocks.empty()) {
    layer_ = tensors_of(model.blocks.front().modules);
  }
  before_elements_ = elements(before_, count(before_));
  layer_elements_ = elements(layer_, count(layer_));
  total();
}

Count DeepSpeedParameters::elements(const List& list, std::int64_t n) {
  Count sum;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += list[static_cast<std::size_t>(i)].elements();
  }
  return sum;
}

DeepSpeedParameter DeepSpeedParameters::operator[](std::int64_t i) const {
  if (i < count(before_)) {
    return before_[static_cast<std::size_t>(i)];
  }
  const std::int64_t inner = i - count(before_);
  const std::int64_t behind = inner - count(layer_) * layers_.value;
  return behind < 0 ? layer_[static_cast<std::size_t>(inner % count(layer_))]
                    : after_[static_cast<std::size_t>(behind)];
}

Count DeepSpeedParameters::offset(std::int64_t i) const {
  if (i < count(before_)) {
    return elements(before_, i);
  }
  const std::int64_t inner = i - count(before_);
  const std::int64_t behind = inner - count(layer_) * layers_.value;
  if (behind < 0) {
    return before_elements_ + layer_elements_ * Count(inner / count(layer_)) +
           elements(layer_, inner % count(layer_));
  }
  return before_elements_ + layer_elements_ * layers_ + elements(after_, behind);
}

void append_forward_product(std::string& text, const TrainingArgs& args,
                            const DeepSpeedParameter& parameter, std::string_view stage) {
  if (parameter.columns != 1) {
    append(text,
           {"computation", "", std::nullopt,
            shapes(args.micro_batch, args.seq, parameter.rows, parameter.rows, parameter.columns),
            stage});
  }
}

void append_gradient_product(std::string& text, const TrainingArgs& args,
                             const DeepSpeedParameter& parameter, std::string_view stage) {
  if (parameter.columns != 1) {
    const Count tokens = args.micro_batch * args.seq;
    append(text, {"computation", "", std::nullopt,
                  shapes(parameter.rows, tokens, tokens, parameter.columns), stage});
  }
}

}  // namespace lockstep
