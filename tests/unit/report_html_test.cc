#include <algorithm>
#include <array>
#include <cmath>
#include <map>
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

/// Draws by ECharts, which ./setup fetches, and which a build may be without.
class Drawn : public ::testing::Test {
 protected:
  void SetUp() override {
    if (echarts_text().empty()) {
      GTEST_SKIP() << "built without ECharts";
    }
  }
};
using Page = Drawn;
using Figure = Drawn;

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

// What is added up, ranked or pointed into by numbers is whole.
TEST(ReportDocument, ThinsOnlyWhatIsDrawnAMarkARow) {
  Json ops = Json::array(), many = Json::array();
  for (int op = 0; op < 25'000; ++op) {
    ops.push_back({{"name", std::to_string(op)}});
    many.push_back({{"saves", op}});
  }
  const Json json = for_page({"r.json",
                              {{"schema", "lockstep-simulate/1"},
                               {"detail", {{"ops", ops}, {"operators", ops}}},
                               {"sensitivity", many}}});
  EXPECT_EQ(json["detail"]["ops"], ops);
  EXPECT_EQ(json["detail"]["operators"].size(), 25'000U);
  EXPECT_EQ(json["sensitivity"].size(), 25'000U);
  EXPECT_FALSE(json.contains("thinned"));
}

// Two tables, one of them too long: how many rows there are is of both.
TEST(ReportDocument, CountsTheRowsOfAllTables) {
  Json rows = Json::array();
  for (int row = 0; row < 30'000; ++row) {
    rows.push_back({{"size_bytes", row}});
  }
  const Json json = for_page({"r.json",
                              {{"schema", "lockstep-compare/1"},
                               {"tables", {{{"rows", rows}}, {{"rows", {rows[0], rows[1]}}}}}}});
  EXPECT_EQ(json["tables"][0]["rows"].size(), 20'000U);
  EXPECT_EQ(json["tables"][1]["rows"].size(), 2U);
  EXPECT_EQ(json["thinned"]["rows"], 30'002);
}

// 40,000 layers of two names in turn: of each 20,000, which compute for 1 s or communicate for 3 s
// of which 2 s are not hidden.
TEST(ReportDocument, ManyLayersBecomeOneOfEachName) {
  Json layers = Json::array();
  for (int i = 0; i < 20'000; ++i) {
    layers.push_back({{"name", "one"}, {"forward", {{"compute_s", 1.0}}}});
    layers.push_back({{"name", "other"}, {"weight_grad", {{"comm_s", 3.0}, {"exposed_s", 2.0}}}});
  }
  const Json json = for_page({"r.json", {{"schema", "lockstep-simulate/1"}, {"layers", layers}}});
  ASSERT_EQ(json["layers"].size(), 2U);
  EXPECT_EQ(json["layers"][0]["name"], "one");
  EXPECT_EQ(json["layers"][0]["count"], 20'000);
  EXPECT_EQ(json["layers"][0]["forward"]["compute_s"], 20'000.0);
  EXPECT_EQ(json["layers"][1]["weight_grad"]["comm_s"], 60'000.0);
  EXPECT_EQ(json["layers"][1]["weight_grad"]["exposed_s"], 40'000.0);
}

TEST(ReportDocument, IsOfThisVersion) {
  const auto problem = [](const std::string& schema) -> std::string {
    try {
      parse_report_document(R"({"schema": ")" + schema + "\"}", "r.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(problem("lockstep-simulate/1"), "");
  for (const char* other : {"lockstep-simulate/99", "lockstep-simulate", "lockstep-simulate/10"}) {
    EXPECT_THAT(problem(other), ::testing::HasSubstr("was made by another version"));
    EXPECT_THAT(problem(other), ::testing::HasSubstr("lockstep-simulate/1, which this one reads"));
  }
  EXPECT_THAT(problem("lockstep-doctor/1"), ::testing::HasSubstr("no schema that a report shows"));
}

// No '<' of the data is in the page, so that no name can end the script element it stands in.
TEST_F(Page, NamesAreDataNotMarkup) {
  const std::string page = html_page({step("</script><script>alert(1)</script>")});
  EXPECT_EQ(page.find("<script>alert"), std::string::npos);
  EXPECT_NE(page.find("\\u003c/script>\\u003cscript>alert(1)"), std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

TEST_F(Figure, IsTheSameTextEachTimeAndEscapesNames) {
  const std::vector<ReportDocument> documents = {step("a<b>&\"c\"\x01")};
  const std::string svg = figure_svg(documents, "layers");
  EXPECT_EQ(svg, figure_svg(documents, "layers"));
  EXPECT_THAT(svg, ::testing::StartsWith("<svg "));
  EXPECT_NE(svg.find("a&lt;b&gt;&amp;"), std::string::npos);
  EXPECT_EQ(svg.find("<b>"), std::string::npos);
  EXPECT_EQ(svg.find('\x01'), std::string::npos);
}

/// Of two jobs a stage each, which forward and backward are of one microbatch; memory is known of
/// the first one's.
ReportDocument two_jobs(const std::string& stream) {
  ReportDocument document = step("x");
  document.json["jobs"] = {{{"name", "a"}}, {{"name", "b"}}};
  document.json["memory"] = {{"gpu", "H100"},
                             {"capacity_bytes", 80e9},
                             {"stages",
                              {{{"weights_bytes", 1e9},
                                {"gradients_bytes", 1e9},
                                {"optimizer_bytes", 1e9},
                                {"activations_bytes", 1e9},
                                {"working_bytes", 1e9},
                                {"total_bytes", 5e9}}}}};
  document.json["detail"] = {{"tick_s", 1.0},
                             {"classes",
                              {{{"job", 0}, {"stage", 0}, {"rank", 0}, {"ranks", 1}},
                               {{"job", 1}, {"stage", 0}, {"rank", 1}, {"ranks", 1}},
                               {{"job", 1}, {"stage", 1}, {"rank", 2}, {"ranks", 1}}}},
                             {"tracks",
                              {{{"class", 0}, {"name", stream}},
                               {{"class", 1}, {"name", "b"}},
                               {{"class", 2}, {"name", "c"}}}},
                             {"ops",
                              {{{"name", "f"}, {"type", "forward-compute"}},
                               {{"name", "g"}, {"type", "backward-compute"}}}},
                             {"events",
                              {{"track", {0, 0, 1, 2}},
                               {"op", {0, 1, 0, 0}},
                               {"begin", {0, 1, 0, 0}},
                               {"length", {1, 1, 1, 1}},
                               {"microbatch", {0, 0, 0, 0}},
                               {"chunk", {-1, -1, -1, -1}}}}};
  return document;
}

// Also where another job has more stages than it.
TEST_F(Figure, MemoryOverTimeIsTheFirstJobs) {
  const std::string svg = figure_svg({two_jobs("compute")}, "memory-over-time");
  EXPECT_NE(svg.find("job 1, stage 0"), std::string::npos);
  EXPECT_EQ(svg.find("job 2"), std::string::npos);
}

TEST_F(Figure, HoldsNothingThatXmlForbids) {
  const std::string svg = figure_svg({two_jobs("q\x07r\xEF\xBF\xBFs")}, "timeline");
  EXPECT_NE(svg.find("q r s"), std::string::npos);
  EXPECT_TRUE(std::ranges::none_of(svg, [](char c) {
    return static_cast<unsigned char>(c) < 32 && c != '\n' && c != '\t' && c != '\r';
  }));
}

TEST_F(Figure, PartsOfAStepHaveColoursOfTheirOwn) {
  ReportDocument document = step("x");
  const std::vector<std::string> groups = {"tp", "cp", "ep", "pp", "dp", "dp_ep", "world"};
  for (const std::string& group : groups) {
    document.json["exposed_by_group"][group + "_s"] = 1.0;
  }
  document.json.update({{"total_s", 12.0},
                        {"compute_s", 1.0},
                        {"bubble_s", 1.0},
                        {"skew_s", 1.0},
                        {"other_jobs_s", 1.0}});
  const std::string svg = figure_svg({document}, "time");
  std::map<std::string, int> bars;  // by colour; what is left of the 12 s is idle
  const std::regex bar(R"x(<path d="[^"]*Z" fill="(#[0-9a-f]{6})")x");
  for (auto found = std::sregex_iterator(svg.begin(), svg.end(), bar);
       found != std::sregex_iterator(); ++found) {
    ++bars[(*found)[1].str()];
  }
  bars.erase("#ffffff");
  EXPECT_EQ(bars.size(), 12U) << ::testing::PrintToString(bars);
}

/// How far the edges of the p90 error's band lie from the line y = x, in pixels, upwards: of the
/// upper one and of the lower one, at the right end. The axes go from 10 us to 1 ms.
std::array<double, 2> edges_of_band(double p90_error) {
  const Json rows = {{{"measured_s", 1e-5}, {"predicted_s", 1e-5}, {"size_bytes", 1}},
                     {{"measured_s", 5e-4}, {"predicted_s", 5e-4}, {"size_bytes", 2}}};
  const std::string svg = figure_svg({{"c.json",
                                       {{"schema", "lockstep-compare/1"},
                                        {"error", {{"p90_error", p90_error}}},
                                        {"tables", {{{"op", "x"}, {"gpus", 2}, {"rows", rows}}}}}}},
                                     "accuracy");
  const std::string number = "([-0-9.]+)", other = "[-0-9.]+";
  std::smatch band, line;
  const bool found =
      std::regex_search(svg, band,
                        std::regex("<polygon points=\"" + other + " " + other + " " + other + " " +
                                   number + " " + other + " " + number + " ")) &&
      std::regex_search(svg, line,
                        std::regex("<path d=\"M" + other + " " + other + "L" + other + " " +
                                   number + "\"[^>]*stroke-dasharray"));
  const double end = found ? std::stod(line[1]) : 0;
  return found ? std::array{end - std::stod(band[1]), end - std::stod(band[2])}
               : std::array{0.0, 0.0};
}

// An error is a share of what was measured: predictions off by half lie between 0.5 and 1.5 times
// it, by 1 or more down to nothing. Two decades are as high as the picture.
TEST_F(Figure, BandsOfErrorsReachBelowAsFarAsAbove) {
  const auto [above, below] = edges_of_band(0.5);
  EXPECT_GT(above, 30);
  EXPECT_NEAR(below / above, std::log(0.5) / std::log(1.5), 0.01);
  const auto [far_above, bottom] = edges_of_band(2);
  const double decade = far_above / std::log10(3);
  EXPECT_NEAR(bottom, -2 * decade, 1);
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
TEST_F(Figure, ASweepsLineJoinsMedians) {
  const std::string line = line_of_sweep({1, 3});
  EXPECT_NE(line, "");
  EXPECT_EQ(line, line_of_sweep({1, 2, 3}));
  EXPECT_NE(line, line_of_sweep({1, 1, 3}));
}

TEST_F(Figure, SaysWhichThereAre) {
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
