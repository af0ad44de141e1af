#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cudnn_frontend.h>
#include <limits>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "profiler/cuda/attention.h"
#include "profiler/cuda/launch.h"

namespace lockstep::cuda {
namespace {

namespace fe = cudnn_frontend;
using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

constexpr std::int64_t kMostPlans = 8;
constexpr int kQuickRuns = 3;

enum Uid : std::int64_t { kQ = 1, kK, kV, kO, kStats, kDo, kDq, kDk, kDv };

void check_graph(fe::error_t error) {
  if (error.is_bad()) {
    throw Error(fmt::format("cuDNN: {}", error.get_message()));
  }
}

/// A graph with its tensors in device memory.
struct Graph {
  fe::graph::Graph graph;
  std::vector<Buffer> buffers;
  std::unordered_map<std::int64_t, void*> places;
  Buffer workspace;
};

class CudnnAttention : public FusedAttention {
 public:
  CudnnAttention() {
    const cudnnStatus_t status = cudnnCreate(&handle_);
    if (status != CUDNN_STATUS_SUCCESS) {
      throw Error(fmt::format("cuDNN does not start: {}", cudnnGetErrorString(status)),
                  ExitCode::kMissingPart);
    }
  }
  ~CudnnAttention() override { (void)cudnnDestroy(handle_); }
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  std::string version() const override {
    const std::size_t v = cudnnGetVersion();
    return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
  }

  Gemm::Plan plan(const Kernel& kernel, bool search, Timer& timer, std::int64_t* held) override {
    const std::int64_t b = kernel.size("batch"), h = kernel.size("heads"),
                       g = kernel.size("kv_heads"), s = kernel.size("queries"),
                       t = kernel.size("keys"), d = kernel.size("head_dim"),
                       v = kernel.size("value_dim");
    if (kernel.precision == Precision::kFp32) {
      throw Error("fused attention takes 16-bit numbers only");
    }
    const bool half = kernel.precision == Precision::kFp16;
    const cudaStream_t stream = timer.stream().get();
    auto built = std::make_shared<Graph>();
    fe::graph::Graph& graph = built->graph;
    graph.set_io_data_type(half ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    const auto place = [&](std::int64_t uid, std::int64_t elements, std::int64_t bytes_each) {
      Buffer& buffer = built->buffers.emplace_back(elements * bytes_each, held);
      if (bytes_each == 2) {
        fill_random(half ? Element::kFp16 : Element::kBf16, buffer.get(), elements,
                    static_cast<std::uint64_t>(uid), 1, stream);
      } else {
        fill_random(Element::kFp32, buffer.get(), elements, static_cast<std::uint64_t>(uid), 1,
                    stream);
      }
      built->places[uid] = buffer.get();
    };
    // Dimensions are batch, heads, sequence, features; strides say how they lie.
    const auto input = [&](std::int64_t uid, std::int64_t heads, std::int64_t length,
                           std::int64_t width) {
      place(uid, b * heads * length * width, 2);
      return graph.tensor(fe::graph::Tensor_attributes()
                              .set_uid(uid)
                              .set_dim({b, heads, length, width})
                              .set_stride({length * heads * width, width, heads * width, 1}));
    };
    const auto output = [&](const Tensor& tensor, std::int64_t uid, std::int64_t heads,
                            std::int64_t length, std::int64_t width) {
      place(uid, b * heads * length * width, 2);
      tensor->set_output(true)
          .set_uid(uid)
          .set_dim({b, heads, length, width})
          .set_stride({length * heads * width, width, heads * width, 1});
    };
    const float scale = 1 / std::sqrt(static_cast<float>(d));
    const Tensor q = input(kQ, h, s, d), k = input(kK, g, t, d), values = input(kV, g, t, v);
    // The last query sees all keys; where there are as many of both the first one's sight says it.
    const auto mask = [&](auto& options) {
      if (kernel.causal && s == t) {
        options.set_causal_mask(true);
      } else if (kernel.causal) {
        options.set_causal_mask_bottom_right(true);
      }
    };
    if (!kernel.backward) {
      auto options = fe::graph::SDPA_attributes().set_generate_stats(true).set_attn_scale(scale);
      mask(options);
      const auto [o, stats] = graph.sdpa(q, k, values, options);
      output(o, kO, h, s, v);
      place(kStats, b * h * s, 4);
      stats->set_output(true).set_uid(kStats).set_data_type(fe::DataType_t::FLOAT);
    } else {
      const Tensor o = input(kO, h, s, v), dy = input(kDo, h, s, v);
      place(kStats, b * h * s, 4);
      const Tensor stats = graph.tensor(fe::graph::Tensor_attributes()
                                            .set_uid(kStats)
                                            .set_dim({b, h, s, 1})
                                            .set_stride({h * s, s, 1, 1})
                                            .set_data_type(fe::DataType_t::FLOAT));
      auto options = fe::graph::SDPA_backward_attributes().set_attn_scale(scale);
      mask(options);
      const auto [dq, dk, dv] = graph.sdpa_backward(q, k, values, o, dy, stats, options);
      output(dq, kDq, h, s, d);
      output(dk, kDk, g, t, d);
      output(dv, kDv, g, t, v);
    }
    check_graph(graph.validate());
    check_graph(graph.build_operation_graph(handle_));
    check_graph(graph.create_execution_plans({fe::HeurMode_t::A}));
    check_graph(graph.check_support());
    const std::int64_t chosen = fastest(*built, timer, held, search);
    std::string name;
    (void)graph.get_plan_name_at_index(chosen, name);
    std::vector<void*> tensors;
    for (std::int64_t uid = kQ; uid <= kDv; ++uid) {
      const auto found = built->places.find(uid);
      tensors.push_back(found == built->places.end() ? nullptr : found->second);
    }
    return {
        [this, built, chosen](cudaStream_t on) { run(*built, chosen, on); },
        fmt::format("cuDNN {}, plan {} of {}", name, chosen + 1, graph.get_execution_plan_count()),
        built, tensors};
  }

 private:
  void run(Graph& built, std::int64_t plan, cudaStream_t on) {
    if (const cudnnStatus_t status = cudnnSetStream(handle_, on); status != CUDNN_STATUS_SUCCESS) {
      throw Error(fmt::format("cudnnSetStream: {}", cudnnGetErrorString(status)));
    }
    check_graph(
        built.graph.execute_plan_at_index(handle_, built.places, built.workspace.get(), plan));
  }

  /// The plan that runs fastest, built and with its workspace; without a search the first that can
  /// be built.
  std::int64_t fastest(Graph& built, Timer& timer, std::int64_t* held, bool search) {
    const std::int64_t count = std::min(built.graph.get_execution_plan_count(), kMostPlans);
    std::int64_t best = -1, workspace = 0;
    double least = std::numeric_limits<double>::infinity();
    std::string why = "no execution plan";
    for (std::int64_t i = 0; i < count && (search || best < 0); ++i) {
      std::int64_t own = 0;
      try {
        check_graph(built.graph.build_plan_at_index(i));
        check_graph(built.graph.get_workspace_size_plan_at_index(i, own));
        if (own > built.workspace.size() || built.workspace.get() == nullptr) {
          built.workspace = Buffer(own, nullptr);
        }
        const double seconds =
            timer.quick([&](cudaStream_t on) { run(built, i, on); }, search ? kQuickRuns : 1);
        if (seconds < least) {
          least = seconds;
          best = i;
          workspace = own;
        }
      } catch (const Error& error) {
        why = error.message();  // a plan that the library proposes and refuses
      }
    }
    if (best < 0) {
      throw Error(why);
    }
    if (held != nullptr) {
      *held += workspace;
    }
    return best;
  }

  cudnnHandle_t handle_ = nullptr;
};

}  // namespace

std::unique_ptr<FusedAttention> make_fused_attention() {
  return std::make_unique<CudnnAttention>();
}
bool has_fused_attention() { return true; }

}  // namespace lockstep::cuda
