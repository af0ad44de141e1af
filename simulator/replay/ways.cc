#include "simulator/replay/ways.h"

namespace lockstep {

void Ways::add(const Way& way) {
  std::uint32_t& number = number_(way.source, way.destination, way.channel);
  if (number == 0) {
    each_.push_back(way);
    number = static_cast<std::uint32_t>(each_.size());
  }
  of_.push_back(static_cast<std::int32_t>(number - 1));
}

}  // namespace lockstep
