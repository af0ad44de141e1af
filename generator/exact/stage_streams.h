#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lockstep {

/// Streams of a stage's program: indices into OpProgram::streams.
enum StageStream : std::int32_t {
  kComputeStream,
  kTpStream,
  kEpStream,  ///< experts: all-to-all, and expert tensor parallelism
  kCpStream,
  kCpSendStream,
  kCpReceiveStream,
  kDpStream,
  kForwardInStream,
  kForwardOutStream,
  kBackwardInStream,
  kBackwardOutStream,
  kGlobalStream,  ///< what several stages take part in, and the loss
};

inline constexpr std::array<std::string_view, 12> kStageStreamNames{
    "compute", "tp",         "ep",          "cp",          "cp send",      "cp receive",
    "dp",      "forward in", "forward out", "backward in", "backward out", "global"};

}  // namespace lockstep
