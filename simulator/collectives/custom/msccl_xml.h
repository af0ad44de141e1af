#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/comm.h"

namespace lockstep {

/// A place in one of a GPU's three buffers of MSCCL, in chunks.
struct MscclRange {
  enum class Buffer : std::uint8_t { kInput, kOutput, kScratch };
  Buffer buffer = Buffer::kInput;
  std::int32_t offset = 0;
};

/// One step of a thread block. Steps receive, then reduce or copy, then send, as their flags say.
struct MscclStep {
  bool receives = false, reduces = false, copies = false, sends = false;
  bool local = false;  ///< re, cpy: from source to destination on the same GPU
  MscclRange source, destination;
  std::int32_t count = 0;                          ///< chunks
  std::int32_t after_block = -1, after_step = -1;  ///< must have ended before; -1: nothing
  std::size_t line = 0;
};

/// A thread block: it receives from one GPU and sends to one (-1: none), on one channel.
struct MscclBlock {
  std::int32_t send_to = -1, receive_from = -1, channel = 0;
  std::vector<MscclStep> steps;
  std::size_t line = 0;
};

struct MscclGpu {
  std::int32_t input = 0, output = 0, scratch = 0;  ///< chunks of its buffers
  std::vector<MscclBlock> blocks;
  std::size_t line = 0;
};

/// An algorithm in MSCCL's XML (github.com/microsoft/msccl, msccl-tools): who sends which chunks
/// when, as programs of thread blocks.
struct MscclProgram {
  std::string name;
  CommType op = CommType::kNone;
  std::int32_t chunks = 0;  ///< nchunksperloop: of the tensor
  bool in_place = false;    ///< output and input are one buffer
  std::vector<MscclGpu> gpus;
};

/// Reads it strictly. ERRORS: Error with line for XML that is not well formed, document type
/// declarations, unknown elements, attributes and values, numbers out of range (offsets inside
/// their buffers, GPUs and steps that exist), ids that are not 0, 1, 2, … in order, two blocks of a
/// GPU with one peer and channel.
MscclProgram parse_msccl_xml(std::string_view text, const std::string& file);

}  // namespace lockstep
