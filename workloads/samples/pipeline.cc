#include "workloads/samples/pipeline.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace lockstep::samples {
namespace {

enum Stream : std::int32_t { kCompute, kTensor, kSend, kReceive };

constexpr std::int32_t kRanksPerStage = 2;

/// A piece of a stage's schedule: the forward or backward pass of a microbatch.
struct Pass {
  bool forward;
  int microbatch;
};

class RankProgram {
 public:
  RankProgram(std::int32_t rank, const GptShape& shape) : shape_(shape), flops_(shape) {
    program_.ranks = {{rank, rank + 1, 1}};
    program_.streams = {"compute", "tensor", "send", "receive"};
    const bool first_stage = rank < kRanksPerStage;
    peer_ = first_stage ? rank + kRanksPerStage : rank - kRanksPerStage;
    const std::vector<Pass> first{{true, 0}, {true, 1},  {false, 0},
                                  {true, 2}, {false, 1}, {false, 2}};
    const std::vector<Pass> last{{true, 0},  {false, 0}, {true, 1},
                                 {false, 1}, {true, 2},  {false, 2}};
    for (const Pass& pass : first_stage ? first : last) {
      add_pass(pass, first_stage);
    }
  }

  OpProgram take() { return std::move(program_); }

 private:
  void add_pass(Pass pass, bool first_stage) {
    const std::string name =
        fmt::format("{} {}", pass.forward ? "forward" : "backward", pass.microbatch);
    const bool receives = pass.forward != first_stage;
    last_ = -1;
    if (receives) {
      add_message(name + " in", kReceive);
    }
    for (std::int64_t layer = 0; layer < shape_.layers; ++layer) {
      // Without sequence parallelism: one all-reduce behind attention and one behind the MLP.
      const std::int64_t attention = flops_.qkv + flops_.projection;
      const std::int64_t core = pass.forward ? flops_.core : flops_.core * 5 / 2;
      const std::int64_t products = pass.forward ? 1 : 2;
      add_block(fmt::format("{} attention {}", name, layer), attention * products + core);
      add_block(fmt::format("{} mlp {}", name, layer), (flops_.up + flops_.down) * products);
    }
    if (pass.forward == first_stage) {
      add_message(name + " out", kSend);
    }
  }

  void add_block(const std::string& name, std::int64_t flops) {
    Op compute;
    compute.name = name;
    compute.stream = kCompute;
    compute.compute = compute_time(flops);
    push(compute);
    Op reduce;
    reduce.name = name + " allreduce";
    reduce.stream = kTensor;
    reduce.comm = CommType::kAllReduce;
    reduce.group = 0;
    reduce.bytes = shape_.activation();
    push(reduce);
  }

  void add_message(const std::string& name, Stream stream) {
    Op message;
    message.name = name;
    message.stream = stream;
    message.comm = CommType::kSendRecv;
    message.peer = peer_;
    message.send = stream == kSend;
    message.bytes = shape_.activation();
    push(message);
  }

  /// After the operation before it in the same pass.
  void push(Op op) {
    if (last_ >= 0) {
      op.after.push_back(last_);
    }
    last_ = static_cast<std::int32_t>(program_.ops.size());
    program_.ops.push_back(std::move(op));
  }

  const GptShape& shape_;
  GptFlops flops_;
  OpProgram program_;
  std::int32_t peer_ = 0;
  std::int32_t last_ = -1;
};

}  // namespace

WorkloadJob pipeline_job(std::string name, const GptShape& shape) {
  OpTable table;
  table.groups = {{"tp", {{0, 1}, {2, 3}}}};
  for (std::int32_t rank = 0; rank < 2 * kRanksPerStage; ++rank) {
    table.programs.push_back(RankProgram(rank, shape).take());
  }
  WorkloadJob job;
  job.name = std::move(name);
  job.parallel = {.gpus = 4, .tp = 2, .pp = 2, .ga = 3};
  job.work = std::move(table);
  return job;
}

}  // namespace lockstep::samples
