#include "simulator/collectives/protocol.h"

#include "base/error.h"

namespace lockstep {

std::string_view name_of(Protocol protocol) {
  switch (protocol) {
    case Protocol::kSimple:
      return "simple";
    case Protocol::kLl:
      return "ll";
    case Protocol::kLl128:
      return "ll128";
  }
  LOCKSTEP_CHECK(false, "every protocol has a name");
}

std::optional<Protocol> protocol_named(std::string_view name) {
  for (const Protocol protocol : {Protocol::kSimple, Protocol::kLl, Protocol::kLl128}) {
    if (name_of(protocol) == name) {
      return protocol;
    }
  }
  return std::nullopt;
}

WireRatio wire_ratio(Protocol protocol) {
  switch (protocol) {
    case Protocol::kSimple:
      return {1, 1};
    case Protocol::kLl:
      return {2, 1};
    case Protocol::kLl128:
      return {128, 120};
  }
  LOCKSTEP_CHECK(false, "every protocol has a ratio");
}

Bytes piece_limit(Protocol protocol) {
  switch (protocol) {
    case Protocol::kSimple:
      return Bytes(512 << 10);
    case Protocol::kLl:
      return Bytes(32 << 10);
    case Protocol::kLl128:
      return Bytes(576'000);
  }
  LOCKSTEP_CHECK(false, "every protocol has a limit");
}

}  // namespace lockstep
