#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "generator/job.h"

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
  kTpSendStream,  ///< this and the next only where transfers overlap with their product
  kTpReceiveStream,
};

inline constexpr std::array<std::string_view, 14> kStageStreamNames{
    "compute",      "tp",     "ep",         "cp",          "cp send",
    "cp receive",   "dp",     "forward in", "forward out", "backward in",
    "backward out", "global", "tp send",    "tp receive"};

/// Those of a job's programs.
inline std::vector<std::string> stage_streams(const Job& job) {
  const bool exchanges = job.product_overlap.gather && job.sequence_parallel && job.tp > 1;
  return {kStageStreamNames.begin(),
          exchanges ? kStageStreamNames.end() : kStageStreamNames.begin() + kTpSendStream};
}

}  // namespace lockstep
