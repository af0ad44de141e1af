#include "generator/deepspeed_parameters.h"

#include "base/error.h"
#include "generator/csv_row.h"

namespace lockstep {

DeepSpeedParameters::DeepSpeedParameters(const TrainingArgs& args)
    : hidden_(args.hidden), ffn_(args.ffn), vocab_(args.vocab), layers_(args.layers) {
  if (args.heads < 1) {
    throw Error("a model needs an attention head").field("--num_attention_heads").expected(">= 1");
  }
  width_ = args.hidden / args.heads * args.heads;
  for (std::int64_t i = 0; i < kPerLayer; ++i) {
    per_layer_ += in_layer(i).elements();
  }
  total();
}

DeepSpeedParameter DeepSpeedParameters::in_layer(std::int64_t i) const {
  switch (i) {
    case 0:
    case 5:
      return {hidden_, 1, true};
    case 1:
    case 2:
    case 3:
      return {hidden_, width_};
    case 4:
      return {width_, hidden_};
    case 7:
      return {ffn_, hidden_};
    default:
      return {hidden_, ffn_};
  }
}

DeepSpeedParameter DeepSpeedParameters::operator[](std::int64_t i) const {
  if (i == 0) {
    return {vocab_, hidden_};
  }
  if (i == size() - 1) {
    return {hidden_, vocab_};
  }
  return i == size() - 2 ? DeepSpeedParameter{hidden_, 1, true} : in_layer((i - 1) % kPerLayer);
}

Count DeepSpeedParameters::offset(std::int64_t i) const {
  if (i == 0) {
    return 0;
  }
  const Count embedding = vocab_ * hidden_;
  const std::int64_t inner = i - 1;
  Count sum = embedding + per_layer_ * std::min(Count(inner / kPerLayer), layers_);
  if (inner < kPerLayer * layers_.value) {
    for (std::int64_t k = 0; k < inner % kPerLayer; ++k) {
      sum += in_layer(k).elements();
    }
    return sum;
  }
  return sum + (i >= size() - 1 ? hidden_ : 0) + (i == size() ? embedding : 0);
}

void append_forward_product(std::string& text, const TrainingArgs& args,
                            const DeepSpeedParameter& parameter, std::string_view stage) {
  if (!parameter.norm) {
    append(text,
           {"computation", "", std::nullopt,
            shapes(args.micro_batch, args.seq, parameter.rows, parameter.rows, parameter.columns),
            stage});
  }
}

void append_gradient_product(std::string& text, const TrainingArgs& args,
                             const DeepSpeedParameter& parameter, std::string_view stage) {
  if (!parameter.norm) {
    const Count tokens = args.micro_batch * args.seq;
    append(text, {"computation", "", std::nullopt,
                  shapes(parameter.rows, tokens, tokens, parameter.columns), stage});
  }
}

}  // namespace lockstep
