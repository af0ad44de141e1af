#include "profiler/sweep/nelder_mead.h"

#include <algorithm>
#include <cstddef>

namespace lockstep {

Minimum nelder_mead(const std::function<double(const std::vector<double>&)>& f,
                    const std::vector<double>& start, int rounds) {
  const std::size_t n = start.size();
  std::vector<Minimum> simplex{{start, f(start)}};
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> point = start;
    point[i] = point[i] * 1.3 + (point[i] == 0 ? 0.05 : 0.0);
    simplex.push_back({point, f(point)});
  }
  const auto mix = [n](const std::vector<double>& a, const std::vector<double>& b, double weight) {
    std::vector<double> point(n);
    for (std::size_t i = 0; i < n; ++i) {
      point[i] = a[i] + weight * (b[i] - a[i]);
    }
    return point;
  };
  for (int round = 0; round < rounds; ++round) {
    std::ranges::stable_sort(simplex, {}, &Minimum::value);
    std::vector<double> centre(n, 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t point = 0; point < n; ++point) {
        centre[i] += simplex[point].at[i] / static_cast<double>(n);
      }
    }
    Minimum& worst = simplex.back();
    const auto at = [&](double weight) {
      std::vector<double> point = mix(centre, worst.at, weight);
      const double value = f(point);
      return Minimum{std::move(point), value};
    };
    Minimum reflected = at(-1);
    if (reflected.value < simplex.front().value) {
      Minimum expanded = at(-2);
      worst = expanded.value < reflected.value ? std::move(expanded) : std::move(reflected);
    } else if (reflected.value < simplex[n - 1].value) {
      worst = std::move(reflected);
    } else if (Minimum contracted = at(0.5); contracted.value < worst.value) {
      worst = std::move(contracted);
    } else {
      for (std::size_t i = 1; i <= n; ++i) {
        simplex[i].at = mix(simplex[0].at, simplex[i].at, 0.5);
        simplex[i].value = f(simplex[i].at);
      }
    }
  }
  return *std::ranges::min_element(simplex, {}, &Minimum::value);
}

}  // namespace lockstep
