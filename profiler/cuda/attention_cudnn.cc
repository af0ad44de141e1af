#include <cmath>
#include <cstddef>
#include <cudnn_frontend.h>
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

  Gemm::Plan plan(const Kernel& kernel, Timer& timer, std::int64_t* held) override {
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
    if (!kernel.backward) {
      auto options = fe::graph::SDPA_attributes().set_generate_stats(true).set_attn_scale(scale);
      if (kernel.causal) {
        // The last query sees all keys.
        options.set_causal_mask_bottom_right(true);
      }
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
      if (kernel.causal) {
        options.set_causal_mask_bottom_right(true);
      }
      const auto [dq, dk, dv] = graph.sdpa_backward(q, k, values, o, dy, stats, options);
      output(dq, kDq, h, s, d);
      output(dk, kDk, g, t, d);
      output(dv, kDv, g, t, v);
    }
    check_graph(graph.validate());
    check_graph(graph.build_operation_graph(handle_));
    check_graph(graph.create_execution_plans({fe::HeurMode_t::A}));
    check_graph(graph.check_support());
    check_graph(graph.build_plans(fe::BuildPlanPolicy_t::HEURISTICS_CHOICE));
    std::int64_t workspace = 0;
    check_graph(graph.get_workspace_size(workspace));
    built->workspace = Buffer(workspace, held);
    timer.stream().synchronise();
    std::string name;
    (void)graph.get_plan_name(name);
    return {[this, built](cudaStream_t on) {
              if (const cudnnStatus_t status = cudnnSetStream(handle_, on);
                  status != CUDNN_STATUS_SUCCESS) {
                throw Error(fmt::format("cudnnSetStream: {}", cudnnGetErrorString(status)));
              }
              check_graph(built->graph.execute(handle_, built->places, built->workspace.get()));
            },
            "cuDNN " + name, built};
  }

 private:
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace

std::unique_ptr<FusedAttention> make_fused_attention() {
  return std::make_unique<CudnnAttention>();
}
bool has_fused_attention() { return true; }

}  // namespace lockstep::cuda
