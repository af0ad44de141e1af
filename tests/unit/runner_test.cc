#include "profiler/run/runner.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <map>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "profiler/run/join.h"
#include "profiler/run/run_summary.h"
#include "trace/trace_events.h"
#include "workloads/simai_txt.h"

namespace lockstep::runner_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// tp 2, dp 2 of four GPUs.
constexpr std::string_view kLayers =
    "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 2 ga: 1 "
    "all_gpus: 4 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n2\n"
    "attention -1 5000 ALLGATHER 4096 6000 REDUCESCATTER 2048 7000 NONE 0 100\n"
    "mlp -1 1 NONE 0 1 NONE 0 1 ALLREDUCE 8192 100\n";

RunChoice four(std::int32_t rank) {
  RunChoice choice;
  choice.world = 4;
  choice.rank = rank;
  return choice;
}

TEST(RunPlan, LayersForwardThenBackward) {
  const RunPlan plan = run_plan(read_simai_txt(kLayers, "w.txt"), four(3));
  std::vector<std::string> what;
  for (const RunItem& item : plan.items) {
    what.push_back(item.epoch_end ? "end"
                   : item.comm == CommType::kNone
                       ? "idle " + item.name
                       : std::string(name_of(item.comm)) + " " + item.stage);
  }
  EXPECT_THAT(what, ElementsAre("idle attention", "allgather forward.attention",
                                "allreduce step.mlp", "idle attention",
                                "reducescatter backward.attention", "idle attention", "end"));
  // Rank 3's tensor-parallel group is {2, 3}, its data-parallel one {1, 3}.
  EXPECT_THAT(plan.groups[static_cast<std::size_t>(plan.items[1].group)].ranks, ElementsAre(2, 3));
  EXPECT_THAT(plan.groups[static_cast<std::size_t>(plan.items[2].group)].ranks, ElementsAre(1, 3));
  EXPECT_EQ(plan.groups.size(), 4U);
  EXPECT_EQ(plan.largest_bytes, 8192);
  EXPECT_EQ(plan.items[0].compute.idle, Time::us(5));
}

TEST(RunPlan, AllRanksHaveTheSameGroups) {
  const Workload workload = read_simai_txt(kLayers, "w.txt");
  const RunPlan first = run_plan(workload, four(0));
  for (std::int32_t rank = 1; rank < 4; ++rank) {
    const RunPlan other = run_plan(workload, four(rank));
    ASSERT_EQ(other.groups.size(), first.groups.size());
    for (std::size_t i = 0; i < first.groups.size(); ++i) {
      EXPECT_EQ(other.groups[i].ranks, first.groups[i].ranks);
    }
  }
}

TEST(RunPlan, TimesBecomeProducts) {
  RunChoice choice = four(0);
  choice.compute = RunCompute::kGemm;
  choice.flops = 2.0 * 512 * 512 * 512 / 5e-6;
  const RunPlan plan = run_plan(read_simai_txt(kLayers, "w.txt"), choice);
  EXPECT_EQ(plan.items[0].compute.m, 512);  // 2 · 512^3 operations in 5 us at that rate
  EXPECT_EQ(plan.items[0].compute.k, 512);
}

constexpr const char* kCsv =
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,"
    "busbw,count\n"
    "CommType.all_reduce,CommGroup.dp_group,2,8,init.model_setup,None,None,,None,None,None,1\n"
    "CommType.computation,None,None,((16 2 32) (32 64)),forward,None,None,,None,None,None,1\n"
    "CommType.all_gather,CommGroup.tp_group,2,4096,forward.x,None,None,,None,None,None,1\n"
    "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n";

// Rank 1's data-parallel group of tp 2 and dp 2 is {1, 3}.
constexpr const char* kRoots =
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src\n"
    "broadcast,dp_group,2,4096,init,None,0\n"
    "reduce,dp_group,2,4096,step,3,None\n";

RunPlan csv_plan(std::string_view text, RunCompute compute = RunCompute::kGemm) {
  RunChoice choice = four(1);
  choice.compute = compute;
  Warnings warnings;
  return read_aicb_workload(text, "w.csv", {2, 1, 1}, choice, warnings);
}

TEST(AicbCsv, ItemsAndProducts) {
  const RunPlan plan = csv_plan(kCsv);
  ASSERT_EQ(plan.items.size(), 4U);
  EXPECT_THAT(plan.groups[static_cast<std::size_t>(plan.items[0].group)].ranks, ElementsAre(1, 3));
  EXPECT_THAT(plan.groups[static_cast<std::size_t>(plan.items[2].group)].ranks, ElementsAre(0, 1));
  EXPECT_EQ(plan.items[1].compute.m, 32);
  EXPECT_EQ(plan.items[1].compute.k, 32);
  EXPECT_EQ(plan.items[1].compute.n, 64);
  EXPECT_TRUE(plan.items[3].epoch_end);
  EXPECT_EQ(csv_plan(kCsv, RunCompute::kIdle).items.size(), 3U);  // a product without a time
}

TEST(AicbCsv, WrongLinesAreNamed) {
  const auto message = [](std::string text, const char* from, const char* to) {
    text.replace(text.find(from), std::string_view(from).size(), to);
    try {
      (void)csv_plan(text);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message(kCsv, "CommType.all_gather", "CommType.al_gather"),
              HasSubstr("w.csv:4: comm_type: 'CommType.al_gather'"));
  EXPECT_THAT(message(kCsv, "tp_group,2", "tp_group,4"), HasSubstr("w.csv:4: comm_group_size"));
  EXPECT_THAT(message(kCsv, "4096", "-4"), HasSubstr("w.csv:4: msg_size"));
  EXPECT_THAT(message(kCsv, "dp_group", "xy_group"), HasSubstr("w.csv:2: comm_group"));
  EXPECT_THAT(message(kCsv, "msg_size", "size"), HasSubstr("no column msg_size"));
  EXPECT_THAT(message(kRoots, "step,3", "step,2"),
              HasSubstr("w.csv:3: dst: '2' is not in rank 1's dp_group"));
  EXPECT_THAT(message(kCsv, "forward.x,None,None,,None,None", "forward.x,None,None,,3.2,0.5"),
              HasSubstr("w.csv:4: algbw: '0.5'"));
}

TEST(AicbCsv, ReduceGoesToItsDestination) {
  const RunPlan plan = csv_plan(kRoots);
  EXPECT_EQ(plan.items[0].root, 0);
  EXPECT_EQ(plan.items[1].root, 1);
  EXPECT_THAT(describe(plan), HasSubstr("reduce 4 KiB over dp_group of 2, root rank 3"));
  const Json items = Json::parse(to_json_text(plan)).at("items");
  EXPECT_EQ(items.at(0).at("root"), 1);  // the first of the group
  EXPECT_EQ(items.at(1).at("root"), 3);
}

TEST(AicbCsv, TheFilesEndIsAnIterations) {
  const RunPlan plan = csv_plan(kRoots);
  ASSERT_EQ(plan.items.size(), 3U);
  EXPECT_TRUE(plan.items.back().epoch_end);
}

/// 1 ms each, 2 GiB/s or more by size; two iterations.
RunLog some_log(const RunPlan& plan) {
  RunLog log;
  for (int iteration = 0; iteration < 2; ++iteration) {
    for (std::size_t i = 0; i < plan.items.size(); ++i) {
      log.records.push_back({static_cast<std::int32_t>(i),
                             1e-3 * static_cast<double>(log.records.size()),
                             iteration == 0 ? 1e-3 : 3e-3});
    }
    log.iterations_s.push_back(iteration == 0 ? 0.010 : 0.030);
  }
  return log;
}

TEST(RunOutputs, CommLogIsAicbs) {
  const RunPlan plan = csv_plan(kCsv);
  const std::string text = comm_log_csv(plan, some_log(plan));
  EXPECT_THAT(text, HasSubstr("\nCommType.all_gather,CommGroup.tp_group,2,4096,forward.x,None,None,"
                              ",1.0,0.0,0.0,1\n"));
  EXPECT_THAT(text, HasSubstr("\nCommType.computation,None,None,((32 32) (32 64)),forward,None,"
                              "None,,1.0,0.0,0.0,1\n"));
  EXPECT_THAT(text, HasSubstr("\nCommType.epoch_end,None,None,0,,None,None,,30.0,0.0,0.0,1\n"));
}

TEST(RunOutputs, SummaryLeavesInitOut) {
  const RunPlan plan = csv_plan(kCsv);
  const std::string text = to_text(summarize(plan, some_log(plan)));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("dp_group")));
  // 1 and 3 ms: mean 2, deviation 1.
  EXPECT_THAT(text, HasSubstr("CommType.all_gather CommGroup.tp_group 4.0 KB       2.00            "
                              " 2.00±1.00"));
  // 10 and 30 ms: mean 20, p90 the second, deviation 10; the first is "Init time".
  EXPECT_THAT(text, HasSubstr("10.00              30.00                10.00                20.00 "
                              "               30.00                10.00"));
}

TEST(RunOutputs, SummaryAsJson) {
  const RunPlan plan = csv_plan(kCsv);
  const Json json = Json::parse(to_json_text(summarize(plan, some_log(plan)), plan, "control"));
  const Json& row = json.at("rows").at(0);
  EXPECT_EQ(row.at("op"), "all_gather");
  EXPECT_EQ(row.at("size_bytes"), 4096);
  EXPECT_EQ(row.at("count"), 2);
  EXPECT_NEAR(row.at("mean_s").get<double>(), 2e-3, 1e-15);
  EXPECT_NEAR(row.at("deviation_s").get<double>(), 1e-3, 1e-15);
  EXPECT_NEAR(json.at("iterations").at("p90_s").get<double>(), 0.030, 1e-15);
}

TEST(RunPlan, AsJson) {
  const Json json = Json::parse(to_json_text(run_plan(read_simai_txt(kLayers, "w.txt"), four(3))));
  EXPECT_EQ(json.at("communicators").size(), 4U);
  const Json& items = json.at("items");
  EXPECT_EQ(items.at(0).at("op"), "idle");
  EXPECT_NEAR(items.at(0).at("time_s").get<double>(), 5e-6, 1e-18);
  EXPECT_EQ(items.at(1).at("op"), "allgather");
  EXPECT_EQ(
      json.at("communicators").at(items.at(1).at("communicator").get<std::size_t>()).at("ranks"),
      Json({2, 3}));
  EXPECT_EQ(items.back().at("op"), "end_of_iteration");
}

TEST(RunOutputs, NcclTestsTable) {
  const RunPlan plan = csv_plan(kCsv);
  const std::string text = nccl_tests_tables(plan, some_log(plan), "NVIDIA H200");
  EXPECT_THAT(text, HasSubstr("# Collective test starting: all_gather_perf"));
  // Of 2048 elements each of the two ranks has 1024.
  EXPECT_THAT(text, HasSubstr("        4096          1024  bfloat16    none      -1  2000.00"));
}

TEST(RunOutputs, NcclTestsNamesTheRoot) {
  const RunPlan plan = csv_plan(kRoots);
  const std::string text = nccl_tests_tables(plan, some_log(plan), "NVIDIA H200");
  EXPECT_THAT(text, HasSubstr("        4096          2048  bfloat16    none       0  2000.00"));
  EXPECT_THAT(text, HasSubstr("        4096          2048  bfloat16     sum       1  2000.00"));
  EXPECT_THAT(comm_log_csv(plan, some_log(plan)),
              HasSubstr("CommType.reduce,CommGroup.dp_group,2,4096,step,3,None,,"));
}

TEST(RunOutputs, BytepsLayout) {
  const RunPlan plan = csv_plan(kCsv);
  const std::string text = byteps_json(plan, some_log(plan), 1, 1);
  Warnings warnings;
  int totals = 0, stages = 0;
  each_trace_event(text, warnings, [&](const TraceEvent& event) {
    (event.tid == "total" ? totals : stages) += 1;
    EXPECT_GE(event.ts_us, 4000);  // of the second iteration
  });
  EXPECT_EQ(totals, 2);
  EXPECT_EQ(stages, 2);
}

TEST(Place, LaunchersVariables) {
  std::map<std::string, std::string> environment;
  const auto variable = [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
  RankPlace place;
  EXPECT_FALSE(place_from_environment(variable, place));
  environment = {{"OMPI_COMM_WORLD_RANK", "5"},
                 {"OMPI_COMM_WORLD_SIZE", "8"},
                 {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                 {"MASTER_ADDR", "node0"},
                 {"MASTER_PORT", "1234"}};
  EXPECT_TRUE(place_from_environment(variable, place));
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.world, 8);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.host, "node0");
  EXPECT_EQ(place.port, 1234);
  environment = {{"RANK", "8"}, {"WORLD_SIZE", "8"}};
  EXPECT_THROW(place_from_environment(variable, place), Error);
  environment = {{"RANK", "x"}, {"WORLD_SIZE", "8"}};
  EXPECT_THROW(place_from_environment(variable, place), Error);
  environment = {{"SLURM_PROCID", "1"}};
  EXPECT_THROW(place_from_environment(variable, place), Error);
}

TEST(Place, ARankOfTheSecondServerHasTheLaunchersGpu) {
  RankPlace place;
  place.rank = 1;
  place.local_rank = 1;  // as a launcher set it
  take_rank(place, true, 9);
  EXPECT_EQ(place.rank, 9);
  EXPECT_EQ(place.local_rank, 1);
  take_rank(place, false, 3);
  EXPECT_EQ(place.local_rank, 3);
}

/// Moves nothing; fails at one communication, or ends none until it is stopped.
class FakeTransport : public Transport {
 public:
  FakeTransport(int fail_at, bool blocks) : fail_at_(fail_at), blocks_(blocks) {}
  std::string make_id() override { return "fake"; }
  void join(const TransportWorld& world) override { EXPECT_EQ(world.id, "fake"); }
  int add_group(std::span<const std::int32_t>, bool) override { return groups_++; }
  void prepare(const ComputeCall&, int) override {}
  void begin_batch() override {}
  void start(const Work& work) override {
    if (work.call.comm != CommType::kNone && ++calls_ == fail_at_) {
      throw Error("the cable is out");
    }
  }
  bool has_ended(std::size_t) override { return !blocks_; }
  WorkTime time_of(std::size_t) override { return {0, 1e-3}; }
  void pause() override {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (stopped_) {
      throw Error("stopped");
    }
  }
  void leave() override {}
  void stop() noexcept override { stopped_ = true; }
  std::string name() const override { return "fake"; }

 private:
  int fail_at_, calls_ = 0, groups_ = 0;
  bool blocks_;
  std::atomic<bool> stopped_ = false;
};

/// Of this test program; its children share it.
const int kPort = 20000 + static_cast<int>(::getpid()) % 20000;

RankPlace place_of(int rank, int world, int offset) {
  RankPlace place;
  place.rank = rank;
  place.world = world;
  place.port = kPort + offset;
  return place;
}

/// What each of four ranks, in threads of one process, ends with.
std::vector<std::string> run_four(int offset, int failing_rank, bool others_block) {
  const Workload workload = read_simai_txt(kLayers, "w.txt");
  std::vector<std::string> ends(4);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        Bootstrap bootstrap(place_of(rank, 4, offset), "key", 60);
        FakeTransport transport(rank == failing_rank ? 2 : -1,
                                rank != failing_rank && others_block);
        const RunLog log =
            execute(run_plan(workload, four(rank)), transport, bootstrap, {3, 1, 60});
        ends[static_cast<std::size_t>(rank)] = std::to_string(log.records.size());
      } catch (const Error& error) {
        ends[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
  return ends;
}

TEST(Runner, FourRanksRunAllIterations) {
  // Seven items, three iterations; the warm-up is not logged.
  EXPECT_THAT(run_four(0, -1, false), ElementsAre("21", "21", "21", "21"));
}

TEST(Runner, OneRanksFailureEndsAllWithItsReason) {
  for (const int failing : {0, 2}) {
    const auto ends = run_four(10 + failing, failing, true);
    for (int rank = 0; rank < 4; ++rank) {
      EXPECT_THAT(ends[static_cast<std::size_t>(rank)], HasSubstr("the cable is out"));
      if (rank != failing) {
        EXPECT_THAT(ends[static_cast<std::size_t>(rank)],
                    HasSubstr("rank " + std::to_string(failing) + " failed"));
      }
    }
  }
}

TEST(Runner, ARunWithoutProgressEndsAndNamesRankAndItem) {
  Bootstrap bootstrap(place_of(0, 1, 70), "key", 60);
  FakeTransport transport(-1, true);
  RunPlan plan;
  RunItem item;
  item.name = "gradients";
  item.comm = CommType::kAllReduce;
  item.bytes = 4096;
  item.group = 0;
  RunItem end;
  end.epoch_end = true;
  plan.groups = {{"dp_group", {0}}};
  plan.items = {item, end};
  try {
    (void)execute(plan, transport, bootstrap, {1, 0, 0.05});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kCheckFailed);
    EXPECT_THAT(error.what(), HasSubstr("rank 0: no progress for 0.05 s at item 1 of 2, allreduce "
                                        "4 KiB over dp_group of 1 (gradients)"));
  }
}

TEST(Runner, WhatAFailureStopsIsNotTakenAwayMeanwhile) {
  std::thread other([] { Bootstrap(place_of(1, 2, 20), "key", 60).fail("no power"); });
  Bootstrap bootstrap(place_of(0, 2, 20), "key", 60);
  std::atomic<bool> begun = false, ended = false;
  bootstrap.on_failure([&](const std::string&) {
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    ended = true;
  });
  while (!begun) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  bootstrap.on_failure({});
  EXPECT_TRUE(ended);
  other.join();
}

TEST(Runner, AProcessThatDiesEndsAll) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < 3; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      int code = 1;
      try {
        Bootstrap bootstrap(place_of(rank, 3, 30), "key", 60);
        bootstrap.barrier();
        if (rank == 1) {
          ::_exit(77);  // no goodbye
        }
        bootstrap.barrier();
        code = 0;
      } catch (const Error& error) {
        code = std::string(error.what()).find("rank 1 has gone") != std::string::npos ? 42 : 2;
      }
      ::_exit(code);
    }
    children.push_back(child);
  }
  std::vector<int> codes;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  EXPECT_THAT(codes, ElementsAre(42, 77, 42));
}

TEST(Runner, WhoLeavesEarlyIsNotWaitedFor) {
  std::string waiting;
  std::thread other([&] {
    try {
      Bootstrap bootstrap(place_of(1, 2, 50), "key", 60);
      bootstrap.barrier();
    } catch (const Error& error) {
      waiting = error.what();
    }
  });
  { const Bootstrap bootstrap(place_of(0, 2, 50), "key", 60); }
  other.join();
  EXPECT_THAT(waiting, HasSubstr("rank 0 has left before the others"));
}

TEST(Runner, AStrangerIsRefused) {
  std::string stranger;
  std::thread other([&] {
    try {
      Bootstrap bootstrap(place_of(1, 2, 40), "another workload", 20);
    } catch (const Error& error) {
      stranger = error.what();
    }
  });
  std::string first;
  try {
    Bootstrap bootstrap(place_of(0, 2, 40), "key", 1.5);
  } catch (const Error& error) {
    first = error.what();
  }
  other.join();
  EXPECT_THAT(stranger, HasSubstr("runs another job"));
  EXPECT_THAT(first, HasSubstr("1 of 2 ranks did not come in time"));
}

/// What the ranks of a world of three end with when one fails before it has met the others, of
/// which rank 2 comes a little later than the rest.
std::vector<std::string> ends_when_one_fails_early(int offset, int failing) {
  std::vector<std::string> ends(3);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks.emplace_back([&, rank] {
      if (rank == 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
      }
      if (rank == failing) {
        tell_early_failure(place_of(rank, 3, offset), "job ", "no such file", 60);
        return;
      }
      try {
        Bootstrap bootstrap(place_of(rank, 3, offset), "job digest", 60);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kCheckFailed);
        ends[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& rank : ranks) {
    rank.join();
  }
  return ends;
}

// Without a word of it they would wait for a minute.
TEST(Runner, WhoFailsBeforeAllHaveMetIsNotWaitedFor) {
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(ends_when_one_fails_early(70, 1),
              ElementsAre("rank 1 failed: no such file", "", "rank 1 failed: no such file"));
  EXPECT_THAT(ends_when_one_fails_early(80, 2),
              ElementsAre("rank 2 failed: no such file", "rank 2 failed: no such file", ""));
  EXPECT_THAT(ends_when_one_fails_early(90, 0),
              ElementsAre("", "rank 0 failed: no such file", "rank 0 failed: no such file"));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Runner, AnotherJobsFailureIsNotOurs) {
  std::thread other([] { tell_early_failure(place_of(1, 2, 100), "another job ", "x", 60); });
  std::string first;
  try {
    Bootstrap bootstrap(place_of(0, 2, 100), "job digest", 1.5);
  } catch (const Error& error) {
    first = error.what();
  }
  other.join();
  EXPECT_THAT(first, HasSubstr("1 of 2 ranks did not come in time; rank 1 runs another job"));
}

/// Sends these bytes to rank 0, one after the other, until it is refused.
void dribble(int offset, const std::string& bytes, std::chrono::milliseconds pause) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(kPort + offset));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int link = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  while (::connect(link, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const char byte : bytes) {
    if (::send(link, &byte, 1, MSG_NOSIGNAL) != 1) {
      break;
    }
    std::this_thread::sleep_for(pause);
  }
  ::close(link);
}

TEST(Runner, AStrangerDoesNotHoldUpTheRanks) {
  const auto begin = std::chrono::steady_clock::now();
  // Announces 128 MiB, of which nothing comes.
  std::thread loud(
      [] { dribble(60, std::string("\0\0\0\x08H", 5), std::chrono::milliseconds(0)); });
  std::thread other([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    Bootstrap bootstrap(place_of(1, 2, 60), "key", 60);
    bootstrap.barrier();
  });
  {
    Bootstrap bootstrap(place_of(0, 2, 60), "key", 60);
    bootstrap.barrier();
  }
  loud.join();
  other.join();
  // A byte now and then is no hello, however long it goes on.
  std::thread slow([] { dribble(61, std::string(60, '\0'), std::chrono::milliseconds(100)); });
  EXPECT_THROW(Bootstrap(place_of(0, 2, 61), "key", 0.5), Error);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
  slow.join();
}

}  // namespace
}  // namespace lockstep::runner_test
