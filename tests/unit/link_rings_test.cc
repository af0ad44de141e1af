#include "simulator/collectives/link_rings.h"

#include <algorithm>
#include <random>
#include <set>

#include <gtest/gtest.h>

namespace lockstep::link_rings_test {
namespace {

LinkMatrix alike(std::int32_t gpus, std::int32_t links) {
  LinkMatrix matrix{gpus, {}, {}};
  for (std::int32_t i = 0; i < gpus * gpus; ++i) {
    matrix.count.push_back(i / gpus == i % gpus ? 0 : links);
  }
  return matrix;
}

/// A DGX-1V's: nvidia-smi topo -m.
LinkMatrix cube_mesh() {
  return {8, {0, 1, 1, 2, 2, 0, 0, 0,  //
              1, 0, 2, 1, 0, 2, 0, 0,  //
              1, 2, 0, 2, 0, 0, 1, 0,  //
              2, 1, 2, 0, 0, 0, 0, 1,  //
              2, 0, 0, 0, 0, 1, 1, 2,  //
              0, 2, 0, 0, 1, 0, 2, 1,  //
              0, 0, 1, 0, 1, 2, 0, 2,  //
              0, 0, 0, 1, 2, 1, 2, 0}};
}

/// Whether every ring passes each of the n GPUs once and no link's direction has two.
void expect_disjoint(const LinkMatrix& links, std::int32_t n) {
  std::vector<std::int32_t> used(links.count.size());
  for (const auto& ring : rings_over_links(links, n)) {
    EXPECT_EQ(std::set(ring.begin(), ring.end()).size(), static_cast<std::size_t>(n));
    ASSERT_EQ(std::ssize(ring), n);
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const std::int32_t to = ring[(i + 1) % ring.size()];
      ++used[static_cast<std::size_t>(ring[i] * links.gpus + to)];
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    EXPECT_LE(used[i], links.count[i]);
  }
}

// Of the first 2 to 8 GPUs. GPU 4 alone of its half has two links, both to GPU 0, so that five GPUs
// join by way of it; GPUs 4 and 5 have one link, of which each direction is in one ring. Published
// all-reduces over such GPUs are at as many times 22 GB/s (vTrain: 22.6, 45, 85, 37, 46, 87, 134).
TEST(RingsOverLinks, OfACubeMesh) {
  const std::int32_t expected[] = {1, 2, 4, 2, 2, 4, 6};
  for (std::int32_t n = 2; n <= 8; ++n) {
    EXPECT_EQ(std::ssize(rings_over_links(cube_mesh(), n)), expected[n - 2]) << n;
    if (n != 5) {
      expect_disjoint(cube_mesh(), n);
    }
  }
}

// Where all are joined alike every link of a GPU is in a ring.
TEST(RingsOverLinks, UseAllLinksOfAMesh) {
  EXPECT_EQ(rings_over_links(alike(4, 6), 4).size(), 18U);
  EXPECT_EQ(rings_over_links(alike(8, 2), 8).size(), 14U);
  expect_disjoint(alike(4, 6), 4);
}

TEST(RingsOverLinks, NoneWhereAGpuHasNoLink) {
  EXPECT_TRUE(rings_over_links(alike(3, 0), 3).empty());
  LinkMatrix two_pairs = alike(4, 0);
  two_pairs.count[1] = two_pairs.count[4] = two_pairs.count[11] = two_pairs.count[14] = 2;
  EXPECT_TRUE(rings_over_links(two_pairs, 4).empty());
}

// Two links each, in a row without an end: one ring each way and link. In a row with two ends rings
// go to and fro over every link: 0 to 2 by way of 1, 3, 1 by way of 2.
TEST(RingsOverLinks, OfARow) {
  LinkMatrix row = alike(4, 0);
  const auto join = [&](std::int32_t a, std::int32_t b) {
    row.count[static_cast<std::size_t>(4 * a + b)] =
        row.count[static_cast<std::size_t>(4 * b + a)] = 2;
  };
  join(0, 1);
  join(1, 2);
  join(2, 3);
  EXPECT_EQ(rings_over_links(row, 4).size(), 2U);
  EXPECT_EQ(rings_over_links(row, 3).size(), 2U);  // 0 to 1 to 2 to (1) to 0
  join(3, 0);
  EXPECT_EQ(rings_over_links(row, 4).size(), 4U);
}

TEST(RingsOverLinks, AreDisjointOnRandomMatrices) {
  std::mt19937 random(7);
  for (std::int32_t round = 0; round < 60; ++round) {
    const auto gpus = static_cast<std::int32_t>(2 + random() % 9);
    LinkMatrix links = alike(gpus, 0);
    for (std::int32_t a = 0; a < gpus; ++a) {
      for (std::int32_t b = 0; b < a; ++b) {
        links.count[static_cast<std::size_t>(a * gpus + b)] =
            links.count[static_cast<std::size_t>(b * gpus + a)] =
                1 + static_cast<std::int32_t>(random() % 2);
      }
    }
    expect_disjoint(links, gpus);
    EXPECT_FALSE(rings_over_links(links, gpus).empty());
  }
}

}  // namespace
}  // namespace lockstep::link_rings_test
