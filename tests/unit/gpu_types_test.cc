// The kernels in every element type, those that move rows, and dropout, sums and casts, against
// double precision on the CPU.
#include <cuda_fp8.h>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "profiler/cuda/launch.h"
#include "profiler/kernels/reference.h"
#include "tests/support/gpu_tensors.h"

namespace lockstep::gpu_types_test {
namespace {

using testing::ElementOf;
using testing::expect_near;
using testing::Floats;
using testing::GpuTensor;
using testing::numbers;

template <class T>
class GpuTypes : public testing::GpuTest {};
using Types = ::testing::Types<float, __half, __nv_bfloat16>;
TYPED_TEST_SUITE(GpuTypes, Types);

/// What a result may be off by: half a unit in the last place, and a little for the arithmetic.
template <class T>
constexpr double kTolerance = 2e-5;
template <>
constexpr double kTolerance<__half> = 6e-4;
template <>
constexpr double kTolerance<__nv_bfloat16> = 5e-3;

/// Numbers on the GPU of another type than floats.
template <class T>
class GpuIntegers {
 public:
  explicit GpuIntegers(const std::vector<T>& values) : size_(values.size()) {
    EXPECT_EQ(cudaMalloc(&memory_, size_ * sizeof(T)), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(memory_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  ~GpuIntegers() { (void)cudaFree(memory_); }
  GpuIntegers(const GpuIntegers&) = delete;
  GpuIntegers& operator=(const GpuIntegers&) = delete;
  T* get() const { return static_cast<T*>(memory_); }
  std::vector<T> read() const {
    std::vector<T> host(size_);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    EXPECT_EQ(cudaMemcpy(host.data(), memory_, size_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return host;
  }

 private:
  void* memory_ = nullptr;
  std::size_t size_;
};

TYPED_TEST(GpuTypes, Norms) {
  constexpr auto kElement = ElementOf<TypeParam>::kElement;
  // Of a warp a row and of a block a row, in one pack a thread and in several, and not whole packs.
  for (const std::size_t width : {8U, 264U, 2048U, 2056U, 12288U, 16384U}) {
    for (const bool rms : {true, false}) {
      const std::size_t rows = 21;
      const auto x = numbers(rows * width, 1), gamma = numbers(width, 2), beta = numbers(width, 3),
                 dy = numbers(rows * width, 4);
      const GpuTensor<TypeParam> gx(x), gdy(dy), y(x.size()), dx(x.size());
      const Floats gg(gamma), gb(beta), mean(rows), reciprocal(rows), dgamma(width), dbeta(width),
          partial(static_cast<std::size_t>(cuda::norm_partials(static_cast<std::int64_t>(rows),
                                                               static_cast<std::int64_t>(width))));
      cuda::NormArguments a;
      a.x = gx.get();
      a.gamma = gg.get();
      a.beta = gb.get();
      a.y = y.get();
      a.mean = mean.get();
      a.reciprocal = reciprocal.get();
      a.dy = gdy.get();
      a.dx = dx.get();
      a.dgamma = dgamma.get();
      a.dbeta = dbeta.get();
      a.partial = partial.get();
      a.rows = static_cast<std::int64_t>(rows);
      a.width = static_cast<std::int64_t>(width);
      a.rms = rms;
      cuda::norm_forward(kElement, a, nullptr);
      cuda::norm_backward(kElement, a, nullptr);
      expect_near(y.read(), reference::norm_forward(x, gamma, beta, rms, 1e-5),
                  kTolerance<TypeParam>);
      const auto gradient = reference::norm_backward(x, gamma, dy, rms, 1e-5);
      expect_near(dx.read(), gradient.x, kTolerance<TypeParam>);
      expect_near(dgamma.read(), gradient.gamma, 5e-5);
      if (!rms) {
        expect_near(dbeta.read(), gradient.beta, 5e-5);
      }
    }
  }
}

TYPED_TEST(GpuTypes, NormsOfRowsFarFromZero) {
  // The mean is taken off before distances are squared: nothing cancels out.
  const std::size_t rows = 4, width = 1024;
  auto x = numbers(rows * width, 1);
  for (double& value : x) {
    value = 100 + std::round(value * 4) / 2;  // what bf16 holds
  }
  const std::vector<double> gamma(width, 1.0), beta(width, 0.0);
  const GpuTensor<TypeParam> gx(x), y(x.size());
  const Floats gg(gamma), gb(beta), mean(rows), reciprocal(rows);
  cuda::NormArguments a;
  a.x = gx.get();
  a.gamma = gg.get();
  a.beta = gb.get();
  a.y = y.get();
  a.mean = mean.get();
  a.reciprocal = reciprocal.get();
  a.rows = rows;
  a.width = width;
  a.rms = false;
  cuda::norm_forward(ElementOf<TypeParam>::kElement, a, nullptr);
  expect_near(y.read(), reference::norm_forward(x, gamma, beta, false, 1e-5),
              kTolerance<TypeParam>);
}

TYPED_TEST(GpuTypes, Activations) {
  constexpr auto kElement = ElementOf<TypeParam>::kElement;
  const std::size_t rows = 7, width = 136;
  const auto x = numbers(rows * 2 * width, 1), dy = numbers(rows * width, 2);
  const GpuTensor<TypeParam> gx(x), gdy(dy), y(dy.size()), dx(x.size());
  cuda::ActivationArguments a;
  a.x = gx.get();
  a.dy = gdy.get();
  a.y = y.get();
  a.dx = dx.get();
  a.rows = static_cast<std::int64_t>(rows);
  a.width = static_cast<std::int64_t>(width);
  cuda::swiglu(kElement, false, a, nullptr);
  cuda::swiglu(kElement, true, a, nullptr);
  std::vector<double> out(dy.size()), back(x.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t i = 0; i < width; ++i) {
      const std::size_t gate = row * 2 * width + i, up = gate + width, at = row * width + i;
      out[at] = reference::swiglu(x[gate], x[up]);
      constexpr double kStep = 1e-6;  // central differences of the reference
      back[gate] =
          dy[at] *
          (reference::swiglu(x[gate] + kStep, x[up]) - reference::swiglu(x[gate] - kStep, x[up])) /
          (2 * kStep);
      back[up] = dy[at] * reference::swiglu(x[gate], 1);
    }
  }
  expect_near(y.read(), out, kTolerance<TypeParam>);
  expect_near(dx.read(), back, kTolerance<TypeParam>);
  cuda::gelu(kElement, false, a, nullptr);
  cuda::gelu(kElement, true, a, nullptr);
  std::vector<double> gelus, gradients;
  for (std::size_t i = 0; i < dy.size(); ++i) {
    gelus.push_back(reference::gelu(x[i]));
    gradients.push_back(dy[i] * reference::gelu_derivative(x[i]));
  }
  expect_near(y.read(), gelus, kTolerance<TypeParam>);
  std::vector<double> got = dx.read();
  got.resize(gradients.size());
  expect_near(got, gradients, kTolerance<TypeParam>);
}

TYPED_TEST(GpuTypes, SoftmaxOverShortAndLongRows) {
  constexpr auto kElement = ElementOf<TypeParam>::kElement;
  // Rows of a warp (two widths, both full and not) and of a block; the first of 72 sees one key.
  for (const std::size_t keys : {72UL, 512UL, 520UL, 2048UL, 4104UL}) {
    for (const bool causal : {false, true}) {
      const std::size_t batch = 2, queries = keys == 72 ? 72 : 5;
      const auto scores = numbers(batch * queries * keys, 5), dp = numbers(scores.size(), 6);
      const GpuTensor<TypeParam> s(scores), p(scores.size()), g(dp), ds(scores.size());
      cuda::SoftmaxArguments a;
      a.scores = s.get();
      a.probabilities = p.get();
      a.gradient = g.get();
      a.scores_gradient = ds.get();
      a.batch = static_cast<std::int64_t>(batch);
      a.queries = static_cast<std::int64_t>(queries);
      a.keys = static_cast<std::int64_t>(keys);
      a.causal = causal;
      a.scale = 4;
      cuda::softmax(kElement, false, a, nullptr);
      cuda::softmax(kElement, true, a, nullptr);
      const auto wanted = reference::softmax(scores, queries, keys, causal, 4);
      const auto got = p.read();
      // The longest rows' shares are far below 1.
      const double tolerance = keys > 4000 ? 1e-5 : kTolerance<TypeParam>;
      expect_near(got, wanted, tolerance);
      expect_near(ds.read(), reference::softmax_gradient(got, dp, keys, 4), 4 * tolerance);
    }
  }
}

TYPED_TEST(GpuTypes, RowsAreGatheredAndAddedUp) {
  constexpr auto kElement = ElementOf<TypeParam>::kElement;
  const std::size_t rows = 13, copies = 26, width = 72;
  const auto table = numbers(rows * width, 1), weight = numbers(copies, 2);
  std::vector<std::int32_t> source, places(copies);
  for (std::size_t i = 0; i < copies; ++i) {
    source.push_back(static_cast<std::int32_t>(i * 5 % rows));
    places[i] = static_cast<std::int32_t>((i * 7) % copies);
  }
  places[3] = -1;  // a copy that was dropped
  const GpuTensor<TypeParam> from(table), to(copies * width), back(rows * width);
  const Floats weights(weight);
  const GpuIntegers<std::int32_t> sources(source), all_places(places);
  cuda::gather_rows(kElement, from.get(), sources.get(), weights.get(), to.get(), copies, width,
                    nullptr);
  std::vector<double> gathered(copies * width), summed(rows * width);
  for (std::size_t i = 0; i < copies; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      gathered[i * width + j] = weight[i] * table[static_cast<std::size_t>(source[i]) * width + j];
    }
  }
  const auto got = to.read();
  expect_near(got, gathered, kTolerance<TypeParam>);
  cuda::gather_sum(kElement, to.get(), all_places.get(), weights.get(), back.get(), rows, width, 2,
                   nullptr);
  for (std::size_t i = 0; i < copies; ++i) {
    for (std::size_t j = 0; j < width && places[i] >= 0; ++j) {
      summed[i / 2 * width + j] += weight[i] * got[static_cast<std::size_t>(places[i]) * width + j];
    }
  }
  expect_near(back.read(), summed, kTolerance<TypeParam>);
}

TYPED_TEST(GpuTypes, EmbeddingsAndColumnSums) {
  constexpr auto kElement = ElementOf<TypeParam>::kElement;
  const std::size_t rows = 300, width = 520, vocabulary = 17;
  const auto table = numbers(vocabulary * width, 1), dy = numbers(rows * width, 2);
  std::vector<std::int32_t> id;
  for (std::size_t row = 0; row < rows; ++row) {
    id.push_back(static_cast<std::int32_t>(row * row % vocabulary));
  }
  const GpuTensor<TypeParam> words(table), out(rows * width), gradient(dy);
  const GpuIntegers<std::int32_t> ids(id);
  const Floats sums(width), summed(std::vector<double>(vocabulary * width, 0.0));
  cuda::embedding(kElement, ids.get(), words.get(), out.get(), rows, width, nullptr);
  cuda::embedding_backward(kElement, ids.get(), gradient.get(), summed.get(), rows, width, nullptr);
  cuda::column_sums(kElement, gradient.get(), sums.get(), rows, width, nullptr);
  std::vector<double> forward(rows * width), backward(vocabulary * width), columns(width);
  for (std::size_t row = 0; row < rows; ++row) {
    const auto word = static_cast<std::size_t>(id[row]);
    for (std::size_t i = 0; i < width; ++i) {
      forward[row * width + i] = table[word * width + i];
      backward[word * width + i] += dy[row * width + i];
      columns[i] += dy[row * width + i];
    }
  }
  expect_near(out.read(), forward, 1e-9);
  expect_near(summed.read(), backward, 1e-5);
  expect_near(sums.read(), columns, 1e-5);
}

TYPED_TEST(GpuTypes, DropoutKeepsItsShareAndItsMask) {
  constexpr auto kElement = ElementOf<TypeParam>::kElement;
  const std::size_t n = 100003;
  const GpuTensor<TypeParam> x(std::vector<double>(n, 0.5)), y(n), dx(n);
  const GpuIntegers<std::uint8_t> mask(std::vector<std::uint8_t>(n, 7));
  cuda::DropoutArguments a;
  a.x = x.get();
  a.y = y.get();
  a.mask = mask.get();
  a.elements = n;
  a.drop = 0.25F;
  cuda::dropout(kElement, false, a, nullptr);
  const auto got = y.read();
  a.y = dx.get();
  cuda::dropout(kElement, true, a, nullptr);
  const auto back = dx.read();
  const auto kept = mask.read();
  double count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    ASSERT_LE(kept[i], 1) << i;
    ASSERT_NEAR(got[i], kept[i] * 0.5 / 0.75, 3e-3) << i;
    ASSERT_EQ(back[i], got[i]) << i;
    count += kept[i];
  }
  EXPECT_NEAR(count / n, 0.75, 0.01);  // seven deviations
}

TYPED_TEST(GpuTypes, SumsAndSteps) {
  constexpr auto kElement = ElementOf<TypeParam>::kElement;
  const std::size_t n = 1003;  // not whole packs
  const auto x = numbers(n, 1), y = numbers(n, 2);
  const GpuTensor<TypeParam> a(x), b(y), sum(n), copy(n);
  const Floats total(y), scaled(y);
  cuda::add(kElement, a.get(), b.get(), sum.get(), n, nullptr);
  cuda::accumulate(kElement, a.get(), total.get(), n, nullptr);
  cuda::scale(scaled.get(), 0.5F, n, nullptr);
  std::vector<double> wanted(n), half(n);
  for (std::size_t i = 0; i < n; ++i) {
    wanted[i] = x[i] + y[i];
    half[i] = 0.5 * y[i];
  }
  expect_near(sum.read(), wanted, kTolerance<TypeParam>);
  expect_near(total.read(), wanted, 1e-6);
  expect_near(scaled.read(), half, 1e-7);
  const Floats p(x), g(y), m(std::vector<double>(n, 0.0)), v(std::vector<double>(n, 0.0));
  cuda::AdamArguments adam;
  adam.gradient = g.get();
  adam.parameter = p.get();
  adam.first = m.get();
  adam.second = v.get();
  adam.copy = copy.get();
  adam.elements = n;
  adam.constants.correction1 = 1 - adam.constants.beta1;
  adam.constants.correction2 = 1 - adam.constants.beta2;
  cuda::adam(kElement, adam, nullptr);
  expect_near(copy.read(), p.read(), kTolerance<TypeParam>);
}

TYPED_TEST(GpuTypes, CastsToFp8) {
  constexpr auto kElement = ElementOf<TypeParam>::kElement;
  const std::size_t n = 1003;
  const auto x = numbers(n, 1);
  const GpuTensor<TypeParam> from(x);
  const GpuIntegers<std::uint8_t> to(std::vector<std::uint8_t>(n, 0x7F));
  cuda::cast_fp8(kElement, from.get(), to.get(), 100, n, nullptr);
  const auto got = to.read();
  for (std::size_t i = 0; i < n; ++i) {
    __nv_fp8_e4m3 value;
    value.__x = got[i];
    const double wanted = 100 * x[i];
    // Three bits of fraction; the least normal number is 2^-6.
    ASSERT_NEAR(static_cast<double>(static_cast<float>(value)), wanted,
                std::max(std::abs(wanted) / 16, 0x1p-10))
        << i;
  }
}

TYPED_TEST(GpuTypes, LossOverALongVocabulary) {
  constexpr auto kElement = ElementOf<TypeParam>::kElement;
  const std::size_t rows = 2, vocabulary = 50304;
  const auto logits = numbers(rows * vocabulary, 10);
  const std::vector<std::int32_t> targets{50303, 1};
  const GpuTensor<TypeParam> in(logits), gradient(logits.size());
  const Floats p(logits.size()), losses(rows);
  const GpuIntegers<std::int32_t> places(targets);
  cuda::CrossEntropyArguments a;
  a.logits = in.get();
  a.targets = places.get();
  a.probabilities = p.get();
  a.losses = losses.get();
  a.gradient = gradient.get();
  a.rows = rows;
  a.vocabulary = vocabulary;
  a.scale = 1e4F;  // the other words' gradients, 0.2 then, are far above the tolerance
  cuda::cross_entropy(kElement, false, a, nullptr);
  cuda::cross_entropy(kElement, true, a, nullptr);
  expect_near(losses.read(), reference::cross_entropy(logits, targets, vocabulary), 1e-5);
  expect_near(gradient.read(), reference::cross_entropy_gradient(logits, targets, vocabulary, 1e4),
              kTolerance<TypeParam>);
}

using Gpu = testing::GpuTest;

TEST_F(Gpu, RouterGradientIsOfTheChosen) {
  const std::size_t rows = 9, experts = 256, topk = 8;
  const auto logits = numbers(rows * experts, 9), gradient = numbers(rows * topk, 3);
  const Floats in(logits), p(logits.size()), g(gradient), out(logits.size());
  const GpuIntegers<std::int32_t> chosen(std::vector<std::int32_t>(rows * topk, -1));
  cuda::RouterArguments a;
  a.logits = in.get();
  a.probabilities = p.get();
  a.experts = chosen.get();
  a.gradient = g.get();
  a.logits_gradient = out.get();
  a.rows = rows;
  a.count = experts;
  a.topk = topk;
  cuda::router(false, a, nullptr);
  cuda::router(true, a, nullptr);
  const auto wanted = reference::route(logits, experts, topk);
  EXPECT_EQ(chosen.read(), wanted.experts);
  std::vector<double> dp(logits.size(), 0.0);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    dp[i / topk * experts + static_cast<std::size_t>(wanted.experts[i])] = gradient[i];
  }
  expect_near(out.read(), reference::softmax_gradient(wanted.probabilities, dp, experts, 1), 1e-6);
}

TEST_F(Gpu, CopiesByAnyNumberOfBlocks) {
  const std::size_t n = 40000;
  const auto x = numbers(n, 1);
  for (const int blocks : {0, 1, 7}) {
    const Floats from(x), to(n);
    cuda::stream_copy(from.get(), to.get(), static_cast<std::int64_t>(n) * 4, blocks, nullptr, 3);
    expect_near(to.read(), x, 1e-9);
  }
  const Floats from(x), sink(std::vector<double>{0});
  cuda::stream_read(from.get(), sink.get(), static_cast<std::int64_t>(n) * 4, nullptr);
  EXPECT_NEAR(sink.read()[0], std::accumulate(x.begin(), x.end(), 0.0), 0.05);
}

}  // namespace
}  // namespace lockstep::gpu_types_test
