#include "simulator/replay/session_store.h"

#include <utility>

namespace lockstep {

const LoneTimes* SessionKind::lone_times() {
  if (!lone_sought_) {
    lone_sought_ = true;
    lone_ = LoneTimes::of(shape);
  }
  return lone_.get();
}

SessionKind* SessionStore::kind_of(CommunicatorShape shape) {
  std::unique_ptr<SessionKind>& kind = kinds_[shape.key()];
  if (!kind) {
    kind = std::make_unique<SessionKind>();
    kind->shape = std::move(shape);
  }
  return kind.get();
}

void SessionStore::clear() {
  kinds_.clear();
  nodes_ = 0;
}

}  // namespace lockstep
