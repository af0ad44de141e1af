#include <cmath>
#include <filesystem>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/serve/api.h"
#include "app/serve/http_server.h"
#include "app/serve/live_model.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/rng.h"
#include "tests/support/sanitized.h"

namespace lockstep::serve_api_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A request to run something, and what reached the backend.
struct Fixture {
  ApiSettings settings;
  std::vector<IsolatedTask> ran;
  IsolatedResult result;
  bool busy = false, live_client_has_gone = false;

  Fixture() {
    settings.time_limit = Time::us(5'000'000);
    result.out = R"({"schema": "s"})";
  }
  ApiReply ask(ApiRequest request) {
    const ApiBackend backend{
        [&](const IsolatedTask& task,
            const std::function<bool()>& /*gone*/) -> std::optional<IsolatedResult> {
          ran.push_back(task);
          if (std::filesystem::exists(task.folder + "/in.txt")) {
            write_file(task.folder + "/out.txt", "written");
            std::filesystem::copy(task.folder + "/in.txt", task.folder + "/copy");
          }
          return busy ? std::nullopt : std::optional(result);
        },
        [this](const std::string& message, bool report, const std::function<bool()>& gone) {
          live_client_has_gone = gone && gone();
          return std::optional(fmt::format("{{\"echo\": {}, \"whole\": {}}}", message, report));
        }};
    return answer_api(request, settings, backend);
  }
  ApiReply run(const std::string& body) {
    return ask({.method = "POST",
                .target = "/api/v1/run",
                .host = "127.0.0.1:8080",
                .origin = {},
                .authorization = {},
                .content_type = "application/json; charset=utf-8",
                .body = body});
  }
};

TEST(ServeApi, RunsACommandInAFolderOfItsOwn) {
  Fixture api;
  const ApiReply reply = api.run(
      R"({"arguments": ["simulate", "--workload", "in.txt"], "files": {"in.txt": "x"}, "want_files": ["out.txt", "none"], "time_limit_s": 2})");
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json json = Json::parse(reply.body);
  EXPECT_EQ(json["output"]["schema"], "s");
  EXPECT_EQ(json["files"], Json::parse(R"({"out.txt": "written"})"));
  ASSERT_EQ(api.ran.size(), 1U);
  EXPECT_THAT(api.ran[0].arguments, ElementsAre("simulate", "--workload", "in.txt"));
  EXPECT_EQ(api.ran[0].time_limit, Time::us(2'000'000));
  EXPECT_FALSE(std::filesystem::exists(api.ran[0].folder));  // gone again
  EXPECT_TRUE(api.ran[0].confined);
  api.run(R"({"arguments": ["plan"], "time_limit_s": 1000})");
  EXPECT_EQ(api.ran[1].time_limit, Time::us(5'000'000));  // never above the server's
  api.run(R"({"arguments": ["plan"], "time_limit_s": 1e-300})");
  EXPECT_EQ(api.ran[2].time_limit, Time::ps(1));  // 0 would be none
  api.settings.time_limit = Time();
  api.run(R"({"arguments": ["plan"], "time_limit_s": 1})");
  EXPECT_EQ(api.ran[3].time_limit, Time::us(1'000'000));
}

// What is no UTF-8 comes and goes as it is: "\x1f\x8b" begins what gzip packs, here "H4sA" with 0.
TEST(ServeApi, KeepsBytesThatAreNoText) {
  Fixture api;
  const std::string body = R"({"arguments": ["plan"], "files": {"in.txt": {"base64": "H4sA"}}, )"
                           R"("want_files": ["copy", "out.txt"]})";
  const ApiReply reply = api.run(body);
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(Json::parse(reply.body)["files"],
            Json::parse(R"({"copy": {"base64": "H4sA"}, "out.txt": "written"})"));
  // A text is given back with its byte order mark.
  EXPECT_EQ(Json::parse(api.run("{\"arguments\": [\"plan\"], \"files\": {\"in.txt\": "
                                "\"\xEF\xBB\xBFx\"}, \"want_files\": [\"copy\"]}")
                            .body)["files"]["copy"],
            "\xEF\xBB\xBFx");
  api.result.out = "\x1f\x8b";
  EXPECT_EQ(Json::parse(api.run(R"({"arguments": ["plan"]})").body)["output"],
            Json::parse(R"({"base64": "H4s="})"));
  for (const char* wrong : {R"({"base64": "H4s"})", R"({"base64": 1})", R"({"base64": "", "x": 1})",
                            "{}", "[]", "1", "null"}) {
    const ApiReply refused =
        api.run(fmt::format(R"({{"arguments": ["plan"], "files": {{"a": {}}}}})", wrong));
    EXPECT_EQ(refused.status, 400) << wrong;
    EXPECT_THAT(refused.body, HasSubstr("base64"));
  }
}

TEST(ServeApi, RefusesWhatItDoesNotServe) {
  Fixture api;
  const auto status = [&](const char* body) { return api.run(body).status; };
  EXPECT_EQ(status("{"), 400);
  EXPECT_EQ(status("[]"), 400);
  EXPECT_EQ(status("{}"), 400);
  EXPECT_EQ(status(R"({"arguments": "simulate"})"), 400);
  EXPECT_EQ(status(R"({"arguments": ["serve", "--port", "1"]})"), 400);
  EXPECT_EQ(status(R"({"arguments": ["sweep", "g"]})"), 400);
  EXPECT_EQ(status(R"({"arguments": ["whatif", "--follow=x"]})"), 400);
  EXPECT_EQ(status(R"({"arguments": ["plan"], "surplus": 1})"), 400);
  EXPECT_EQ(status(R"({"arguments": ["plan"], "files": {"../x": ""}})"), 400);
  EXPECT_EQ(status(R"({"arguments": ["plan"], "files": {"/x": ""}})"), 400);
  EXPECT_EQ(status(R"({"arguments": ["plan"], "time_limit_s": -1})"), 400);
  for (const char* name : {".", "a/", "a//b", "a/./b", "", "a\\u0000"}) {
    EXPECT_EQ(
        api.run(fmt::format(R"({{"arguments": ["plan"], "files": {{"{}": ""}}}})", name)).status,
        400)
        << name;
  }
  EXPECT_EQ(status(R"({"arguments": ["plan"], "files": {"a": "", "a/b": ""}})"), 400);
  EXPECT_EQ(api.run(R"({"arguments": ["plan"], "files": {")" + std::string(256, 'a') + R"(": ""}})")
                .status,
            400);
  std::string files;
  for (int i = 0; i <= 1000; ++i) {
    files += fmt::format("{}\"{}\": \"\"", i == 0 ? "" : ", ", i);
  }
  EXPECT_EQ(api.run(R"({"arguments": ["plan"], "files": {)" + files + "}}").status, 400);
  std::string words = R"("plan")";
  for (int i = 0; i < 100'000; ++i) {
    words += ",0";
  }
  EXPECT_EQ(api.run(R"({"arguments": [)" + words + "]}").status, 413);
  EXPECT_EQ(status(R"({"arguments": ["simulate", "--workload", "/etc/passwd"]})"), 403);
  EXPECT_EQ(status(R"({"arguments": ["simulate", "--workload=/etc/passwd"]})"), 403);
  EXPECT_EQ(status(R"({"arguments": ["simulate", "--workload", "a/../../x"]})"), 403);
  EXPECT_EQ(status(R"({"arguments": ["simulate", "-o/../x"]})"), 403);
  EXPECT_EQ(status(R"({"arguments": ["simulate", "-w/etc/passwd"]})"), 403);
  EXPECT_EQ(status(R"({"arguments": ["simulate", "-qw/etc/passwd"]})"), 403);
  EXPECT_EQ(status(R"({"arguments": ["simulate", "-qo../x"]})"), 403);
  EXPECT_TRUE(api.ran.empty());
  // A long word takes as long as it is long, and no stack.
  std::string dashes;
  for (int i = 0; i < 1'000'000; ++i) {
    dashes += "-a";
  }
  EXPECT_EQ(api.run(R"({"arguments": ["plan", ")" + dashes + R"("]})").status, 200);
  EXPECT_TRUE(api.ran.back().confined);
  EXPECT_THAT(api.ran.back().readable, ElementsAre());
  EXPECT_EQ(status(R"({"arguments": ["plan"], "want_files": ["../x"]})"), 403);
  api.settings.files = "/data";
  EXPECT_EQ(status(R"({"arguments": ["simulate", "--workload", "/data/w.txt"]})"), 200);
  EXPECT_THAT(api.ran.back().readable, ElementsAre("/data"));
  EXPECT_EQ(status(R"({"arguments": ["simulate", "--workload", "/database"]})"), 403);
  EXPECT_EQ(status(R"({"arguments": ["compare", "/data"]})"), 200);
  EXPECT_EQ(status(R"({"arguments": ["compare", "/data/"]})"), 200);
  api.settings.files = "/";
  EXPECT_EQ(status(R"({"arguments": ["compare", "/database"]})"), 200);
  EXPECT_EQ(status(R"({"arguments": ["compare", "/"]})"), 200);
  api.busy = true;
  EXPECT_EQ(status(R"({"arguments": ["plan"]})"), 503);
}

TEST(ServeApi, ChecksWhoAsks) {
  Fixture api;
  ApiRequest about{.method = "GET", .target = "/api/v1/about", .host = "localhost:1"};
  EXPECT_EQ(api.ask(about).status, 200);
  for (const char* host : {"localhost", "[::1]:1", "[::1]", "LocalHost:8080", "127.0.0.2:1",
                           "127.255.255.254", "[0:0:0:0:0:0:0:1]:1", ""}) {
    about.host = host;
    EXPECT_EQ(api.ask(about).status, 200) << host;
  }
  for (const char* host :
       {"[::1].attacker.example", "localhost.attacker.example:1", "127.0.0.1.attacker.example",
        "127.0.0.1:1.attacker.example", "[::1", "[::2]:1", "128.0.0.1", "127.1", "127.0.0.1:1:1"}) {
    about.host = host;
    EXPECT_EQ(api.ask(about).status, 403) << host;
  }
  about.host = "attacker.example";  // a page that has pointed its name at us
  EXPECT_EQ(api.ask(about).status, 403);
  api.settings.any_host = true;
  EXPECT_EQ(api.ask(about).status, 200);
  about.origin = "http://attacker.example";
  EXPECT_EQ(api.ask(about).status, 200);  // its own page
  about.origin = "http://other.example";
  EXPECT_EQ(api.ask(about).status, 403);
  about.origin.clear();
  api.settings.token = "sesame";
  EXPECT_EQ(api.ask(about).status, 401);
  about.authorization = "Bearer sesam";
  EXPECT_EQ(api.ask(about).status, 401);
  about.authorization = "Bearer sesame";
  EXPECT_EQ(api.ask(about).status, 200);
}

TEST(ServeApi, SendsReportsElsewhere) {
  Fixture api;
  const auto whole = [&](const std::string& body) {
    ApiRequest request{.method = "POST", .target = "/api/v1/live", .host = "localhost:1"};
    request.content_type = "application/json";
    request.body = body;
    return Json::parse(api.ask(request).body)["whole"];
  };
  EXPECT_EQ(whole(R"({"arguments": []})"), false);
  EXPECT_EQ(whole(R"({"report": false})"), false);
  EXPECT_EQ(whole(R"({"report": true})"), true);
  EXPECT_EQ(whole(R"({"report": 1})"), false);  // the model says what is wrong with it
}

TEST(ServeApi, TellsTheLiveModelWhoHasGone) {
  Fixture api;
  ApiRequest request{.method = "POST", .target = "/api/v1/live", .host = "localhost:1"};
  request.content_type = "application/json";
  request.body = "{}";
  request.gone = [] { return true; };
  EXPECT_EQ(api.ask(request).status, 200);
  EXPECT_TRUE(api.live_client_has_gone);
}

TEST(ServeApi, TakesJsonAsItsHeaderMaySay) {
  Fixture api;
  const auto status = [&](const char* type) {
    ApiRequest request{.method = "POST", .target = "/api/v1/run", .host = "localhost:1"};
    request.content_type = type;
    request.body = R"({"arguments": ["plan"]})";
    return api.ask(request).status;
  };
  EXPECT_EQ(status("Application/JSON ; charset=utf-8"), 200);
  EXPECT_EQ(status("application/jsonpatch"), 415);
  EXPECT_EQ(status("text/plain; application/json"), 415);
}

TEST(ServeApi, Routes) {
  Fixture api;
  const auto status = [&](const char* method, const char* target) {
    return api.ask({.method = method, .target = target, .host = "[::1]:80"}).status;
  };
  EXPECT_EQ(status("GET", "/"), 200);
  EXPECT_EQ(status("GET", "/?x"), 200);
  EXPECT_EQ(status("POST", "/"), 405);
  EXPECT_EQ(status("GET", "/api/v1/run"), 405);
  EXPECT_EQ(status("POST", "/api/v1/run"), 415);
  EXPECT_EQ(status("GET", "/etc/passwd"), 404);
  const auto allow = [&](const char* method, const char* target) {
    return api.ask({.method = method, .target = target, .host = "[::1]:80"}).allow;
  };
  EXPECT_EQ(allow("DELETE", "/api/v1/about"), "GET, HEAD");
  EXPECT_EQ(allow("GET", "/api/v1/run"), "POST");
  EXPECT_EQ(allow("GET", "/api/v1/about"), "");
}

TEST(ServeHttp, AnswersBytes) {
  const auto status = [](std::string_view bytes) {
    return answer_bytes(bytes, 10, [](const ApiRequest& request) {
      return ApiReply{.status = request.body == "0123456789" ? 200 : 204, .body = ""};
    });
  };
  const std::string post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: ";
  EXPECT_EQ(status(post + "10\r\n\r\n0123456789"), 200);
  EXPECT_EQ(status(post + "11\r\n\r\n0123456789a"), 413);
  EXPECT_EQ(status(post + "10\r\n\r\n01234"), 0);  // not all there
  // Where HTTP/1.1 leaves no doubt what is meant.
  EXPECT_EQ(status("GET / HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.0\r\n\r\n"), 204);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"), 501);
  EXPECT_EQ(status("NONSENSE\r\n\r\n"), 400);
  EXPECT_EQ(status("GET / HTTP/1.1\r\nX: " + std::string(20'000, 'x')), 431);
  EXPECT_EQ(status(""), 0);
}

TEST(LiveModel, AnswersAsSimulateDoes) {
  LiveModel model({"--workload", LOCKSTEP_SOURCE_DIR "/tests/data/simulate/tiny.txt", "--topology",
                   "Spectrum-X:g=8"});
  const Json as_is = model.evaluate({});
  EXPECT_DOUBLE_EQ(as_is["total_s"].get<double>(),
                   0.00119635475);  // tests/golden/simulate/flow.json
  EXPECT_FALSE(as_is["kept"].get<bool>());
  EXPECT_TRUE(model.evaluate({})["kept"].get<bool>());
  // All computation is twice as fast: what is computed halves, to the picosecond of rounding.
  const Json fast = model.evaluate({.gpu_speed = 2});
  EXPECT_NEAR(fast["compute_s"].get<double>(), as_is["compute_s"].get<double>() / 2, 1e-10);
  const Json slow_links = model.evaluate({.nvlink_bandwidth = 0.5, .network_bandwidth = 0.5});
  EXPECT_GT(slow_links["exposed_s"].get<double>(), as_is["exposed_s"].get<double>());
  const Json slow_gpu = model.evaluate({.straggler = 2, .straggler_gpu = 3});
  EXPECT_GT(slow_gpu["total_s"].get<double>(), as_is["total_s"].get<double>());
  EXPECT_GT(model.evaluate({.latency = 4})["total_s"].get<double>(),
            as_is["total_s"].get<double>());
}

// A factor counts with all its digits: 1.2345678 is not 1.23457.
TEST(LiveModel, TakesAFactorAsItIs) {
  const std::vector<std::string> flags = {"--workload",
                                          LOCKSTEP_SOURCE_DIR "/tests/data/simulate/tiny.txt",
                                          "--topology", "Spectrum-X:g=8"};
  const auto total = [&](const char* straggler) {
    std::vector<std::string> slow = flags;
    slow.insert(slow.end(), {"--straggler", straggler});
    return LiveModel(slow).simulate({}).total;
  };
  const Time live = LiveModel(flags).simulate({.straggler = 1.2345678, .straggler_gpu = 3}).total;
  EXPECT_EQ(live, total("gpu:3:1.2345678"));
  EXPECT_NE(live, total("gpu:3:1.23457"));
}

// What is kept from one place of the sliders to the next changes nothing, to the picosecond.
TEST(LiveModel, AnswersAsAFreshSimulationDoes) {
  LiveModel model({"--model", "llama3-8b", "--gpus", "32", "--tp", "4", "--pp", "4",
                   "--global-batch", "8", "--sp", "--topology", "Spectrum-X:g=32", "--spray"});
  Rng rng(17, "sliders");
  LiveSliders sliders;
  const auto move = [&](double& slider) {
    slider = rng.uniform() < 0.3 ? 1 : std::exp2(6 * rng.uniform() - 3);
  };
  for (int i = 0; i < 40; ++i) {
    switch (i % 5) {
      case 0:
        move(sliders.gpu_speed);
        break;
      case 1:
        move(sliders.straggler);
        break;
      case 2:
        sliders.straggler_gpu = static_cast<std::int32_t>(32 * rng.uniform());
        break;
      case 3:
        move(sliders.network_bandwidth);
        move(sliders.nvlink_bandwidth);
        break;
      default:
        move(sliders.latency);
    }
    const StepResult kept = model.simulate(sliders), fresh = model.simulate(sliders, true);
    ASSERT_EQ(kept.total, fresh.total) << i;
    ASSERT_EQ(kept.compute, fresh.compute) << i;
    ASSERT_EQ(kept.exposed, fresh.exposed) << i;
    ASSERT_EQ(kept.exposed_by_group, fresh.exposed_by_group) << i;
    ASSERT_EQ(kept.first_rank_end, fresh.first_rank_end) << i;
    ASSERT_EQ(kept.last_rank_end, fresh.last_rank_end) << i;
    ASSERT_EQ(kept.flows, fresh.flows) << i;
  }
}

// What is prepared while nobody asks changes nothing either; a GPU that is not in the job is told
// to who asks for it.
TEST(LiveModel, PreparesASlowGpu) {
  LiveModel model({"--model", "llama3-8b", "--gpus", "32", "--tp", "4", "--pp", "4",
                   "--global-batch", "8", "--sp", "--topology", "Spectrum-X:g=32", "--spray"});
  model.evaluate({});
  const LiveSliders slow{.network_bandwidth = 0.7, .straggler = 1.3, .straggler_gpu = 5};
  model.prepare(slow);
  model.prepare(slow);
  const Json reply = model.evaluate(slow);
  EXPECT_EQ(reply["kept"], false);  // the place itself is new
  EXPECT_EQ(model.simulate(slow).total, model.simulate(slow, true).total);
  EXPECT_THROW(model.prepare({.straggler_gpu = 32}), Error);
  EXPECT_THROW(model.evaluate({.straggler = 2, .straggler_gpu = 32}), Error);
}

// The sliders go back to where they began: what was found there goes last.
TEST(KeptStep, LetsGoOfOtherNetworksFirst) {
  KeptStep kept;
  for (const char* network : {"first", "second", "third", "fourth", "fifth"}) {
    kept.network = network;
    kept.trim();
    kept.folds[{network, {}}] = {};
  }
  EXPECT_TRUE(kept.folds.contains({"first", {}}));
  EXPECT_FALSE(kept.folds.contains({"second", {}}));
  EXPECT_TRUE(kept.folds.contains({"fifth", {}}));
}

// Each slider, alone and beside a slow GPU, with many microbatches and gradients that are reduced
// during the last one; then also every rank for itself.
TEST(LiveModel, EachSliderAnswersAsAFreshSimulationDoes) {
  const std::vector<std::string> flags = {"--model",
                                          "llama3-8b",
                                          "--gpus",
                                          "64",
                                          "--tp",
                                          "4",
                                          "--pp",
                                          "4",
                                          "--global-batch",
                                          "128",
                                          "--sp",
                                          "--topology",
                                          "Spectrum-X:g=64",
                                          "--spray",
                                          "--num-layers",
                                          testing::is_sanitized() ? "4" : "32"};
  std::vector<std::string> in_full = flags;
  in_full.emplace_back("--no-symmetry");
  LiveModel model(flags), every_rank(in_full);
  const auto same = [](const StepResult& a, const StepResult& b) {
    return a.total == b.total && a.compute == b.compute && a.exposed == b.exposed &&
           a.exposed_by_group == b.exposed_by_group && a.first_rank_end == b.first_rank_end &&
           a.last_rank_end == b.last_rank_end && a.flows == b.flows;
  };
  for (const LiveSliders& start :
       {LiveSliders{}, LiveSliders{.straggler = 1.4, .straggler_gpu = 5}}) {
    model.simulate(start);
    for (double LiveSliders::*slider :
         {&LiveSliders::nvlink_bandwidth, &LiveSliders::network_bandwidth, &LiveSliders::latency,
          &LiveSliders::gpu_speed, &LiveSliders::straggler}) {
      for (const double factor : {1.3, 0.7}) {
        LiveSliders sliders = start;
        sliders.*slider *= factor;
        EXPECT_TRUE(same(model.simulate(sliders), model.simulate(sliders, true))) << factor;
      }
    }
    EXPECT_TRUE(same(model.simulate(start), every_rank.simulate(start, true)));
  }
}

// Reports of a model whose sliders have been moved are those of one that was just loaded, in all
// they show, and of the step that the numbers tell of.
TEST(LiveModel, ReportsAsAFreshModelDoes) {
  const std::vector<std::string> flags = {"--model",
                                          "llama3-8b",
                                          "--gpus",
                                          "32",
                                          "--tp",
                                          "4",
                                          "--pp",
                                          "4",
                                          "--sp",
                                          "--topology",
                                          "Spectrum-X:g=32",
                                          "--global-batch",
                                          "16",
                                          "--straggler",
                                          "link:0-32:0.5",
                                          "--explain",
                                          "--num-layers",
                                          testing::is_sanitized() ? "4" : "32"};
  LiveModel moved(flags);
  const auto comparable = [](Json reply) {
    reply.erase("took_s");
    return reply;
  };
  for (const LiveSliders& sliders :
       {LiveSliders{}, LiveSliders{.gpu_speed = 1.7}, LiveSliders{.network_bandwidth = 0.4},
        LiveSliders{.latency = 3, .straggler = 1.4, .straggler_gpu = 9},
        LiveSliders{.nvlink_bandwidth = 2, .straggler = 1.4, .straggler_gpu = 9}, LiveSliders{}}) {
    LiveModel fresh(flags);
    const Json numbers = moved.evaluate(sliders);
    const Json reply = moved.evaluate_with_report(sliders);
    EXPECT_EQ(comparable(reply), comparable(fresh.evaluate_with_report(sliders)));
    const Json& report = reply["report"];
    EXPECT_EQ(report["schema"], "lockstep-simulate/1");
    for (const char* key : {"total_s", "compute_s", "exposed_s", "bubble_s", "skew_s"}) {
      EXPECT_EQ(reply[key], numbers[key]) << key;
      EXPECT_NEAR(report[key].get<double>(), numbers[key].get<double>(), 1e-15) << key;
    }
    EXPECT_FALSE(report["detail"]["events"]["op"].empty());
    EXPECT_TRUE(report.contains("fabric") && report.contains("roofline"));
    EXPECT_EQ(report["stragglers"].size(), sliders.straggler == 1 ? 1U : 2U);
    EXPECT_EQ(report["sliders"] == "all as they were", sliders == LiveSliders{});
  }
}

// Flags mean what they mean to simulate; those of what a live model has not are refused.
TEST(LiveModel, HeedsAllFlags) {
  const std::string tiny = LOCKSTEP_SOURCE_DIR "/tests/data/simulate/tiny.txt";
  const auto total = [&](std::vector<std::string> more) {
    std::vector<std::string> flags = {"--workload", tiny, "--topology", "Spectrum-X:g=16"};
    flags.insert(flags.end(), more.begin(), more.end());
    return LiveModel(flags).evaluate({})["total_s"].get<double>();
  };
  const std::string scenario = ::testing::TempDir() + "/live-scenario.yaml";
  write_file(scenario, "stragglers:\n  - gpu:0:3\n");
  EXPECT_EQ(total({"--scenario", scenario}), total({"--straggler", "gpu:0:3"}));
  EXPECT_GT(total({"--scenario", scenario}), total({}));
  const Json beside =
      LiveModel({"--workload", tiny, "--topology", "Spectrum-X:g=16", "--beside", tiny})
          .evaluate_with_report({});
  EXPECT_EQ(beside["report"]["jobs"].size(), 2U);
  for (const std::vector<std::string>& refused : {std::vector<std::string>{"--steps", "3"},
                                                  {"--trace", "t.json"},
                                                  {"--sensitivity"},
                                                  {"--report", "r.html"},
                                                  {"--help"},
                                                  {"--model", "llama3-8b"},
                                                  {"--nonsense"}}) {
    EXPECT_THROW(total(refused), Error) << refused.front();
  }
}

TEST(LiveModel, RefusesWhatIsOutOfRange) {
  EXPECT_THROW(sliders_of(Json{{"latency", 0}}), Error);
  EXPECT_THROW(sliders_of(Json{{"latency", "x"}}), Error);
  EXPECT_THROW(sliders_of(Json{{"speed", 1}}), Error);
  EXPECT_EQ(sliders_of(Json{{"gpu_speed", 2}}).gpu_speed, 2);
  EXPECT_THROW(LiveModel({"--workload", "absent.txt", "--topology", "Spectrum-X:g=8"}), Error);
  EXPECT_THROW(LiveModel({"--engine", "packet"}), Error);
  try {
    LiveModel({"-h"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("-h: a live step prints no help"));
  }
}

}  // namespace
}  // namespace lockstep::serve_api_test
