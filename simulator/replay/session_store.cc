#include "simulator/replay/session_store.h"

#include <utility>

#include "simulator/replay/step_fold.h"

namespace lockstep {

const LoneTimes* SessionKind::lone_times() {
  if (!lone_sought_) {
    lone_sought_ = true;
    lone_ = LoneTimes::of(shape);
  }
  return lone_.get();
}

SessionKind* SessionStore::kind_of(CommunicatorShape shape) {
  std::vector<std::int64_t> key = shape.key();
  return kind_of(std::move(shape), std::move(key));
}

SessionKind* SessionStore::kind_of(CommunicatorShape shape, std::vector<std::int64_t> key) {
  std::unique_ptr<SessionKind>& kind = kinds_[std::move(key)];
  if (!kind) {
    kind = std::make_unique<SessionKind>();
    kind->shape = std::move(shape);
  }
  return kind.get();
}

std::shared_ptr<const FoldedCommunicators> SessionStore::communicators_of(const StepFold& fold) {
  if (fold.known_in.lock() == valid_) {
    return fold.known;
  }
  auto made = std::make_shared<FoldedCommunicators>();
  std::vector<ShapedCommunicator> shaped = std::exchange(fold.shaped, {});
  if (shaped.empty()) {  // another store has taken them
    shaped = shapes_of(fold);
  }
  for (std::size_t c = 0; c < fold.communicators.size(); ++c) {
    made->kind.push_back(kind_of(std::move(shaped[c].shape), std::move(shaped[c].key)));
    made->constraints.push_back(std::move(shaped[c].constraints));
    std::int64_t& transfers = made->transfers.emplace_back();
    for (const std::int32_t slot : fold.communicators[c].slots) {
      const FlowGraph::Slot& what = fold.graph.slots[static_cast<std::size_t>(slot)];
      transfers += what.count * what.copies;
    }
  }
  fold.known_in = valid_;
  return fold.known = std::move(made);
}

void SessionStore::clear() {
  kinds_.clear();
  valid_ = std::make_shared<int>();
  nodes_ = 0;
}

}  // namespace lockstep
