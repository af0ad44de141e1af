#pragma once

#include <cstddef>
#include <vector>

namespace lockstep {

/// Empties a list that is filled again and again, and gives its memory back if that is much: a
/// million transfers that start together leave short lists afterwards.
template <class T>
void give_back(std::vector<T>& list) {
  constexpr std::size_t kKeep = std::size_t{1} << 16;
  if (list.capacity() > kKeep) {
    std::vector<T>().swap(list);
  } else {
    list.clear();
  }
}

}  // namespace lockstep
