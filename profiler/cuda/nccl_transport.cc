#include "profiler/cuda/nccl_transport.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nccl.h>
#include <thread>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "profiler/cuda/gemm.h"
#include "profiler/cuda/idle.h"
#include "profiler/cuda/launch.h"

namespace lockstep::cuda {
namespace {

// Asynchronous calls of NCCL are polled until they have ended, so that stop() can stop them: at
// first without a pause, which would be waited for.
constexpr auto kPoll = std::chrono::microseconds(200);
constexpr int kPollsWithoutPause = 10000;
constexpr auto kPause = std::chrono::microseconds(20);
/// What the host gets to enqueue work that could begin at once.
constexpr std::int64_t kLeadNs = 50000;

/// Memory of the host that the GPU reads: one number.
class HostFlag {
 public:
  HostFlag() {
    check(cudaHostAlloc(&memory_, sizeof(int), cudaHostAllocMapped), "cudaHostAlloc");
    set(0);
  }
  ~HostFlag() { (void)cudaFreeHost(memory_); }
  HostFlag(const HostFlag&) = delete;
  HostFlag& operator=(const HostFlag&) = delete;
  void set(int value) { *static_cast<volatile int*>(memory_) = value; }
  const int* get() const { return static_cast<const int*>(memory_); }

 private:
  void* memory_ = nullptr;
};

/// Streams are CUDA's; groups are communicators, that of messages too. All work is enqueued behind
/// what it comes after, with an event before it and one behind: the host waits for none of it.
/// NCCL is called by one thread alone: stop() only says that the others are to be left.
class NcclTransport : public Transport {
 public:
  explicit NcclTransport(int device) {
    check(cudaSetDevice(device), "cudaSetDevice");
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
    gpu_ = properties.name;
    timer_ = std::make_unique<Timer>(properties.l2CacheSize);
    stop_idling_ = std::make_unique<HostFlag>();
  }
  ~NcclTransport() override {
    stop_idling_->set(1);
    for (ncclComm_t comm : groups_) {
      if (comm != nullptr) {
        (void)ncclCommAbort(comm);
      }
    }
    if (world_ != nullptr) {
      (void)ncclCommAbort(world_);
    }
  }
  NcclTransport(const NcclTransport&) = delete;
  NcclTransport& operator=(const NcclTransport&) = delete;

  std::string make_id() override {
    ncclUniqueId id;
    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    return {id.internal, sizeof id.internal};
  }

  void join(const TransportWorld& world) override {
    ncclUniqueId id;
    if (world.id.size() != sizeof id.internal) {
      throw Error("the id of the world is none of NCCL's");
    }
    std::memcpy(id.internal, world.id.data(), sizeof id.internal);
    rank_ = world.rank;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    const ncclResult_t status =
        ncclCommInitRankConfig(&world_, world.world, id, world.rank, &config);
    finish(status, world_, "ncclCommInitRankConfig");
    const std::int64_t bytes = std::max<std::int64_t>(world.largest_bytes, 1) + 4096L * world.world;
    input_ = Buffer(bytes, nullptr);
    output_ = Buffer(bytes, nullptr);
    fill_random(Element::kBf16, input_.get(), bytes / 2, static_cast<std::uint64_t>(world.rank + 1),
                1, timer_->stream().get());
    timer_->stream().synchronise();
    for (int i = 0; i < world.streams; ++i) {
      streams_.push_back(std::make_unique<StreamState>());
    }
  }

  int add_group(std::span<const std::int32_t> ranks, bool messages) override {
    const auto own = std::ranges::find(ranks, rank_);
    const bool member = own != ranks.end();
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    ncclComm_t comm = nullptr;
    const ncclResult_t status =
        ncclCommSplit(world_, member ? 0 : NCCL_SPLIT_NOCOLOR,
                      member ? static_cast<int>(own - ranks.begin()) : 0, &comm, &config);
    finish(status, world_, "ncclCommSplit");
    groups_.push_back(member ? comm : nullptr);
    sizes_.push_back(static_cast<std::int64_t>(ranks.size()));
    const int number = static_cast<int>(groups_.size()) - 1;
    if (member) {
      finish(ncclSuccess, comm, "ncclCommSplit");
      connect(number, messages, own == ranks.begin());
    }
    return number;
  }

  void prepare(const ComputeCall& call, int stream) override {
    if (call.m > 0) {
      StreamState& own = *streams_[static_cast<std::size_t>(stream)];
      if (!own.gemm) {
        own.gemm = std::make_unique<Gemm>();
      }
      const auto key = std::tuple(call.m, call.n, call.k);
      if (!own.products.contains(key)) {
        own.products.emplace(key, own.gemm->plan(make_kernel(KernelKind::kGemm, Precision::kBf16,
                                                             {call.m, call.n, call.k}),
                                                 false, *timer_, nullptr));
      }
    }
  }

  void begin_batch() override {
    count_ = 0;
    for (const auto& stream : streams_) {
      stream->last = kNothing;
    }
    begin_.record(timer_->stream());
    for (const auto& stream : streams_) {
      wait_for(begin_, stream->stream);
    }
  }

  void start(const Work& work) override {
    stop_if_stopped();
    if (count_ == marks_.size()) {
      marks_.push_back(std::make_unique<Marks>());
    }
    Marks& marks = *marks_[count_];
    StreamState& own = *streams_.at(static_cast<std::size_t>(work.stream));
    // What it follows has begun, so that the GPU may wait for the host, whose time is not the
    // work's: then a lead goes before it.
    bool needs_lead = own.last == kNothing || has_passed(marks_[own.last]->begin);
    for (const std::int32_t other : work.after) {
      const Marks& before = *marks_[static_cast<std::size_t>(other)];
      wait_for(before.end, own.stream);
      needs_lead = needs_lead && has_passed(before.begin);
    }
    if (needs_lead) {
      idle(kLeadNs, stop_idling_->get(), own.stream.get());
    }
    marks.begin.record(own.stream);
    if (work.call.comm != CommType::kNone) {
      communicate(work.call, own.stream.get());
    } else if (work.compute.m > 0) {
      own.products.at(std::tuple(work.compute.m, work.compute.n, work.compute.k))
          .launch(own.stream.get());
    } else {
      idle(work.compute.idle.count_ps() / 1000, stop_idling_->get(), own.stream.get());
    }
    check(cudaGetLastError(), "kernel");
    marks.end.record(own.stream);
    own.last = count_++;
  }

  bool has_ended(std::size_t number) override { return has_passed(marks_[number]->end); }

  WorkTime time_of(std::size_t number) override {
    const Marks& marks = *marks_[number];
    return {seconds_between(begin_, marks.begin), seconds_between(marks.begin, marks.end)};
  }

  /// An error that NCCL has found meanwhile ends the wait.
  void pause() override {
    stop_if_stopped();
    for (ncclComm_t comm : groups_) {
      if (comm != nullptr) {
        ncclResult_t status = ncclSuccess;
        check_nccl(ncclCommGetAsyncError(comm, &status), "ncclCommGetAsyncError");
        if (status != ncclInProgress) {
          check_nccl(status, "NCCL");
        }
      }
    }
    std::this_thread::sleep_for(kPause);
  }

  void leave() override {
    for (ncclComm_t& comm : groups_) {
      end(comm);
    }
    end(world_);
  }

  void stop() noexcept override { stopped_ = true; }

  std::string name() const override {
    int version = 0;
    check_nccl(ncclGetVersion(&version), "ncclGetVersion");
    return fmt::format("NCCL {}.{}.{} on {}", version / 10000, version / 100 % 100, version % 100,
                       gpu_);
  }

 private:
  static constexpr std::size_t kNothing = static_cast<std::size_t>(-1);
  /// Around a piece of work.
  struct Marks {
    Event begin, end;
  };
  struct StreamState {
    Stream stream;
    std::size_t last = kNothing;  ///< work on it
    std::unique_ptr<Gemm> gemm;   ///< of its own: products share the workspace
    std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Gemm::Plan> products;
  };

  static void check_nccl(ncclResult_t status, const char* what) {
    if (status != ncclSuccess) {
      throw Error(
          fmt::format("{}: {}; {}", what, ncclGetErrorString(status), ncclGetLastError(nullptr)));
    }
  }

  static void wait_for(const Event& event, const Stream& stream) {
    check(cudaStreamWaitEvent(stream.get(), event.get(), 0), "cudaStreamWaitEvent");
  }
  static bool has_passed(const Event& event) {
    const cudaError_t state = cudaEventQuery(event.get());
    if (state == cudaErrorNotReady) {
      return false;
    }
    check(state, "cudaEventQuery");
    return true;
  }

  /// Waits until a non-blocking call has been carried out. A call that returns success may be under
  /// way all the same: what counts is the communicator's state.
  void finish(ncclResult_t status, ncclComm_t comm, const char* what) {
    if (status != ncclInProgress) {
      check_nccl(status, what);
    }
    for (int polls = 0;; ++polls) {
      stop_if_stopped();
      check_nccl(ncclCommGetAsyncError(comm, &status), what);
      if (status != ncclInProgress) {
        break;
      }
      if (polls >= kPollsWithoutPause) {
        std::this_thread::sleep_for(kPoll);
      }
    }
    check_nccl(status, what);
  }

  /// NCCL makes connections when they are first used, and the host waits for the other ranks then:
  /// here, where all ranks come in one order, and not amid the work.
  void connect(int group, bool messages, bool first) {
    CommCall call;
    call.comm = messages ? CommType::kSendRecv : CommType::kBarrier;
    call.group = group;
    call.bytes = 2;
    call.send = first;
    communicate(call, timer_->stream().get());
    const Event done;
    done.record(timer_->stream());
    while (!has_passed(done)) {
      pause();
    }
  }

  void end(ncclComm_t& comm) {
    if (comm == nullptr) {
      return;
    }
    finish(ncclCommFinalize(comm), comm, "ncclCommFinalize");
    check_nccl(ncclCommDestroy(comm), "ncclCommDestroy");
    comm = nullptr;
  }

  void stop_if_stopped() const {
    if (stopped_) {
      throw Error("stopped", ExitCode::kCheckFailed);
    }
  }

  void communicate(const CommCall& call, cudaStream_t stream) {
    const auto group = static_cast<std::size_t>(call.group);
    ncclComm_t comm = groups_.at(group);
    ncclResult_t status = ncclSuccess;
    if (call.comm == CommType::kSendRecv) {
      // The sender is the first of the group, the receiver the other.
      const auto elements = static_cast<std::size_t>(call.bytes / 2);
      status = call.send ? ncclSend(input_.get(), elements, ncclBfloat16, 1, comm, stream)
                         : ncclRecv(output_.get(), elements, ncclBfloat16, 0, comm, stream);
    } else {
      status = collective(call, comm, sizes_[group], stream);
    }
    finish(status, comm, "NCCL");
  }

  /// bytes: the full tensor. Parts of it are rounded up to whole elements.
  ncclResult_t collective(const CommCall& call, ncclComm_t comm, std::int64_t ranks,
                          cudaStream_t stream) {
    const auto all = static_cast<std::size_t>(call.bytes / 2);
    const auto count = static_cast<std::size_t>(ranks);
    const std::size_t part = (all + count - 1) / count;
    void *in = input_.get(), *out = output_.get();
    switch (call.comm) {
      case CommType::kAllReduce:
        return ncclAllReduce(in, out, all, ncclBfloat16, ncclSum, comm, stream);
      case CommType::kAllGather:
        return ncclAllGather(in, out, part, ncclBfloat16, comm, stream);
      case CommType::kReduceScatter:
        return ncclReduceScatter(in, out, part, ncclBfloat16, ncclSum, comm, stream);
      case CommType::kBroadcast:
        return ncclBroadcast(in, out, all, ncclBfloat16, call.root, comm, stream);
      case CommType::kReduce:
        return ncclReduce(in, out, all, ncclBfloat16, ncclSum, call.root, comm, stream);
      case CommType::kAllToAll:
        return all_to_all(in, out, part, static_cast<int>(ranks), comm, stream);
      case CommType::kBarrier:
        return ncclAllReduce(in, out, 1, ncclBfloat16, ncclSum, comm, stream);
      case CommType::kNone:
      case CommType::kSendRecv:
        break;
    }
    throw Error("no such collective");
  }

  ncclResult_t all_to_all(void* in, void* out, std::size_t part, int ranks, ncclComm_t comm,
                          cudaStream_t stream) {
    check_nccl(ncclGroupStart(), "ncclGroupStart");
    for (int peer = 0; peer < ranks; ++peer) {
      const std::size_t at = 2 * part * static_cast<std::size_t>(peer);
      check_sent(ncclSend(static_cast<char*>(in) + at, part, ncclBfloat16, peer, comm, stream));
      check_sent(ncclRecv(static_cast<char*>(out) + at, part, ncclBfloat16, peer, comm, stream));
    }
    return ncclGroupEnd();
  }
  static void check_sent(ncclResult_t status) {
    if (status != ncclInProgress) {
      check_nccl(status, "ncclSend");
    }
  }

  std::string gpu_;
  int rank_ = 0;
  std::unique_ptr<Timer> timer_;
  std::unique_ptr<HostFlag> stop_idling_;
  Buffer input_, output_;
  std::vector<std::unique_ptr<StreamState>> streams_;
  std::vector<std::unique_ptr<Marks>>
      marks_;              ///< of the batch's work, and of larger batches before
  std::size_t count_ = 0;  ///< of the batch
  Event begin_;            ///< of the batch
  ncclComm_t world_ = nullptr;
  std::vector<ncclComm_t> groups_;
  std::vector<std::int64_t> sizes_;
  std::atomic<bool> stopped_ = false;
};

}  // namespace

std::unique_ptr<Transport> open_nccl_transport(int number) {
  // Streams that share one of the GPU's queues wait for each other; there are 8 unless this is said
  // before CUDA begins.
  (void)::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
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
