#include "topologies/ecmp_hash.h"

#include <string>

#include <gtest/gtest.h>

namespace lockstep::ecmp_hash_test {
namespace {

// Published vectors of MurmurHash3_x86_32.
TEST(Murmur3, AgreesWithPublishedVectors) {
  struct Case {
    std::string text;
    std::uint32_t seed, hash;
  };
  const Case cases[] = {
      {"", 0, 0},
      {"", 1, 0x514e28b7},
      {"", 0xffffffff, 0x81f16f39},
      {"\xff\xff\xff\xff", 0, 0x76293b50},
      {"\x21\x43\x65\x87", 0, 0xf55b516b},
      {"\x21\x43\x65\x87", 0x5082edee, 0x2362f9de},
      {"\x21\x43\x65", 0, 0x7e4a8634},
      {"\x21\x43", 0, 0xa0f7b07a},
      {"\x21", 0, 0x72661cf4},
      {std::string(4, '\0'), 0, 0x2362f9de},
      {"aaaa", 0x9747b28c, 0x5a97808a},
      {"aaa", 0x9747b28c, 0x283e0130},
      {"aa", 0x9747b28c, 0x5d211726},
      {"a", 0x9747b28c, 0x7fa09ea6},
      {"abcd", 0x9747b28c, 0xf0478627},
      {"Hello, world!", 0x9747b28c, 0x24884cba},
      {"The quick brown fox jumps over the lazy dog", 0x9747b28c, 0x2fa826cd},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(murmur3_x86_32(c.text, c.seed), c.hash) << c.text << " seed " << c.seed;
  }
}

// SMHasher's own verification: hash the keys {}, {0}, {0,1}, …, {0 … 254} with seeds 256, 255, …,
// 1, then hash the 256 results; the published value for MurmurHash3_x86_32 is 0xB0F57EE3.
TEST(Murmur3, AgreesWithSmhasherVerificationValue) {
  std::string key, hashes;
  for (std::uint32_t i = 0; i < 256; ++i) {
    const std::uint32_t hash = murmur3_x86_32(key, 256 - i);
    for (int shift = 0; shift < 32; shift += 8) {
      hashes += static_cast<char>(hash >> shift & 0xff);
    }
    key += static_cast<char>(i);
  }
  EXPECT_EQ(murmur3_x86_32(hashes, 0), 0xb0f57ee3U);
}

TEST(Murmur3, ThreeWordsAreTwelveLittleEndianBytes) {
  const std::string bytes("\x01\x00\x00\x0b\x01\x09\x00\x0b\x10\x27\x64\x00", 12);
  EXPECT_EQ(murmur3_x86_32(0x0b000001, 0x0b000901, 0x00642710, 17), murmur3_x86_32(bytes, 17));
  // ns-3 3.37: Hash32 of the same bytes (its seed is kHostHashSeed) printed b15301bc.
  EXPECT_EQ(murmur3_x86_32(bytes, kHostHashSeed), 0xb15301bcU);
}

TEST(NodeAddress, IsElevenHighLowOne) {
  EXPECT_EQ(node_address(NodeId(0)), 0x0b000001U);
  EXPECT_EQ(node_address(NodeId(9)), 0x0b000901U);
  EXPECT_EQ(node_address(NodeId(0x1234)), 0x0b123401U);
  EXPECT_EQ(node_address(NodeId(65536)), 0x0c000001U);  // the carry
}

}  // namespace
}  // namespace lockstep::ecmp_hash_test
