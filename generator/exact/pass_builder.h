#pragma once

#include <string>
#include <utility>
#include <vector>

#include "generator/exact/pass.h"

namespace lockstep {

/// Appends steps to a pass. Each step of the chain comes after the one before it; steps beside the
/// chain start where told and are waited for where they are joined.
class PassBuilder {
 public:
  /// On the chain: after its tail and all that was joined.
  std::int32_t compute(const Operator& op, ParameterCount ready = {}) {
    PassStep step;
    step.name = op.name;
    step.op = op;
    step.ready = ready;
    return chain(std::move(step));
  }
  void compute_all(const std::vector<Operator>& ops, ParameterCount ready = {}) {
    for (std::size_t i = 0; i < ops.size(); ++i) {
      compute(ops[i], i + 1 == ops.size() ? ready : ParameterCount());
    }
  }
  /// The gradients of weights; `ready` is complete when the last ends.
  void weight_gradients(const std::vector<Operator>& ops, ParameterCount ready) {
    const std::size_t first = pass_.steps.size();
    compute_all(ops, ready);
    for (std::size_t i = first; i < pass_.steps.size(); ++i) {
      pass_.steps[i].weights = true;
    }
  }
  std::int32_t transfer(std::string name, const PassComm& transfer) {
    PassStep step;
    step.name = std::move(name);
    step.transfer = transfer;
    return chain(std::move(step));
  }
  /// Beside the chain, after the steps given.
  std::int32_t beside(std::string name, const PassComm& transfer, std::vector<std::int32_t> after,
                      bool weights = false) {
    PassStep step;
    step.weights = weights;
    step.name = std::move(name);
    step.transfer = transfer;
    step.after = std::move(after);
    pass_.steps.push_back(std::move(step));
    return static_cast<std::int32_t>(pass_.steps.size()) - 1;
  }
  /// The chain's next step waits for this one too.
  void join(std::int32_t step) { tail_.push_back(step); }
  const std::vector<std::int32_t>& tail() const { return tail_; }

  Pass take() {
    pass_.exits = tail_;
    return std::move(pass_);
  }

 private:
  std::int32_t chain(PassStep step) {
    step.after = std::move(tail_);
    pass_.steps.push_back(std::move(step));
    tail_ = {static_cast<std::int32_t>(pass_.steps.size()) - 1};
    return tail_.front();
  }

  Pass pass_;
  std::vector<std::int32_t> tail_;
};

}  // namespace lockstep
