#include "profiler/cuda/fused_kernels.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "profiler/cuda/launch.h"
#include "profiler/kernel_cost.h"

namespace lockstep::cuda {
namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 28;

Element element_of(Precision precision) {
  return precision == Precision::kFp32   ? Element::kFp32
         : precision == Precision::kFp16 ? Element::kFp16
                                         : Element::kBf16;
}

void must_divide(std::int64_t size, std::int64_t by, const char* what) {
  if (size % by != 0) {
    throw Error(fmt::format("{} must be a multiple of {}", what, by));
  }
}

/// Makes the tensors of one kernel and keeps them.
class Tensors {
 public:
  Tensors(Element element, Timer& timer, std::int64_t* held)
      : element_(element), stream_(timer.stream().get()), held_(held) {}

  void* random(std::int64_t elements) { return random_of(element_, elements); }
  float* random_fp32(std::int64_t elements) {
    return static_cast<float*>(random_of(Element::kFp32, elements));
  }
  void* empty(std::int64_t elements) { return add(elements * bytes_of(element_)); }
  float* empty_fp32(std::int64_t elements) { return static_cast<float*>(add(elements * 4)); }
  float* zero_fp32(std::int64_t elements) {
    float* memory = empty_fp32(elements);
    check(cudaMemsetAsync(memory, 0, static_cast<std::size_t>(elements) * 4, stream_), "clear");
    return memory;
  }
  std::uint8_t* bytes(std::int64_t count) {
    auto* memory = static_cast<std::uint8_t*>(add(count));
    check(cudaMemsetAsync(memory, 1, static_cast<std::size_t>(count), stream_), "clear");
    return memory;
  }
  std::int32_t* indices(std::int64_t count, std::int64_t bound) {
    auto* memory = static_cast<std::int32_t*>(add(count * 4));
    fill_indices(memory, count, static_cast<std::int32_t>(bound), 7, stream_);
    return memory;
  }
  std::int32_t* indices(const std::vector<std::int32_t>& values) {
    const auto count = static_cast<std::int64_t>(values.size()) * 4;
    auto* memory = static_cast<std::int32_t*>(add(count));
    check(cudaMemcpyAsync(memory, values.data(), static_cast<std::size_t>(count),
                          cudaMemcpyHostToDevice, stream_),
          "copy");
    check(cudaStreamSynchronize(stream_), "copy");
    return memory;
  }
  void* pinned(std::int64_t bytes) {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, static_cast<std::size_t>(bytes)), "cudaMallocHost");
    host_.emplace_back(memory, [](void* at) { (void)cudaFreeHost(at); });
    return memory;
  }
  cudaStream_t stream() const { return stream_; }

 private:
  static std::int64_t bytes_of(Element element) { return element == Element::kFp32 ? 4 : 2; }
  void* add(std::int64_t bytes) { return buffers_.emplace_back(bytes, held_).get(); }
  void* random_of(Element element, std::int64_t elements) {
    void* memory = add(elements * bytes_of(element));
    fill_random(element, memory, elements, buffers_.size(), 1, stream_);
    return memory;
  }

  Element element_;
  cudaStream_t stream_;
  std::int64_t* held_;
  std::vector<Buffer> buffers_;
  std::vector<std::shared_ptr<void>> host_;
};

/// Calls f(elements of a piece) for pieces that add up to `elements`.
template <class F>
void in_pieces(std::int64_t elements, const F& f) {
  for (std::int64_t done = 0; done < elements; done += kPiece) {
    f(std::min(kPiece, elements - done));
  }
}

class Planner {
 public:
  Planner(const Kernel& kernel, Timer& timer, std::int64_t* held)
      : kernel_(kernel),
        element_(element_of(kernel.precision)),
        tensors_(std::make_shared<Tensors>(element_, timer, held)) {}

  Launch plan() {
    switch (kernel_.kind) {
      case KernelKind::kNorm:
        return norm();
      case KernelKind::kSoftmax:
        return softmax_kernel();
      case KernelKind::kEmbedding:
        return embedding_kernel();
      case KernelKind::kRotary:
        return rotary_kernel();
      case KernelKind::kActivation:
        return activation();
      case KernelKind::kResidual:
        return residual();
      case KernelKind::kDropout:
        return dropout_kernel();
      case KernelKind::kRouter:
        return router_kernel();
      case KernelKind::kPermute:
      case KernelKind::kUnpermute:
        return permutation();
      case KernelKind::kCrossEntropy:
        return loss();
      case KernelKind::kBiasGradient:
        return bias();
      default:
        return vector();
    }
  }
  std::shared_ptr<Tensors> tensors() const { return tensors_; }

 private:
  std::int64_t size(std::string_view name) const { return kernel_.size(name); }

  Launch norm() {
    NormArguments a;
    a.rows = size("rows");
    a.width = size("width");
    a.rms = kernel_.variant == "rms";
    must_divide(a.width, 8, "a norm's width");
    if (a.width > kWidestNorm) {
      throw Error(fmt::format("norms are at most {} wide", kWidestNorm));
    }
    a.x = tensors_->random(a.rows * a.width);
    a.gamma = tensors_->random_fp32(a.width);
    a.beta = tensors_->random_fp32(a.width);
    a.mean = tensors_->zero_fp32(a.rows);
    a.reciprocal = tensors_->random_fp32(a.rows);
    if (!kernel_.backward) {
      a.y = tensors_->empty(a.rows * a.width);
      return [a, e = element_](cudaStream_t on) { norm_forward(e, a, on); };
    }
    a.dy = tensors_->random(a.rows * a.width);
    a.dx = tensors_->empty(a.rows * a.width);
    a.dgamma = tensors_->empty_fp32(a.width);
    a.dbeta = tensors_->empty_fp32(a.width);
    a.partial = tensors_->empty_fp32(norm_partials(a.rows, a.width));
    return [a, e = element_](cudaStream_t on) { norm_backward(e, a, on); };
  }

  Launch softmax_kernel() {
    SoftmaxArguments a;
    a.batch = size("batch");
    a.queries = size("queries");
    a.keys = size("keys");
    a.causal = kernel_.causal;
    a.scale = 0.1F;
    must_divide(a.keys, 8, "the number of keys");
    if (a.causal && a.queries > a.keys) {
      throw Error("a causal mask needs as many keys as queries");
    }
    const std::int64_t scores = a.batch * a.queries * a.keys;
    a.probabilities = tensors_->random(scores);
    if (kernel_.backward) {
      a.gradient = tensors_->random(scores);
      a.scores_gradient = tensors_->empty(scores);
    } else {
      a.scores = tensors_->random(scores);
    }
    return [a, e = element_, back = kernel_.backward](cudaStream_t on) { softmax(e, back, a, on); };
  }

  Launch embedding_kernel() {
    const std::int64_t rows = size("rows"), width = size("width"), words = size("vocabulary");
    must_divide(width, 8, "an embedding's width");
    const std::int32_t* ids = tensors_->indices(rows, words);
    const Element e = element_;
    if (kernel_.backward) {
      float* table = tensors_->zero_fp32(words * width);
      const void* gradient = tensors_->random(rows * width);
      return [=](cudaStream_t on) { embedding_backward(e, ids, gradient, table, rows, width, on); };
    }
    const void* table = tensors_->random(words * width);
    void* out = tensors_->empty(rows * width);
    return [=](cudaStream_t on) { embedding(e, ids, table, out, rows, width, on); };
  }

  Launch rotary_kernel() {
    RotaryArguments a;
    a.rows = size("rows");
    a.heads = size("heads");
    a.head_dim = size("head_dim");
    must_divide(a.head_dim, 8, "a rotated head's size");
    float* table = tensors_->empty_fp32(a.rows * a.head_dim);
    rotary_table(table, a.rows, a.head_dim, 10000, tensors_->stream());
    a.table = table;
    a.x = tensors_->random(a.rows * a.heads * a.head_dim);
    a.y = tensors_->empty(a.rows * a.heads * a.head_dim);
    return [a, e = element_, back = kernel_.backward](cudaStream_t on) { rotary(e, back, a, on); };
  }

  Launch activation() {
    ActivationArguments a;
    a.rows = size("rows");
    a.width = size("width");
    const bool gated = kernel_.variant == "swiglu";
    if (gated) {
      must_divide(a.width, 8, "a gated activation's width");
    }
    const std::int64_t in = a.rows * a.width * (gated ? 2 : 1), out = a.rows * a.width;
    a.x = tensors_->random(in);
    if (kernel_.backward) {
      a.dy = tensors_->random(out);
      a.dx = tensors_->empty(in);
    } else {
      a.y = tensors_->empty(out);
    }
    return [a, gated, e = element_, back = kernel_.backward](cudaStream_t on) {
      (gated ? swiglu : gelu)(e, back, a, on);
    };
  }

  Launch residual() {
    const std::int64_t elements = size("rows") * size("width");
    const void *a = tensors_->random(elements), *b = tensors_->random(elements);
    void* sum = tensors_->empty(elements);
    return [=, e = element_](cudaStream_t on) { add(e, a, b, sum, elements, on); };
  }

  Launch dropout_kernel() {
    DropoutArguments a;
    a.elements = size("elements");
    a.x = tensors_->random(a.elements);
    a.y = tensors_->empty(a.elements);
    a.mask = tensors_->bytes(a.elements);
    return [a, e = element_, back = kernel_.backward](cudaStream_t on) { dropout(e, back, a, on); };
  }

  Launch router_kernel() {
    RouterArguments a;
    a.rows = size("rows");
    a.count = size("experts");
    a.topk = size("topk");
    if (a.count > kMostExperts || a.topk > std::min(kMostTopk, a.count)) {
      throw Error(fmt::format("routers take at most {} experts and {} of them a token",
                              kMostExperts, kMostTopk));
    }
    a.probabilities = tensors_->random_fp32(a.rows * a.count);
    a.experts = tensors_->indices(a.rows * a.topk, a.count);
    if (kernel_.backward) {
      a.gradient = tensors_->random_fp32(a.rows * a.topk);
      a.logits_gradient = tensors_->empty_fp32(a.rows * a.count);
    } else {
      a.logits = tensors_->random_fp32(a.rows * a.count);
    }
    return [a, back = kernel_.backward](cudaStream_t on) { router(back, a, on); };
  }

  /// Copy c is of token c mod rows, and lies where a fixed shuffle puts it.
  Launch permutation() {
    const std::int64_t rows = size("rows"), copies = size("copies"), width = size("width");
    must_divide(width, 8, "a token's width");
    const std::int64_t each = (copies + rows - 1) / rows;
    std::vector<std::int32_t> place(static_cast<std::size_t>(copies));
    for (std::size_t i = 0; i < place.size(); ++i) {
      place[i] = static_cast<std::int32_t>(i);
    }
    for (std::size_t i = place.size(); i > 1; --i) {
      std::swap(place[i - 1], place[kernels::random_bits(11, i) % i]);
    }
    std::vector<std::int32_t> source(place.size());
    std::vector<std::int32_t> places(static_cast<std::size_t>(rows * each), -1);
    for (std::int64_t c = 0; c < copies; ++c) {
      const std::int64_t token = c % rows;
      source[static_cast<std::size_t>(place[static_cast<std::size_t>(c)])] =
          static_cast<std::int32_t>(token);
      places[static_cast<std::size_t>(token * each + c / rows)] =
          place[static_cast<std::size_t>(c)];
    }
    const bool weighted = kernel_.kind == KernelKind::kUnpermute;
    const Element e = element_;
    // To the experts' order rows are gathered, back they are added up; a gradient goes the other
    // way.
    if (weighted == kernel_.backward) {
      const void* from = tensors_->random(rows * width);
      void* to = tensors_->empty(copies * width);
      const std::int32_t* index = tensors_->indices(source);
      const float* weights = weighted ? tensors_->random_fp32(copies) : nullptr;
      return [=](cudaStream_t on) { gather_rows(e, from, index, weights, to, copies, width, on); };
    }
    const void* from = tensors_->random(copies * width);
    void* to = tensors_->empty(rows * width);
    const std::int32_t* index = tensors_->indices(places);
    const float* weights = weighted ? tensors_->random_fp32(rows * each) : nullptr;
    return [=](cudaStream_t on) { gather_sum(e, from, index, weights, to, rows, width, each, on); };
  }

  Launch loss() {
    CrossEntropyArguments a;
    a.rows = size("rows");
    a.vocabulary = size("vocabulary");
    must_divide(a.vocabulary, 8, "a rank's share of the vocabulary");
    a.targets = tensors_->indices(a.rows, a.vocabulary);
    a.probabilities = tensors_->random_fp32(a.rows * a.vocabulary);
    if (kernel_.backward) {
      a.gradient = tensors_->empty(a.rows * a.vocabulary);
    } else {
      a.logits = tensors_->random(a.rows * a.vocabulary);
      a.losses = tensors_->empty_fp32(a.rows);
    }
    return [a, e = element_, back = kernel_.backward](cudaStream_t on) {
      cross_entropy(e, back, a, on);
    };
  }

  Launch bias() {
    const std::int64_t rows = size("rows"), width = size("width");
    must_divide(width, 8, "a bias");
    const void* x = tensors_->random(rows * width);
    float* sums = tensors_->empty_fp32(width);
    return [=, e = element_](cudaStream_t on) { column_sums(e, x, sums, rows, width, on); };
  }

  Launch vector() {
    const Element e = element_;
    if (kernel_.kind == KernelKind::kCopy || kernel_.kind == KernelKind::kStream) {
      return bytes();
    }
    const std::int64_t elements = size("elements"), piece = std::min(elements, kPiece);
    switch (kernel_.kind) {
      case KernelKind::kAccumulate: {
        const void* gradient = tensors_->random(piece);
        float* sum = tensors_->zero_fp32(piece);
        return [=](cudaStream_t on) {
          in_pieces(elements, [&](std::int64_t n) { accumulate(e, gradient, sum, n, on); });
        };
      }
      case KernelKind::kAdam: {
        AdamArguments a;
        a.gradient = tensors_->random_fp32(piece);
        a.parameter = tensors_->random_fp32(piece);
        a.first = tensors_->zero_fp32(piece);
        a.second = tensors_->zero_fp32(piece);
        a.constants.correction1 = 1 - a.constants.beta1;
        a.constants.correction2 = 1 - a.constants.beta2;
        return [=](cudaStream_t on) {
          in_pieces(elements, [&](std::int64_t n) {
            AdamArguments part = a;
            part.elements = n;
            adam(e, part, on);
          });
        };
      }
      case KernelKind::kScale: {
        float* x = tensors_->random_fp32(piece);
        return [=](cudaStream_t on) {
          in_pieces(elements, [&](std::int64_t n) { scale(x, 0.999F, n, on); });
        };
      }
      case KernelKind::kCast: {
        const void* x = tensors_->random(piece);
        std::uint8_t* y = tensors_->bytes(piece);
        return [=](cudaStream_t on) {
          in_pieces(elements, [&](std::int64_t n) { cast_fp8(e, x, y, 100, n, on); });
        };
      }
      default:
        break;
    }
    throw Error("no kernel for " + to_text(kernel_));
  }

  Launch bytes() {
    const std::int64_t bytes = size("bytes");
    const bool copy = kernel_.kind == KernelKind::kCopy;
    if (copy && kernel_.variant != "device") {
      void* device = tensors_->bytes(bytes);
      void* host = tensors_->pinned(bytes);
      const bool to_device = kernel_.variant == "host-to-device";
      return [=](cudaStream_t on) {
        check(cudaMemcpyAsync(to_device ? device : host, to_device ? host : device,
                              static_cast<std::size_t>(bytes),
                              to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost, on),
              "cudaMemcpyAsync");
      };
    }
    if (copy) {
      const void* from = tensors_->bytes(bytes);
      void* to = tensors_->bytes(bytes);
      return [=](cudaStream_t on) {
        check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                              on),
              "cudaMemcpyAsync");
      };
    }
    constexpr std::int64_t kPieceBytes = 4 * kPiece;
    if (kernel_.variant == "write") {
      const std::int64_t piece = std::min(bytes, kPieceBytes);
      void* to = tensors_->bytes(piece);
      return [=](cudaStream_t on) {
        for (std::int64_t done = 0; done < bytes; done += kPieceBytes) {
          check(cudaMemsetAsync(to, 0,
                                static_cast<std::size_t>(std::min(kPieceBytes, bytes - done)), on),
                "cudaMemsetAsync");
        }
      };
    }
    // Whole 16-byte words: at most 31 bytes more than asked for.
    const bool read = kernel_.variant == "read";
    const std::int64_t each = (read ? bytes : (bytes + 1) / 2) + 15;
    const std::int64_t piece = std::min(each, kPieceBytes);
    const void* from = tensors_->bytes(piece + 16);
    void* to = read ? nullptr : tensors_->bytes(piece + 16);
    float* sink = tensors_->zero_fp32(1);
    return [=](cudaStream_t on) {
      for (std::int64_t done = 0; done < each; done += kPieceBytes) {
        const std::int64_t n = std::min(kPieceBytes, each - done);
        if (read) {
          stream_read(from, sink, n, on);
        } else {
          stream_copy(from, to, n, 0, on);
        }
      }
    };
  }

  const Kernel& kernel_;
  Element element_;
  std::shared_ptr<Tensors> tensors_;
};

}  // namespace

Gemm::Plan plan_fused_kernel(const Kernel& kernel, Timer& timer, std::int64_t* held) {
  Planner planner(kernel, timer, held);
  Launch launch = planner.plan();
  timer.stream().synchronise();
  return {std::move(launch), {}, planner.tensors()};
}

}  // namespace lockstep::cuda
