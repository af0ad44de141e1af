#include "profiler/cuda/nccl_transport.h"

#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <nccl.h>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "profiler/cuda/gemm.h"
#include "profiler/cuda/launch.h"

namespace lockstep::cuda {
namespace {

// Asynchronous calls of NCCL are polled until they have ended, so that stop() can stop them: at
// first without a pause, which would be timed.
constexpr auto kPoll = std::chrono::microseconds(200);
constexpr int kPollsWithoutPause = 10000;

class NcclTransport : public Transport {
 public:
  explicit NcclTransport(int device) {
    check(cudaSetDevice(device), "cudaSetDevice");
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    gpu_ = properties.name;
    timer_ = std::make_unique<Timer>(properties.l2CacheSize);
  }
  ~NcclTransport() override {
    for (ncclComm_t comm : groups_) {
      if (comm != nullptr && comm != world_ && !aborted_) {
        (void)ncclCommDestroy(comm);
      }
    }
    if (world_ != nullptr && !aborted_) {
      (void)ncclCommDestroy(world_);
    }
  }
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  std::string make_id() override {
    ncclUniqueId id;
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    return {id.internal, sizeof id.internal};
  }

  void join(int rank, int world, const std::string& text, std::int64_t largest_bytes) override {
    ncclUniqueId id;
    if (text.size() != sizeof id.internal) {
      throw Error("the id of the world is none of NCCL's");
    }
    std::memcpy(id.internal, text.data(), sizeof id.internal);
    rank_ = rank;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    const ncclResult_t status = ncclCommInitRankConfig(&comm, world, id, rank, &config);
    {
      const std::lock_guard lock(mutex_);
      world_ = comm;
    }
    finish(status, comm, "ncclCommInitRankConfig");
    const std::int64_t bytes = std::max<std::int64_t>(largest_bytes, 1) + 4096L * world;
    input_ = Buffer(bytes, nullptr);
    output_ = Buffer(bytes, nullptr);
    fill_random(Element::kBf16, input_.get(), bytes / 2, static_cast<std::uint64_t>(rank + 1), 1,
                stream());
    timer_->stream().synchronise();
  }

  int add_group(std::span<const std::int32_t> ranks) override {
    const auto own = std::ranges::find(ranks, rank_);
    const bool member = own != ranks.end();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    const ncclResult_t status =
        ncclCommSplit(world_, member ? 0 : NCCL_SPLIT_NOCOLOR,
                      member ? static_cast<int>(own - ranks.begin()) : 0, &comm, &config);
    finish(status, world_, "ncclCommSplit");
    if (comm != nullptr) {
      finish(ncclSuccess, comm, "ncclCommSplit");
    }
    const std::lock_guard lock(mutex_);
    groups_.push_back(member ? comm : nullptr);
    sizes_.push_back(static_cast<std::int64_t>(ranks.size()));
    return static_cast<int>(groups_.size()) - 1;
  }

  double communicate(const CommCall& call) override {
    const Event begin, end;
    timer_->flush();  // keeps the GPU busy until the host has enqueued the call
    begin.record(timer_->stream());
    ncclComm_t comm = world_;
    ncclResult_t status = ncclSuccess;
    const auto elements = static_cast<std::size_t>(call.bytes / 2);
    if (call.comm == CommType::kSendRecv) {
      status = call.send
                   ? ncclSend(input_.get(), elements, ncclBfloat16, call.peer, comm, stream())
                   : ncclRecv(output_.get(), elements, ncclBfloat16, call.peer, comm, stream());
    } else {
      comm = groups_.at(static_cast<std::size_t>(call.group));
      status = collective(call, comm, sizes_[static_cast<std::size_t>(call.group)]);
    }
    finish(status, comm, "NCCL");
    end.record(timer_->stream());
    wait(comm);
    return seconds_between(begin, end);
  }

  double compute(const ComputeCall& call) override {
    const Event begin, end;
    if (call.m == 0) {
      const auto start = std::chrono::steady_clock::now();
      std::this_thread::sleep_for(std::chrono::duration<double>(call.idle.seconds()));
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    Gemm::Plan& plan = product_of(call);
    begin.record(timer_->stream());
    plan.launch(stream());
    end.record(timer_->stream());
    timer_->stream().synchronise();
    return seconds_between(begin, end);
  }

  void synchronise() override { timer_->stream().synchronise(); }

  void stop() noexcept override {
    const std::lock_guard lock(mutex_);
    if (aborted_.exchange(true)) {
      return;
    }
    for (ncclComm_t comm : groups_) {
      if (comm != nullptr) {
        (void)ncclCommAbort(comm);
      }
    }
    if (world_ != nullptr) {
      (void)ncclCommAbort(world_);
    }
  }

  std::string name() const override {
    int version = 0;
    check_nccl(ncclGetVersion(&version), "ncclGetVersion");
    return fmt::format("NCCL {}.{}.{} on {}", version / 10000, version / 100 % 100, version % 100,
                       gpu_);
  }

 private:
  static void check_nccl(ncclResult_t status, const char* what) {
    if (status != ncclSuccess) {
      throw Error(
          fmt::format("{}: {}; {}", what, ncclGetErrorString(status), ncclGetLastError(nullptr)));
    }
  }

  cudaStream_t stream() const { return timer_->stream().get(); }

  /// Waits until a non-blocking call has been carried out. A call that returns success may be under
  /// way all the same: what counts is the communicator's state.
  void finish(ncclResult_t status, ncclComm_t comm, const char* what) {
    if (status != ncclInProgress) {
      check_nccl(status, what);
    }
    for (int polls = 0;; ++polls) {
      check_nccl(ncclCommGetAsyncError(comm, &status), what);
      if (status != ncclInProgress) {
        break;
      }
      stop_if_aborted();
      if (polls >= kPollsWithoutPause) {
        std::this_thread::sleep_for(kPoll);
      }
    }
    check_nccl(status, what);
  }

  /// Waits for the stream; an error of another rank ends the wait.
  void wait(ncclComm_t comm) {
    for (cudaError_t state = cudaStreamQuery(stream()); state == cudaErrorNotReady;
         state = cudaStreamQuery(stream())) {
      stop_if_aborted();
      ncclResult_t status = ncclSuccess;
      check_nccl(ncclCommGetAsyncError(comm, &status), "ncclCommGetAsyncError");
      if (status != ncclSuccess && status != ncclInProgress) {
        check_nccl(status, "NCCL");
      }
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    timer_->stream().synchronise();
  }

  void stop_if_aborted() const {
    if (aborted_) {
      throw Error("stopped: another rank has failed");
    }
  }

  /// bytes: the full tensor. Parts of it are rounded up to whole elements.
  ncclResult_t collective(const CommCall& call, ncclComm_t comm, std::int64_t ranks) {
    const auto all = static_cast<std::size_t>(call.bytes / 2);
    const auto count = static_cast<std::size_t>(ranks);
    const std::size_t part = (all + count - 1) / count;
    void *in = input_.get(), *out = output_.get();
    switch (call.comm) {
      case CommType::kAllReduce:
        return ncclAllReduce(in, out, all, ncclBfloat16, ncclSum, comm, stream());
      case CommType::kAllGather:
        return ncclAllGather(in, out, part, ncclBfloat16, comm, stream());
      case CommType::kReduceScatter:
        return ncclReduceScatter(in, out, part, ncclBfloat16, ncclSum, comm, stream());
      case CommType::kBroadcast:
        return ncclBroadcast(in, out, all, ncclBfloat16, 0, comm, stream());
      case CommType::kReduce:
        return ncclReduce(in, out, all, ncclBfloat16, ncclSum, 0, comm, stream());
      case CommType::kAllToAll:
        return all_to_all(in, out, part, static_cast<int>(ranks), comm);
      case CommType::kBarrier:
        return ncclAllReduce(in, out, 1, ncclBfloat16, ncclSum, comm, stream());
      case CommType::kNone:
      case CommType::kSendRecv:
        break;
    }
    throw Error("no such collective");
  }

  ncclResult_t all_to_all(void* in, void* out, std::size_t part, int ranks, ncclComm_t comm) {
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (int peer = 0; peer < ranks; ++peer) {
      const std::size_t at = 2 * part * static_cast<std::size_t>(peer);
      check_sent(ncclSend(static_cast<char*>(in) + at, part, ncclBfloat16, peer, comm, stream()));
      check_sent(ncclRecv(static_cast<char*>(out) + at, part, ncclBfloat16, peer, comm, stream()));
    }
    return ncclGroupEnd();
  }
  static void check_sent(ncclResult_t status) {
    if (status != ncclInProgress) {
      check_nccl(status, "ncclSend");
    }
  }

  Gemm::Plan& product_of(const ComputeCall& call) {
    const auto key = std::tuple(call.m, call.n, call.k);
    const auto known = products_.find(key);
    if (known != products_.end()) {
      return known->second;
    }
    products_.clear();  // one at a time: their operands may fill the GPU
    return products_
        .emplace(key, gemm_.plan(make_kernel(KernelKind::kGemm, Precision::kBf16,
                                             {call.m, call.n, call.k}),
                                 false, *timer_, nullptr))
        .first->second;
  }

  std::string gpu_;
  int rank_ = 0;
  std::unique_ptr<Timer> timer_;
  Gemm gemm_;
  Buffer input_, output_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Gemm::Plan> products_;
  std::mutex mutex_;
  ncclComm_t world_ = nullptr;
  std::vector<ncclComm_t> groups_;
  std::vector<std::int64_t> sizes_;
  std::atomic<bool> aborted_ = false;
};

}  // namespace

std::unique_ptr<Transport> open_nccl_transport(int number) {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    throw Error("no GPU can be used", ExitCode::kMissingPart)
        .hint("lockstep doctor tells what is there; --dry-run and --transport control need none");
  }
  if (number >= count) {
    throw Error(fmt::format("there is no GPU {} for this rank: there are {}", number, count),
                ExitCode::kMissingPart);
  }
  return std::make_unique<NcclTransport>(number);
}

}  // namespace lockstep::cuda
