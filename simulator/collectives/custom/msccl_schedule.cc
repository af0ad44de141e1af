#include "simulator/collectives/custom/msccl_schedule.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/index.h"
#include "simulator/collectives/building.h"
#include "simulator/collectives/rings.h"

namespace lockstep {
namespace {

constexpr std::int64_t kMostProof = std::int64_t{1} << 26;  // contributions: 3 GB

/// What a location holds: a chunk of the tensor and the ranks whose contributions are in it.
struct Value {
  std::int32_t chunk = -1;  // -1: nothing
  std::set<std::int32_t> from;
  friend bool operator==(const Value&, const Value&) = default;
};

/// What a step must have received before it ends: by the GPU's incoming connections (the block that
/// receives), how many messages.
using Received = std::map<std::int32_t, std::int32_t>;

void unite(Received& into, const Received& other) {
  for (const auto& [block, count] : other) {
    std::int32_t& mine = into[block];
    mine = std::max(mine, count);
  }
}

/// A block of a GPU.
struct BlockId {
  std::int32_t gpu = -1, block = -1;
  friend bool operator==(const BlockId&, const BlockId&) = default;
};

class Execution {
 public:
  /// `last`: a block that moves only when no other can, so that what is not ordered behind it goes
  /// before.
  Execution(const MscclProgram& program, const std::string& file, const CollectiveRequest& request,
            BlockId last = {})
      : program_(program), file_(file), root_(request.root), last_(last) {
    for (std::int32_t gpu = 0; gpu < gpus(); ++gpu) {
      const MscclGpu& g = program_.gpus[at(gpu)];
      memory_.emplace_back(at(g.input) + at(g.output) + at(g.scratch));
      steps_done_.emplace_back(g.blocks.size(), 0);
      sent_.emplace_back(g.blocks.size());
      taken_.emplace_back(g.blocks.size(), 0);
      received_.emplace_back(g.blocks.size());
    }
    for (std::int32_t gpu = 0; gpu < gpus(); ++gpu) {
      check_buffers(gpu);
      fill_input(gpu);
    }
  }

  /// Runs to the end; with `schedule`, appends its transfers.
  void run(Schedule* schedule) {
    schedule_ = schedule;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::int32_t gpu = 0; gpu < gpus(); ++gpu) {
        const auto blocks = static_cast<std::int32_t>(program_.gpus[at(gpu)].blocks.size());
        for (std::int32_t block = 0; block < blocks; ++block) {
          while (last_ != BlockId{gpu, block} && advance(gpu, block)) {
            moved = true;
          }
        }
      }
      moved = moved || (last_.gpu >= 0 && advance(last_.gpu, last_.block));
    }
    check_finished();
    check_result();
  }

  const std::vector<std::vector<Value>>& memory() const { return memory_; }

 private:
  struct Message {
    std::vector<Value> values;
    std::int32_t slot = -1;
    std::size_t line = 0;
  };

  std::int32_t gpus() const { return static_cast<std::int32_t>(program_.gpus.size()); }
  const MscclBlock& block_of(std::int32_t gpu, std::int32_t block) const {
    return program_.gpus[at(gpu)].blocks[at(block)];
  }
  Error error(std::size_t line, std::string message) const {
    return Error(std::move(message)).at(file_, line);
  }

  void check_buffers(std::int32_t gpu) const {
    const MscclGpu& g = program_.gpus[at(gpu)];
    const std::int32_t chunks = program_.chunks, n = gpus();
    const bool divided =
        program_.op == CommType::kAllGather || program_.op == CommType::kReduceScatter;
    const bool whole = divided || program_.op == CommType::kAllToAll;
    if (whole && chunks % n != 0) {
      throw error(g.line, fmt::format("nchunksperloop = {} is no multiple of {} GPUs", chunks, n));
    }
    const std::int32_t input = program_.op == CommType::kAllGather ? chunks / n : chunks;
    const std::int32_t output = program_.op == CommType::kReduceScatter ? chunks / n : chunks;
    // A buffer that an in-place program does not name may be declared empty.
    const auto fits = [&](std::int32_t has, std::int32_t needs) {
      return has >= needs || (program_.in_place && has == 0);
    };
    if (!fits(g.input, input) || !fits(g.output, output)) {
      throw error(g.line,
                  fmt::format("GPU {} has {} input and {} output chunks", gpu, g.input, g.output))
          .expected(fmt::format("{} and {}", input, output));
    }
  }

  /// The location of a chunk in a buffer. In place, the smaller buffer lies in the larger one.
  std::size_t location(std::int32_t gpu, MscclRange range, std::int32_t i) const {
    const MscclGpu& g = program_.gpus[at(gpu)];
    std::int32_t offset = range.offset + i;
    using Buffer = MscclRange::Buffer;
    if (range.buffer == Buffer::kScratch) {
      return at(g.input) + at(g.output) + at(offset);
    }
    const std::int32_t shard = program_.chunks / gpus();
    const bool output_is_larger = program_.op == CommType::kAllGather;
    if (program_.in_place && (range.buffer == Buffer::kOutput) != output_is_larger) {
      const bool divided = output_is_larger || program_.op == CommType::kReduceScatter;
      offset += divided ? gpu * shard : 0;
      range.buffer = output_is_larger ? Buffer::kOutput : Buffer::kInput;
    }
    const std::size_t place = at(offset) + (range.buffer == Buffer::kOutput ? at(g.input) : 0);
    if (place >= memory_[at(gpu)].size()) {
      throw error(g.line,
                  fmt::format("GPU {}: chunk {} of an in-place buffer is outside it", gpu, offset));
    }
    return place;
  }

  /// Which chunk of the schedule lies at an offset of a GPU's input at the start; -1: none.
  std::int32_t initial_chunk(std::int32_t gpu, std::int32_t offset) const {
    const std::int32_t shard = program_.chunks / gpus();
    switch (program_.op) {
      case CommType::kAllGather:
        return offset < shard ? gpu * shard + offset : -1;
      case CommType::kAllToAll:  // to rank offset / shard
        return offset < program_.chunks ? (gpu * gpus() + offset / shard) * shard + offset % shard
                                        : -1;
      case CommType::kBroadcast:
        return gpu == root_ && offset < program_.chunks ? offset : -1;
      default:
        return offset < program_.chunks ? offset : -1;
    }
  }
  void fill_input(std::int32_t gpu) {
    const std::int32_t shard = program_.chunks / gpus();
    const std::int32_t size = program_.op == CommType::kAllGather ? shard : program_.chunks;
    for (std::int32_t offset = 0; offset < size; ++offset) {
      const std::int32_t chunk = initial_chunk(gpu, offset);
      if (chunk >= 0) {
        memory_[at(gpu)][location(gpu, {MscclRange::Buffer::kInput, offset}, 0)] = {chunk, {gpu}};
      }
    }
  }

  std::int32_t matching_block(std::int32_t sender, const MscclBlock& block,
                              std::int32_t receiver) const {
    const auto& blocks = program_.gpus[at(sender)].blocks;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (blocks[b].send_to == receiver && blocks[b].channel == block.channel) {
        return static_cast<std::int32_t>(b);
      }
    }
    return -1;
  }

  /// Carries out a block's next step, if it can.
  bool advance(std::int32_t gpu, std::int32_t b) {
    const MscclBlock& block = block_of(gpu, b);
    std::size_t& done = steps_done_[at(gpu)][at(b)];
    if (done >= block.steps.size()) {
      return false;
    }
    const MscclStep& step = block.steps[done];
    if (step.after_block >= 0 &&
        steps_done_[at(gpu)][at(step.after_block)] <= at(step.after_step)) {
      return false;
    }
    std::vector<Value> values;
    if (step.receives) {
      const std::int32_t other = matching_block(block.receive_from, block, gpu);
      std::int32_t& taken = taken_[at(gpu)][at(b)];
      if (other < 0 || std::ssize(sent_[at(block.receive_from)][at(other)]) <= taken) {
        return false;
      }
      const Message& message = sent_[at(block.receive_from)][at(other)][at(taken++)];
      if (std::ssize(message.values) != step.count) {
        throw error(step.line, fmt::format("receives {} chunks where {} are sent (line {})",
                                           step.count, message.values.size(), message.line));
      }
      values = message.values;
    }
    Received received = done > 0 ? received_[at(gpu)][at(b)][done - 1] : Received();
    if (step.after_block >= 0) {
      unite(received, received_[at(gpu)][at(step.after_block)][at(step.after_step)]);
    }
    if (step.receives) {
      received[b] = taken_[at(gpu)][at(b)];
    }
    received_[at(gpu)][at(b)].push_back(received);
    carry_out(gpu, step, values);
    if (step.sends) {
      send(gpu, b, step, values, received);
    }
    ++done;
    return true;
  }

  void carry_out(std::int32_t gpu, const MscclStep& step, std::vector<Value>& values) {
    std::vector<Value>& memory = memory_[at(gpu)];
    for (std::int32_t i = 0; i < step.count; ++i) {
      if (!step.receives && (step.sends || step.copies)) {  // s, cpy, re
        values.push_back(memory[location(gpu, step.source, i)]);
        used(step, values.back());
      }
      if (step.reduces) {
        // rr..: what arrived is added to the source; re: the source to the destination.
        const MscclRange with = step.local ? step.destination : step.source;
        const Value& other = memory[location(gpu, with, i)];
        used(step, other);
        values[at(i)] = sum(step, values[at(i)], other);
      }
      if (step.copies) {
        memory[location(gpu, step.destination, i)] = values[at(i)];
      }
    }
  }
  void used(const MscclStep& step, const Value& value) const {
    if (value.chunk < 0) {
      throw error(step.line, "uses a chunk that is not there yet");
    }
  }
  Value sum(const MscclStep& step, const Value& a, const Value& b) const {
    if (a.chunk != b.chunk) {
      throw error(step.line, fmt::format("adds chunk {} to chunk {}", a.chunk, b.chunk));
    }
    Value result = a;
    for (const std::int32_t rank : b.from) {
      if (!result.from.insert(rank).second) {
        throw error(step.line,
                    fmt::format("adds what GPU {} gave to chunk {} a second time", rank, a.chunk));
      }
    }
    return result;
  }

  void send(std::int32_t gpu, std::int32_t b, const MscclStep& step,
            const std::vector<Value>& values, const Received& received) {
    const MscclBlock& block = block_of(gpu, b);
    Message message{values, -1, step.line};
    if (schedule_ != nullptr) {
      std::vector<std::int32_t> chunks;
      chunks.reserve(values.size());
      for (const Value& value : values) {
        chunks.push_back(value.chunk);
      }
      std::vector<SlotWait> waits;
      for (const auto& [incoming, count] : received) {
        const MscclBlock& from = block_of(gpu, incoming);
        const std::int32_t other = matching_block(from.receive_from, from, gpu);
        waits.push_back(
            {sent_[at(from.receive_from)][at(other)][at(count - 1)].slot, SlotWait::kAll});
      }
      Slot slot;
      slot.source = gpu;
      slot.destination = block.send_to;
      slot.channel = block.channel;
      slot.cycle = schedule_->add_cycle(chunks);
      slot.run = step.count;
      message.slot = schedule_->add(slot, waits);
    }
    sent_[at(gpu)][at(b)].push_back(std::move(message));
  }

  void check_finished() const {
    for (std::int32_t gpu = 0; gpu < gpus(); ++gpu) {
      for (std::size_t b = 0; b < program_.gpus[at(gpu)].blocks.size(); ++b) {
        const MscclBlock& block = program_.gpus[at(gpu)].blocks[b];
        if (steps_done_[at(gpu)][b] < block.steps.size()) {
          const MscclStep& step = block.steps[steps_done_[at(gpu)][b]];
          throw error(step.line, fmt::format("GPU {}, block {}, step {} can never be carried out",
                                             gpu, b, steps_done_[at(gpu)][b]))
              .hint(step.receives ? "is there a send for this receive, on the same channel?"
                                  : "do dependencies wait for each other in a circle?");
        }
        if (block.send_to >= 0) {
          check_taken(gpu, b, block);
        }
      }
    }
  }
  void check_taken(std::int32_t gpu, std::size_t b, const MscclBlock& block) const {
    const auto& sent = sent_[at(gpu)][b];
    const auto& others = program_.gpus[at(block.send_to)].blocks;
    for (std::size_t o = 0; o < others.size(); ++o) {
      if (others[o].receive_from == gpu && others[o].channel == block.channel) {
        if (std::ssize(sent) > taken_[at(block.send_to)][o]) {
          throw error(sent[at(taken_[at(block.send_to)][o])].line, "sends what is never received");
        }
        return;
      }
    }
    if (!sent.empty()) {
      throw error(sent.front().line, "sends what is never received");
    }
  }

  void check_result() const {
    const std::int32_t n = gpus(), shard = program_.chunks / n;
    for (std::int32_t gpu = 0; gpu < n; ++gpu) {
      const bool scatter = program_.op == CommType::kReduceScatter;
      if (program_.op == CommType::kReduce && gpu != root_) {
        continue;
      }
      for (std::int32_t offset = 0; offset < (scatter ? shard : program_.chunks); ++offset) {
        const Value& value =
            memory_[at(gpu)][location(gpu, {MscclRange::Buffer::kOutput, offset}, 0)];
        std::int32_t chunk = offset;
        std::size_t contributions = at(n);
        if (scatter) {
          chunk = gpu * shard + offset;
        } else if (program_.op == CommType::kAllToAll) {
          chunk = (offset / shard * n + gpu) * shard + offset % shard;
          contributions = 1;
        } else if (program_.op == CommType::kAllGather || program_.op == CommType::kBroadcast) {
          contributions = 1;
        }
        if (value.chunk != chunk || value.from.size() != contributions) {
          throw error(program_.gpus[at(gpu)].line,
                      fmt::format("GPU {} ends with {} at place {} of its output", gpu,
                                  describe(value), offset))
              .expected(fmt::format("chunk {} with the contributions of {}", chunk,
                                    contributions == 1 ? "its owner" : "all GPUs"));
        }
      }
    }
  }
  static std::string describe(const Value& value) {
    return value.chunk < 0 ? std::string("nothing")
                           : fmt::format("chunk {} from {} GPU{}", value.chunk, value.from.size(),
                                         value.from.size() == 1 ? "" : "s");
  }

  const MscclProgram& program_;
  const std::string& file_;
  std::int32_t root_;
  BlockId last_;
  Schedule* schedule_ = nullptr;
  std::vector<std::vector<Value>> memory_;                    // by GPU: input, output, scratch
  std::vector<std::vector<std::size_t>> steps_done_;          // by GPU and block
  std::vector<std::vector<std::vector<Message>>> sent_;       // by GPU and block
  std::vector<std::vector<std::int32_t>> taken_;              // by GPU and block
  std::vector<std::vector<std::vector<Received>>> received_;  // by GPU, block and step
};

/// Two steps of a GPU that no order of blocks, dependency or message puts one before the other come
/// in either order, each when the other's block is held back. All blocks, where their runs take 2
/// million steps at most (some two seconds); of larger programs some, evenly.
std::vector<BlockId> blocks_to_hold_back(const MscclProgram& program) {
  constexpr std::size_t kMostSteps = 2'000'000, kFewest = 2;
  std::vector<BlockId> all;
  std::size_t steps = 1;
  for (std::size_t gpu = 0; gpu < program.gpus.size(); ++gpu) {
    for (std::size_t block = 0; block < program.gpus[gpu].blocks.size(); ++block) {
      all.push_back({static_cast<std::int32_t>(gpu), static_cast<std::int32_t>(block)});
      steps += program.gpus[gpu].blocks[block].steps.size();
    }
  }
  const std::size_t most = std::max(kMostSteps / steps, kFewest);
  std::vector<BlockId> some;
  for (std::size_t i = 0; i < all.size(); i += (all.size() + most - 1) / most) {
    some.push_back(all[i]);
  }
  return some;
}

}  // namespace

Schedule msccl_schedule(const MscclProgram& program, const std::string& file,
                        const CollectiveRequest& request, const GroupShape& shape) {
  LOCKSTEP_CHECK(request.op == program.op, "the request is for the program's operation");
  if (std::ssize(program.gpus) != shape.ranks) {
    throw Error(fmt::format("the algorithm is for {} GPUs, the group has {}", program.gpus.size(),
                            shape.ranks))
        .at(file);
  }
  std::int64_t locations = 0;
  for (const MscclGpu& gpu : program.gpus) {
    locations += std::int64_t{gpu.input} + gpu.output + gpu.scratch;
  }
  if (locations * shape.ranks > kMostProof) {
    throw Error(fmt::format("{} buffer chunks on {} GPUs are too many to be proved right",
                            locations, shape.ranks))
        .at(file)
        .expected(fmt::format("chunks of all buffers x GPUs up to {}", kMostProof));
  }
  Schedule schedule = empty_schedule(request, shape);
  schedule.chunks = program.chunks * (request.op == CommType::kAllToAll ? shape.ranks : 1);
  schedule.chunk_bytes = part_size(request.bytes, program.chunks, request.flavour);
  Execution first(program, file, request);
  first.run(&schedule);
  for (const BlockId last : blocks_to_hold_back(program)) {
    Execution other(program, file, request, last);
    try {
      other.run(nullptr);
      if (other.memory() != first.memory()) {
        throw Error("the result depends on which block runs first").at(file);
      }
    } catch (Error& error) {
      throw std::move(error).hint(fmt::format(
          "so when block {} of GPU {} is late: does a step lack a dependency (depid, deps)?",
          last.block, last.gpu));
    }
  }
  return request.bytes == Bytes(0) ? empty_schedule(request, shape) : schedule;
}

}  // namespace lockstep
