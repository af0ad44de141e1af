#pragma once

#include <string_view>
#include <vector>

namespace lockstep {

/// Which of `layers` layers have experts, by Megatron-LM's --moe-layer-freq: a number N (the layers
/// 0, N, 2N, …) or a list as Python writes it, "([0]*3+[1]*58)*1", of as many 0 and 1 as layers.
/// ERRORS: Error naming the flag. O(layers + text).
std::vector<bool> moe_layers(std::string_view frequency, std::size_t layers);

}  // namespace lockstep
