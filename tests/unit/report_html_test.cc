#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "report/html/fabric.h"
#include "report/html/figure.h"
#include "report/html/page.h"
#include "report/html/report_document.h"

namespace lockstep::report_html_test {
namespace {

Json link(const std::string& from, const std::string& to, double utilisation) {
  return {{"from", from}, {"to", to}, {"utilisation", utilisation}, {"carried_bytes", 10}};
}

// 64 GPUs on 2 leaves: the GPUs are folded into 16 groups of 4, the leaves stay. A group's edge
// holds its 4 links in both directions; the utilisation of GPU g's is g / 100 up and 0 down.
TEST(Fabric, FoldsTiersOfNeighbours) {
  Json links = Json::array();
  for (int gpu = 0; gpu < 64; ++gpu) {
    const std::string up = "gpu " + std::to_string(gpu),
                      leaf = "leaf " + std::to_string(64 + gpu / 32);
    links.push_back(link(up, leaf, gpu / 100.0));
    links.push_back(link(leaf, up, 0));
  }
  const Json fabric = fabric_of_links(links);
  ASSERT_EQ(fabric["tiers"].size(), 2U);
  EXPECT_EQ(fabric["tiers"][0]["kind"], "gpu");
  EXPECT_EQ(fabric["tiers"][0]["nodes"], 64);
  ASSERT_EQ(fabric["tiers"][0]["groups"].size(), 16U);
  EXPECT_EQ(fabric["tiers"][0]["groups"][1]["first"], 4);
  EXPECT_EQ(fabric["tiers"][0]["groups"][1]["last"], 7);
  ASSERT_EQ(fabric["edges"].size(), 16U);
  const Json& edge = fabric["edges"][1];  // GPUs 4 to 7: (4 + 5 + 6 + 7) / 100 over 8 directions
  EXPECT_EQ(edge["links"], 8);
  EXPECT_DOUBLE_EQ(edge["mean"].get<double>(), 0.22 / 8);
  EXPECT_DOUBLE_EQ(edge["max"].get<double>(), 0.07);
  EXPECT_EQ(edge["carried_bytes"], 80);
  ASSERT_EQ(fabric["kinds"].size(), 1U);
  EXPECT_EQ(fabric["kinds"][0]["utilisation"].size(), 11U);
  EXPECT_EQ(fabric["busiest"].size(), 20U);
  EXPECT_EQ(fabric["busiest"][0]["from"], "gpu 63");
}

// Of 0, 0.25, 0.5 and 1 the median is 0.375, and a tenth of the way up lies at 0.3 of the first
// gap.
TEST(Fabric, PercentilesLieBetweenValues) {
  Json links = Json::array();
  for (const double utilisation : {0.5, 0.0, 1.0, 0.25}) {
    links.push_back(link("gpu 0", "leaf 1", utilisation));
  }
  const Json found = fabric_of_links(links)["kinds"][0]["utilisation"];
  EXPECT_DOUBLE_EQ(found[0].get<double>(), 0);
  EXPECT_DOUBLE_EQ(found[1].get<double>(), 0.3 * 0.25);
  EXPECT_DOUBLE_EQ(found[5].get<double>(), 0.375);
  EXPECT_DOUBLE_EQ(found[10].get<double>(), 1);
}

TEST(Fabric, LeavesOutLinksWithoutNames) {
  const Json fabric = fabric_of_links(Json::array({Json{{"port", 3}, {"utilisation", 0.5}}}));
  EXPECT_TRUE(fabric["edges"].empty());
  EXPECT_EQ(fabric["busiest"].size(), 1U);
}

ReportDocument step(const std::string& name) {
  const Json phase = {{"compute_s", 1.0}};
  return {
      "result.json",
      {{"schema", "lockstep-simulate/1"},
       {"workload", name},
       {"gpus", 8},
       {"total_s", 2.0},
       {"compute_s", 1.5},
       {"exposed_s", 0.5},
       {"bubble_s", 0},
       {"skew_s", 0},
       {"exposed_by_group", {{"tp_s", 0.5}}},
       {"links", Json::array()},
       {"layers",
        {{{"name", name}, {"forward", phase}, {"input_grad", phase}, {"weight_grad", phase}}}}}};
}

TEST(ReportDocument, CutsLongNamesBetweenCharacters) {
  std::string name(199, 'x');
  name += "é and more";  // the two bytes of é are the 200th and 201st
  const Json json = for_page(step(name));
  EXPECT_EQ(json["workload"], std::string(199, 'x') + "…");
}

// Of 50,000 workers 20,000 are shown, the slowest among them wherever it stands.
TEST(ReportDocument, ThinsLongListsButKeepsTheSlowest) {
  Json workers = Json::array();
  for (int rank = 0; rank < 50'000; ++rank) {
    workers.push_back({{"rank", rank}, {"slowdown", rank == 12'344 ? 1.5 : 1.0}});
  }
  const Json json = for_page({"r.json", {{"schema", "lockstep-causes/1"}, {"workers", workers}}});
  ASSERT_EQ(json["workers"].size(), 20'000U);
  EXPECT_EQ(json["thinned"]["workers"], 50'000);
  int last = -1, slow = 0;
  for (const Json& worker : json["workers"]) {
    EXPECT_GT(worker["rank"], last);
    last = worker["rank"];
    slow += worker["slowdown"] == 1.5 ? 1 : 0;
  }
  EXPECT_EQ(slow, 1);
  EXPECT_GT(last, 49'990);
  EXPECT_FALSE(for_page(step("x")).contains("thinned"));
}

// No '<' of the data is in the page, so that no name can end the script element it stands in.
TEST(Page, NamesAreDataNotMarkup) {
  if (echarts_text().empty()) {
    GTEST_SKIP() << "built without ECharts";
  }
  const std::string page = html_page({step("</script><script>alert(1)</script>")});
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cscript>alert(1)"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST(Figure, IsTheSameTextEachTimeAndEscapesNames) {
  if (echarts_text().empty()) {
    GTEST_SKIP() << "built without ECharts";
  }
  const std::vector<ReportDocument> documents = {step("a<b>&\"c\"\x01")};
  const std::string svg = figure_svg(documents, "layers");
  EXPECT_EQ(svg, figure_svg(documents, "layers"));
  EXPECT_THAT(svg, ::testing::StartsWith("<svg "));
  EXPECT_NE(svg.find("a&lt;b&gt;&amp;"), std::string::npos);
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  EXPECT_EQ(svg.find('\x01'), std::string::npos);
}

/// A sweep over x = 1, 2, of which each has points of these times; and the line through the
/// medians.
std::string line_of_sweep(const std::vector<double>& times) {
  Json xs = Json::array(), ys = Json::array();
  for (const int x : {1, 2}) {
    for (const double time : times) {
      xs.push_back(x);
      ys.push_back(time);
    }
  }
  const std::string svg = figure_svg(
      {{"sweep.json",
        {{"schema", "lockstep-sweep/1"},
         {"axes", {"x"}},
         {"rows", xs.size()},
         {"points", xs.size()},
         {"endings", {{"done", xs.size()}}},
         {"columns", {{{"name", "x"}, {"cells", xs}}, {{"name", "total_s"}, {"cells", ys}}}}}}},
      "sweep");
  std::smatch found;
  return std::regex_search(svg, found, std::regex(R"x(<path d="([^"]*)"[^>]*stroke-width="1\.5")x"))
             ? found[1].str()
             : "";
}

// The median of 1 and 3 is 2, as of 1, 2 and 3, and is not 1.
TEST(Figure, ASweepsLineJoinsMedians) {
  if (echarts_text().empty()) {
    GTEST_SKIP() << "built without ECharts";
  }
  const std::string line = line_of_sweep({1, 3});
  EXPECT_NE(line, "");
  EXPECT_EQ(line, line_of_sweep({1, 2, 3}));
  EXPECT_NE(line, line_of_sweep({1, 1, 3}));
}

TEST(Figure, SaysWhichThereAre) {
  if (echarts_text().empty()) {
    GTEST_SKIP() << "built without ECharts";
  }
  try {
    figure_svg({step("x")}, "timeline");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no data for a figure 'timeline'"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("one of time, layers"));
  }
}

}  // namespace
}  // namespace lockstep::report_html_test
