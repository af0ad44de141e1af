#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "topologies/builder.h"
#include "topologies/draw.h"
#include "topologies/fold.h"
#include "topologies/svg.h"
#include "topologies/topology_file.h"

namespace lockstep::topology_drawing_test {
namespace {

using ::testing::HasSubstr;

/// Tags are closed in order and '&' starts only the entities we write.
void expect_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  std::size_t at = xml.find("?>") + 2;
  while ((at = xml.find_first_of("<&", at)) != std::string::npos) {
    if (xml[at] == '&') {
      const std::string entity = xml.substr(at, xml.find(';', at) - at + 1);
      EXPECT_THAT(entity, ::testing::AnyOf("&amp;", "&lt;", "&gt;", "&quot;", "&apos;"));
      ++at;
      continue;
    }
    const std::size_t end = xml.find('>', at);
    ASSERT_NE(end, std::string::npos);
    const std::string tag = xml.substr(at + 1, end - at - 1);
    ASSERT_FALSE(tag.empty());
    const std::string name =
        tag.substr(tag[0] == '/', tag.find_first_of(" /", 1) - (tag[0] == '/'));
    if (tag[0] == '/') {
      ASSERT_FALSE(open.empty());
      EXPECT_EQ(open.back(), tag.substr(1));
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
    at = end + 1;
  }
  EXPECT_TRUE(open.empty());
}

TEST(DrawTopology, EveryTemplateIsWellFormedAndSmall) {
  for (const TopologyBuilder* builder : topology_builders()) {
    SCOPED_TRACE(builder->name);
    const std::string svg = draw(topology_from(builder->name));
    expect_well_formed(svg);
    EXPECT_LT(svg.size(), 100'000U);
  }
}

TEST(DrawTopology, EqualPartsAreFolded) {
  const std::string svg = draw(topology_from("Spectrum-X"));
  EXPECT_THAT(svg, HasSubstr("segment × 8, each 8 switches of tier 1, 512 GPUs"));
  EXPECT_THAT(svg, HasSubstr("server × 64: 8 × H100"));
  EXPECT_THAT(svg, HasSubstr("53 more"));  // 64 spines, 11 of them drawn
  EXPECT_THAT(svg, HasSubstr("4096 × 400 Gbps"));
  // Sixteen times the GPUs make no larger picture.
  EXPECT_LT(svg.size(), 2 * draw(topology_from("Spectrum-X:g=256")).size());
}

TEST(DrawTopology, TwoServersAreBothDrawn) {
  const std::string svg = draw(topology_from("Spectrum-X:g=16"));
  EXPECT_THAT(svg, HasSubstr("server 0: 8 × H100"));
  EXPECT_THAT(svg, HasSubstr("server 1: 8 × H100"));
  EXPECT_THAT(svg, HasSubstr("<title>GPU 15, server 1</title>"));
}

TEST(DrawTopology, NamesAreEscaped) {
  Topology t = topology_from("full-mesh:g=2");
  t.name = "a<b & \"c\"\x01\xFF";
  t.gpu_types = {"<script>"};
  const std::string svg = draw(t);
  expect_well_formed(svg);
  EXPECT_THAT(svg, HasSubstr("a&lt;b &amp; &quot;c&quot;\xEF\xBF\xBD\xEF\xBF\xBD"));
  EXPECT_THAT(svg, HasSubstr("&lt;script&gt;"));
}

TEST(XmlEscaped, KeepsUtf8AndReplacesWhatIsNone) {
  EXPECT_EQ(xml_escaped("×–😀"), "×–😀");
  EXPECT_EQ(xml_escaped("\xC3"), "\xEF\xBF\xBD");
  EXPECT_EQ(xml_escaped("\xED\xA0\x80").find('\xED'), std::string::npos);  // a surrogate
  EXPECT_EQ(xml_escaped(std::string_view("\0", 1)), "\xEF\xBF\xBD");
}

TEST(FoldTopology, PartsWithinParts) {
  // 5 segments of 512 GPUs and half a segment: two kinds of segments.
  const TopologyPart root = fold(topology_from("Spectrum-X:g=2816"));
  EXPECT_EQ(root.tier, 2);
  EXPECT_EQ(root.switches.size(), 64U);
  ASSERT_EQ(root.children.size(), 6U);
  EXPECT_EQ(root.children[0].shape, root.children[4].shape);
  EXPECT_NE(root.children[0].shape, root.children[5].shape);
  EXPECT_EQ(root.children[0].switches.size(), 8U);
  EXPECT_EQ(root.children[0].children.size(), 64U);
  EXPECT_EQ(root.children[5].gpu_count, 256);
  EXPECT_EQ(root.children[0].children[0].gpus.size(), 8U);
}

TEST(FoldTopology, ATorusFallsIntoItsRouters) {
  const TopologyPart root = fold(topology_from("torus"));
  EXPECT_TRUE(root.switches.empty());
  ASSERT_EQ(root.children.size(), 64U);
  EXPECT_EQ(root.children[0].shape, root.children[63].shape);
}

}  // namespace
}  // namespace lockstep::topology_drawing_test
