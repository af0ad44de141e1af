#include "simulator/collectives/link_rings.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace lockstep {
namespace {

using Ring = std::vector<std::int32_t>;

/// Depth first: rings in ascending order, each from GPU 0 on, GPU by GPU.
class Search {
 public:
  Search(const LinkMatrix& links, std::int32_t n, bool by_others)
      : free_(links),
        n_(n),
        by_others_(by_others),
        most_(std::numeric_limits<std::int32_t>::max()) {
    for (std::int32_t gpu = 0; gpu < n; ++gpu) {
      most_ = std::min(most_, links.of(gpu, n));
    }
  }

  std::vector<Ring> run() {
    begin_ring();
    return std::move(best_);
  }

 private:
  static constexpr std::int64_t kMostSteps = 200'000;

  bool over() const { return std::ssize(best_) >= most_ || steps_ > kMostSteps; }
  std::int32_t& free(std::int32_t a, std::int32_t b) {
    return free_.count[static_cast<std::size_t>(a) * static_cast<std::size_t>(free_.gpus) +
                       static_cast<std::size_t>(b)];
  }

  void begin_ring() {
    if (rings_.size() > best_.size()) {
      best_ = rings_;
    }
    if (over()) {
      return;
    }
    const Ring outer = std::exchange(ring_, {0});
    const std::vector<char> seen =
        std::exchange(seen_, std::vector<char>(static_cast<std::size_t>(n_)));
    seen_[0] = 1;
    extend();
    ring_ = outer;
    seen_ = seen;
  }

  void extend() {
    if (++steps_; over()) {
      return;
    }
    const std::int32_t last = ring_.back();
    if (std::ssize(ring_) == n_) {
      if (rings_.empty() || ring_ >= rings_.back()) {
        hop(last, 0, [&] {
          rings_.push_back(ring_);
          begin_ring();
          rings_.pop_back();
        });
      }
      return;
    }
    for (std::int32_t next = 0; next < n_ && !over(); ++next) {
      if (seen_[static_cast<std::size_t>(next)] == 0) {
        hop(last, next, [&, next] {
          seen_[static_cast<std::size_t>(next)] = 1;
          ring_.push_back(next);
          extend();
          ring_.pop_back();
          seen_[static_cast<std::size_t>(next)] = 0;
        });
      }
    }
  }

  /// Goes on while a link from a to b is taken, for every way to take one.
  void hop(std::int32_t a, std::int32_t b, const std::function<void()>& go_on) {
    if (free(a, b) > 0) {
      --free(a, b);
      go_on();
      ++free(a, b);
    }
    for (std::int32_t way = 0; by_others_ && way < n_ && !over(); ++way) {
      if (way != a && way != b && free(a, way) > 0 && free(way, b) > 0) {
        --free(a, way);
        --free(way, b);
        go_on();
        ++free(a, way);
        ++free(way, b);
      }
    }
  }

  LinkMatrix free_;
  std::int32_t n_;
  bool by_others_;
  std::int32_t most_;  // rings that there can be
  std::int64_t steps_ = 0;
  Ring ring_;
  std::vector<char> seen_;  // GPUs of ring_
  std::vector<Ring> rings_, best_;
};

}  // namespace

std::int32_t LinkMatrix::of(std::int32_t gpu, std::int32_t n) const {
  std::int32_t all = 0;
  for (std::int32_t other = 0; other < n; ++other) {
    all += between(gpu, other);
  }
  return all;
}

std::int32_t LinkMatrix::most_of_a_gpu() const {
  std::int32_t most = 0;
  for (std::int32_t gpu = 0; gpu < gpus; ++gpu) {
    most = std::max(most, of(gpu, gpus));
  }
  return most;
}

void LinkMatrix::count_rings() {
  rings = {0, 0};
  for (std::int32_t n = 2; n <= gpus; ++n) {
    rings.push_back(static_cast<std::int32_t>(rings_over_links(*this, n).size()));
  }
}

std::vector<std::vector<std::int32_t>> rings_over_links(const LinkMatrix& links, std::int32_t n) {
  std::vector<Ring> rings = Search(links, n, false).run();
  return rings.empty() ? Search(links, n, true).run() : rings;
}

}  // namespace lockstep
