// What belongs to which run of a log of several; launchers, tags and releases of nccl-tests.
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "trace/launch_line.h"
#include "trace/log_reader.h"

namespace lockstep::nccl_runs_test {
namespace {

const std::string kHeader = "# nThread 1 nGpus 1 minBytes 1024 maxBytes 1024\n";
const std::string kRows =
    "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
    "     1048576        262144     float     sum      -1    10.00  104.86  183.50      0\n";
const std::string kDevices =
    "#  Rank  0 Group  0 Pid 1 on h1 device  0 [0x1b] NVIDIA H100\n"
    "#  Rank  1 Group  0 Pid 1 on h1 device  1 [0x1c] NVIDIA H100\n";

PhysicalLog of(const std::string& text) { return read_log(text, "x.txt"); }

TEST(NcclRuns, EachHasItsOwnReleaseAndEnvironment) {
  const std::string info = "h1:1:1 [0] NCCL INFO ";
  const PhysicalLog log = of(kHeader + info + "NCCL_ALGO set by environment to Ring.\n" + info +
                             "NCCL version 2.8.4+cuda11\n" + kRows + kHeader + info +
                             "NCCL version 2.20.5+cuda12\n" + kRows);
  ASSERT_EQ(log.settings.size(), 2U);
  EXPECT_EQ(log.settings[0].nccl_version, "2.8.4");
  EXPECT_EQ(log.settings[0].env.at("NCCL_ALGO"), "Ring");
  EXPECT_EQ(log.settings[1].nccl_version, "2.20.5");
  EXPECT_TRUE(log.settings[1].env.empty());
}

// What a command line sets holds for its run, what is exported for all until set otherwise.
TEST(NcclRuns, CommandLinesAndExports) {
  const PhysicalLog log =
      of("export NCCL_IB_HCA=mlx5\n$ NCCL_ALGO=Ring ./all_reduce_perf -b 1M\n" + kHeader + kRows +
         "$ NCCL_ALGO=Tree NCCL_IB_HCA=mlx4 ./all_reduce_perf -b 1M\n" + kHeader + kRows +
         "$ ./all_reduce_perf -b 1M\n" + kHeader + kRows);
  ASSERT_EQ(log.settings.size(), 3U);
  EXPECT_EQ(log.settings[0].env.at("NCCL_ALGO"), "Ring");
  EXPECT_EQ(log.settings[1].env.at("NCCL_ALGO"), "Tree");
  EXPECT_EQ(log.settings[1].env.at("NCCL_IB_HCA"), "mlx4");
  EXPECT_FALSE(log.settings[2].env.contains("NCCL_ALGO"));
  EXPECT_EQ(log.settings[2].env.at("NCCL_IB_HCA"), "mlx5");
}

TEST(NcclRuns, SettingsThatAreCommentedOutOrUnset) {
  const PhysicalLog log =
      of("#export NCCL_ALGO=Tree\n# NCCL_PROTO=LL\n# export NCCL_IB_DISABLE=1\n"
         "#SBATCH --export=ALL,NCCL_IB_HCA=mlx5\nexport NCCL_ALGO=Ring NCCL_NTHREADS=64\n" +
         kHeader + kRows + "+ unset NCCL_ALGO NCCL_PROTO\n$ ./all_reduce_perf -b 1M\n" + kHeader +
         kRows);
  using Env = std::map<std::string, std::string>;
  ASSERT_EQ(log.settings.size(), 2U);
  EXPECT_EQ(log.settings[0].env,
            (Env{{"NCCL_ALGO", "Ring"}, {"NCCL_IB_HCA", "mlx5"}, {"NCCL_NTHREADS", "64"}}));
  EXPECT_EQ(log.settings[1].env, (Env{{"NCCL_IB_HCA", "mlx5"}, {"NCCL_NTHREADS", "64"}}));
}

// A program that a line only names, such as one that was built, is not the one that ran.
TEST(NcclRuns, ProgramsThatAreStarted) {
  const auto started = [](std::string_view line) { return started_program(split_blanks(line)); };
  for (const char* line :
       {"./build/all_reduce_perf -b 8", "all_reduce_perf", "$ ./all_reduce_perf",
        "+ mpirun -np 16 --hostfile hosts ./all_reduce_perf -b 8",
        "srun -N 2 numactl ./all_reduce_perf", "NCCL_ALGO=Ring ./all_reduce_perf -b 8",
        "root@node1:~# ./all_reduce_perf", "cd build && ./all_reduce_perf",
        "Running ./all_reduce_perf -b 8 -e 128M", "bash -c './all_reduce_perf -b 8'"}) {
    EXPECT_EQ(started(line), "all_reduce_perf") << line;
  }
  for (const char* line :
       {"Linking ../build/all_reduce.o > ../build/all_reduce_perf",
        "all_gather_perf  all_reduce_perf  alltoall_perf", "g++ -o all_reduce_perf -lnccl x.o",
        "-rwxr-xr-x 1 root root 1234 May 12 10:11 all_reduce_perf", "nothing", ""}) {
    EXPECT_EQ(started(line), "") << line;
  }
  const PhysicalLog built =
      of("Linking  ../build/hypercube.o > ../build/hypercube_perf\n" + kHeader + kRows);
  EXPECT_EQ(built.comms.at(0).op, CommType::kAllReduce);
  EXPECT_EQ(built.warnings.total(), 0);
}

// By reduction, root and ratio of bandwidths.
TEST(NcclRuns, ProgramsThatATableIsNotOf) {
  const std::string header =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
  const std::string sum = kRows,
                    gathered = header +
                               "     1048576         32768     float    none      -1    10.00  "
                               "104.86   91.75      0\n",
                    sent = header +
                           "     1048576        262144     float    none       0    10.00  104.86"
                           "  104.86      0\n";
  const auto warnings = [](const std::string& program, const std::string& table) {
    return of("$ ./" + program + "_perf -b 1M\n" + table).warnings.total();
  };
  EXPECT_EQ(warnings("all_reduce", sum), 0);
  for (const char* program : {"hypercube", "gather", "scatter", "all_gather", "broadcast", "reduce",
                              "reduce_scatter", "sendrecv"}) {
    EXPECT_EQ(warnings(program, sum), 1) << program;
  }
  for (const char* program : {"all_gather", "alltoall", "hypercube"}) {
    EXPECT_EQ(warnings(program, gathered), 0) << program;
    EXPECT_EQ(warnings(program, sent), 1) << program;
  }
  EXPECT_EQ(warnings("gather", gathered), 2);  // and then nobody knows what it is of
  EXPECT_EQ(warnings("broadcast", sent), 0);
  EXPECT_EQ(warnings("reduce", sent), 1);
  // The program itself knows better than the figures of a release that counts otherwise.
  EXPECT_EQ(of("# Collective test starting: hypercube_perf\n" + sum).warnings.total(), 0);
  const PhysicalLog log = of("$ ./hypercube_perf -b 1M\n" + sum);
  EXPECT_EQ(log.comms.at(0).op, CommType::kAllReduce);
  EXPECT_EQ(log.warnings.entries().at(0).text,
            "a table is not of hypercube_perf, which the log names before it: its own columns are "
            "taken");
}

// A run of two ranks that fails before its first row, and one of one rank.
TEST(NcclRuns, RanksOfARunWithoutRowsAreNotTheNexts) {
  const std::string one =
      "#  Rank  0 Group  0 Pid      7 on      node0 device  0 [0x0a] NVIDIA B200\n";
  const std::string failed = "node0: Test NCCL failure all_reduce.cu:44 unhandled system error\n";
  for (const std::string begin :
       {"# Collective test starting: all_reduce_perf\n", "# nThread 1 nGpus 1 minBytes 1024\n",
        "$ ./build/all_reduce_perf -b 1M\n"}) {
    const PhysicalLog log = of(begin + kDevices + failed + begin + one + kRows);
    ASSERT_EQ(log.settings.size(), 1U) << begin;
    EXPECT_EQ(log.settings[0].ranks, 1) << begin;
    EXPECT_EQ(log.settings[0].gpu_type, "NVIDIA B200") << begin;
  }
}

TEST(NcclRuns, RanksByTheLauncher) {
  const CommSetting setting =
      of("mpirun -np 16 -N 8 ./build/all_reduce_perf -b 8 -N 3\n" + kHeader + kRows).settings.at(0);
  EXPECT_EQ(setting.ranks, 16);
  EXPECT_EQ(setting.servers, 2);
  EXPECT_TRUE(setting.ranks_guessed);
  const std::string eight = "# nThread 2 nGpus 4 minBytes 1024\n";
  const std::string small =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "        1024           256     float     sum      -1    10.00    0.10    0.18      0\n";
  EXPECT_EQ(of(eight + small).settings.at(0).ranks, 8);
  const CommSetting listed = of(eight + kDevices + small).settings.at(0);
  EXPECT_EQ(listed.ranks, 2);
  EXPECT_FALSE(listed.ranks_guessed);
}

TEST(NcclRuns, LaunchLines) {
  const auto told = [](const char* line) {
    const LaunchLine launch = launch_line(line);
    return std::pair(launch.processes, launch.servers);
  };
  EXPECT_EQ(told("srun -N 2 --ntasks-per-node=8 ./all_reduce_perf -n 20"), std::pair(16, 2));
  EXPECT_EQ(told("/usr/bin/mpiexec -n 8 ./sendrecv_perf -n 5"), std::pair(8, 0));
  EXPECT_EQ(told("mpirun --np 24 --npernode 8 ./x_perf"), std::pair(24, 3));
  EXPECT_EQ(told("torchrun --nnodes 2 --nproc-per-node 4 run.py"), std::pair(8, 2));
  EXPECT_EQ(told("./all_reduce_perf -np 3"), std::pair(0, 0));
  EXPECT_EQ(told("srun -N16 -n16 ./all_reduce_perf"), std::pair(16, 16));
  EXPECT_EQ(told("srun -n16 --ntasks-per-node=1 ./all_reduce_perf"), std::pair(16, 16));
  EXPECT_EQ(told("mpirun -np16 -N8 ./all_reduce_perf"), std::pair(16, 2));
  EXPECT_EQ(told("mpirun -np 16 --map-by ppr:1:node ./all_reduce_perf"), std::pair(16, 16));
  EXPECT_EQ(told("mpirun -np 16 --map-by ppr:4:socket ./all_reduce_perf"), std::pair(16, 0));
  EXPECT_EQ(told("mpirun -np 3 -H h1:1,h2:1,h3:1 ./all_reduce_perf"), std::pair(3, 3));
  EXPECT_EQ(told("mpirun -np 16 --host h1:8,h2:8,h3:8 ./all_reduce_perf"), std::pair(16, 2));
  EXPECT_EQ(told("mpirun -H h1:8,h2:8 ./all_reduce_perf"), std::pair(16, 2));
  EXPECT_EQ(told("mpirun -np 16 -host h1,h2 ./all_reduce_perf"), std::pair(16, 2));
  EXPECT_EQ(told("mpirun -np 2 --map-by node -H h1:8,h2:8 ./x_perf -g 8"), std::pair(2, 2));
  EXPECT_EQ(told("mpirun -np 4 -bynode -H h1:8,h2:8,h3:8,h4:8 ./x_perf"), std::pair(4, 4));
  EXPECT_EQ(told("mpirun -np 2 --bynode -H h1:8,h2:8,h3:8 ./x_perf"), std::pair(2, 2));
  EXPECT_EQ(told("mpirun -np 16 --map-by node:PE=4 -H h1:8,h2:8,h3:8 ./x_perf"), std::pair(16, 3));
  EXPECT_EQ(told("mpirun -np 16 --map-by slot -H h1:8,h2:8,h3:8 ./x_perf"), std::pair(16, 2));
  EXPECT_EQ(told("mpirun -np 4 --rankfile ranks -H h1:8,h2:8 ./x_perf"), std::pair(4, 0));
  EXPECT_EQ(told("mpirun -np 16 -H h1:8 -H h2:8 ./x_perf"), std::pair(16, 2));
  EXPECT_EQ(told("mpirun -np 16 -H=[fe80::1]:8,[fe80::2]:8 ./x_perf"), std::pair(16, 2));
  EXPECT_EQ(told("mpirun -np 16 -hostfile hosts ./all_reduce_perf"), std::pair(16, 0));
  EXPECT_EQ(told("mpirun -np 4 --pernode -H a:8,b:8,c:8,d:8 ./x_perf -g 8"), std::pair(4, 4));
  EXPECT_EQ(told("mpirun -pernode -H a:8,b:8 ./x_perf -g 8"), std::pair(2, 2));
  EXPECT_EQ(told("mpirun -np 16 --map-by ppr:2:socket -H a:8,b:8 ./x_perf"), std::pair(16, 0));
  EXPECT_EQ(told("mpirun -np 8 -npersocket 2 -H a:8,b:8 ./x_perf"), std::pair(8, 0));
  EXPECT_EQ(told("mpirun -np 1 -H a:8 ./x_perf : -np 1 -H b:8 ./x_perf"), std::pair(0, 0));
  // What stands behind a program that starts another is that one's.
  EXPECT_EQ(told("mpirun -np 16 -H a:8,b:8 numactl -N 1 ./x_perf"), std::pair(16, 2));
  EXPECT_EQ(told("srun -n16 --ntasks-per-node=8 numactl -N 1 -m 1 ./x_perf"), std::pair(16, 2));
  EXPECT_EQ(told("mpirun -np 16 /opt/bin/singularity exec -H /h x.sif ./x_perf"), std::pair(16, 0));
  EXPECT_EQ(told("mpirun -x SHELL=/bin/bash -np 16 -N 8 ./x_perf"), std::pair(16, 2));
  EXPECT_EQ(told("mpirun --prefix /opt/sh -x env -np 16 -N 8 ./x_perf"), std::pair(16, 2));
  EXPECT_EQ(told("bash -c \"mpirun -np 16 -N 8 ./x_perf"), std::pair(16, 2));
  EXPECT_EQ(launch_line("srun --ntasks-per-node=8 ./all_reduce_perf").processes_per_server, 8);
}

TEST(NcclRuns, GpusOfAProcessByItsOwnFlags) {
  EXPECT_EQ(launch_line("./all_reduce_perf -b 8 -g 8").process_gpus, 8);
  EXPECT_EQ(launch_line("mpirun -np 2 -N 1 ./x_perf --ngpus=4 --nthreads 2").process_gpus, 8);
  EXPECT_EQ(launch_line("srun -N2 ./x_perf -t 3").process_gpus, 3);
  EXPECT_EQ(launch_line("./x_perf -b 8 -e 1G").process_gpus, 0);
  EXPECT_EQ(launch_line("mpirun -g 4 -np 2 ./x_perf").process_gpus, 0);  // the launcher's
  const std::string sends =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "     1048576        262144     float     sum      -1    10.00  104.86  104.86      0\n";
  EXPECT_EQ(of("mpirun -np 2 -N 1 ./sendrecv_perf -g 8\n" + sends).settings.at(0).ranks, 16);
  EXPECT_EQ(of("./broadcast_perf -g 8\n" + sends).settings.at(0).ranks, 8);
  // What the program says itself goes before.
  const std::string says = "# nThread 1 nGpus 4 minBytes 1024 maxBytes 1024\n";
  EXPECT_EQ(of("./broadcast_perf -g 8\n" + says + sends).settings.at(0).ranks, 4);
}

// Two programs that do not know of each other, each with its device list, lines in turns.
TEST(NcclRuns, LinesOfSeveralRunsAreToldApartByTheirTags) {
  const auto lines = [](const std::string& host, const char* time) {
    const std::string device = " device  0 [0x1b] NVIDIA H100\n";
    return std::vector<std::string>{
        "# nThread 1 nGpus 2 minBytes 1024 maxBytes 1024\n",
        "#  Rank  0 Group  0 Pid 1 on " + host + device,
        "#  Rank  1 Group  0 Pid 1 on " + host + device,
        "#       size         count      type   redop    root     time   algbw   busbw #wrong\n",
        std::string("     1048576        262144     float     sum      -1    ") + time +
            "      0\n"};
  };
  const auto one = lines("h1", "10.00  104.86  104.86"), two = lines("h2", "20.00   52.43   52.43");
  std::string turns = "+ export NCCL_ALGO=Ring\n", sequence = turns;
  for (std::size_t i = 0; i < one.size(); ++i) {
    turns += "n1: " + one[i] + "n2: " + two[i];
    sequence += "n1: " + one[i];
  }
  for (const std::string& line : two) {
    sequence += "n2: " + line;
  }
  for (const std::string& text : {turns, sequence}) {
    const PhysicalLog log = read_log(text, "all_reduce.txt");
    ASSERT_EQ(log.settings.size(), 2U);
    EXPECT_EQ(log.settings[0].hosts, (std::vector<std::string>{"h1", "h1"}));
    EXPECT_EQ(log.settings[1].hosts, (std::vector<std::string>{"h2", "h2"}));
    EXPECT_EQ(log.settings[1].env.at("NCCL_ALGO"), "Ring");
    ASSERT_EQ(log.comms.size(), 2U);
    EXPECT_DOUBLE_EQ(log.comms[0].time_s, 10e-6);
    EXPECT_DOUBLE_EQ(log.comms[1].time_s, 20e-6);
    EXPECT_EQ(log.comms[1].setting, 1);
  }
  EXPECT_EQ(read_log(turns, "all_reduce.txt").settings[1].id, "all_reduce.txt#n2");
  EXPECT_EQ(read_log(turns, "all_reduce.txt").comms[1].line, 11);
}

// NCCL's node is a host, but for racks of one NVLink domain, containers of one host and hosts of
// one name. Of another number of ranks, a split communicator's, it says nothing about these.
TEST(NcclRuns, NcclsOwnNodes) {
  const auto told = [](const std::string& counts) {
    const PhysicalLog log = of(kHeader + kDevices + "h1:1:1 [0] NCCL INFO comm 0x1 rank 0 " +
                               counts + " - Init COMPLETE\n" + kRows);
    return std::tuple(log.settings.at(0).servers, log.settings.at(0).servers_by_nccl,
                      log.warnings.total());
  };
  EXPECT_EQ(told("nRanks 2 nNodes 1 localRanks 2"), std::tuple(1, true, 0));
  EXPECT_EQ(told("nRanks 2 nNodes 2 localRanks 1"), std::tuple(2, true, 1));
  EXPECT_EQ(told("nRanks 1 nNodes 1 localRanks 1"), std::tuple(1, false, 0));
  EXPECT_EQ(told("nranks 2"), std::tuple(1, false, 0));
}

TEST(NcclRuns, NicsOfTheHostThatHasFewest) {
  const auto host = [](const char* name, const char* nics) {
    return std::string(name) + ":1:1 [0] NCCL INFO NET/IB : Using " + nics + " [RO]; OOB eth0\n";
  };
  const std::string two = "[0]mlx5_0:1/IB [1]mlx5_1:1/IB", one = "[0]mlx5_0:1/IB";
  for (const std::string& lines : {host("h1", two.c_str()) + host("h2", one.c_str()),
                                   host("h2", one.c_str()) + host("h1", two.c_str())}) {
    const CommSetting setting = of(kHeader + lines + kRows).settings.at(0);
    EXPECT_EQ(setting.nics, (std::vector<std::string>{"mlx5_0:1/IB"}));
  }
}

// 183.5 / 104.86 = 1.75: 8 ranks.
TEST(NcclRuns, ServersByTheLauncherOrAName) {
  const auto told = [](const std::string& command, const std::string& name) {
    const PhysicalLog log = read_log(command + kHeader + kRows, name);
    const CommSetting& setting = log.settings.at(0);
    const std::string warning =
        log.warnings.entries().empty() ? "" : log.warnings.entries()[0].text.substr(0, 40);
    return std::tuple(setting.ranks, setting.servers, warning);
  };
  const std::string perf = " ./all_reduce_perf -b 1M\n", all = "all_reduce.log";
  EXPECT_EQ(told("srun --ntasks-per-node=2" + perf, all), std::tuple(8, 4, ""));
  EXPECT_EQ(told("srun -N 2" + perf, all), std::tuple(8, 2, ""));
  EXPECT_EQ(told(perf, all), std::tuple(8, 0, ""));
  EXPECT_EQ(told(perf, "exp-n4.log"), std::tuple(8, 4, ""));
  EXPECT_EQ(told(perf, "exp-n5.log"), std::tuple(8, 0, "a name tells a number of servers that th"));
  EXPECT_EQ(told("srun -N 8 -n 8" + perf, "exp-n8.log"), std::tuple(8, 8, ""));
  EXPECT_EQ(told("srun -N 8 -n 8" + perf, "exp-n4.log"),
            std::tuple(8, 8, "a name tells other servers than the comm"));
}

TEST(NcclRuns, TagsBeforeEachLine) {
  for (const std::string tag :
       {"nccl-test-worker-0 | ", "May 12 10:11:12 node1 nccl[123]: ", "10:11:12 ",
        "pod/nccl-test-0/launcher ", "<14>1 2024-01-02T10:00:00Z host app - - - ",
        "[1,0]<stdout>:", "node001: [0]: ", ""}) {
    std::string text;
    for (const std::string& line : {kHeader, kDevices, kRows}) {
      for (std::size_t at = 0; at < line.size();) {
        const std::size_t end = line.find('\n', at);
        text += tag + line.substr(at, end - at) + "\n";
        at = end + 1;
      }
    }
    const PhysicalLog log = of(text);
    ASSERT_EQ(log.comms.size(), 1U) << tag;
    EXPECT_EQ(log.comms[0].bytes, Bytes(1 << 20)) << tag;
    EXPECT_EQ(log.settings[0].ranks, 2) << tag;
  }
}

// The release stands in a line of its own, before the one that shows how long the tags are.
TEST(NcclRuns, ReleaseBehindTags) {
  const std::string tag = "May 12 10:11:12 node1 nccl[123]: ";
  const PhysicalLog log =
      of(tag + "# nccl-tests version 2.17.6 nccl-headers=22304 nccl-library=22304\n" + tag +
         "# Collective test starting: all_gather_perf\n" + tag + kHeader + tag +
         "#       size         count      type   redop    root     time   algbw   busbw #wrong\n" +
         tag +
         "     1048576         32768     float    none      -1    10.00  104.86   91.75      "
         "0\n");
  EXPECT_EQ(log.settings.at(0).nccl_version, "2.23.4");
  EXPECT_EQ(log.comms.at(0).op, CommType::kAllGather);
}

TEST(NcclRuns, GpuDirectByNicsAndByChannels) {
  const auto gdr = [](const std::string& lines) {
    return of(kHeader + kDevices + lines + kRows).settings.at(0).gdr;
  };
  const std::string info = "h1:1:1 [0] NCCL INFO ";
  const std::string on = info + "NET/IB : GPU Direct RDMA Enabled for HCA 0 'mlx5_0'\n";
  const std::string off = info + "NET/IB : GPU Direct RDMA Disabled for HCA 1 'mlx5_1'\n";
  EXPECT_EQ(gdr(""), std::nullopt);
  EXPECT_EQ(gdr(off), false);
  EXPECT_EQ(gdr(off + on), true);
  const std::string channel = info + "Channel 00/0 : 15[7] -> 0[0] [receive] via NET/IB/0";
  EXPECT_EQ(gdr(on + channel + "\n"), false);  // could, but does not
  EXPECT_EQ(gdr(off + channel + "/GDRDMA\n"), true);
  EXPECT_EQ(gdr(info + "Channel 00/0 : 1[7] -> 0[0] [receive] via NET/Socket/0\n"), std::nullopt);
}

TEST(NcclRuns, ErrorsOfNics) {
  const PhysicalLog log =
      of(kHeader + kDevices +
         "h1:1:1 [0] NCCL WARN NET/IB : mlx5_3:1 Got async event : port error\n" + kRows);
  ASSERT_EQ(log.settings.at(0).nic_errors.size(), 1U);
  EXPECT_NE(log.settings[0].nic_errors[0].find("mlx5_3:1"), std::string::npos);
}

// Release 1: other names, milliseconds, a deviation in place of wrong elements.
TEST(NcclRuns, ReleaseOne) {
  const PhysicalLog log = of(
      "#   Rank  0 uses device  0 [0x04] Tesla P100\n#   Rank  1 uses device  1 [0x05] Tesla P100\n"
      "#      bytes             N    type      op     time  algbw  busbw      res\n"
      "    10000000      10000000    char     sum    0.594  16.84  16.84    2e+00\n");
  ASSERT_EQ(log.comms.size(), 1U);
  EXPECT_DOUBLE_EQ(log.comms[0].time_s, 594e-6);
  EXPECT_DOUBLE_EQ(log.comms[0].wrong, 0);
  EXPECT_EQ(log.settings[0].ranks, 2);
  EXPECT_EQ(log.warnings.total(), 1);  // the operation: two ranks' all-reduce, or a reduce
}

TEST(NcclRuns, TimesAreCheckedAgainstBandwidths) {
  const std::string header =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n";
  const std::string row = "     1048576        262144     float     sum      -1    ";
  const PhysicalLog unit = of(header + row + "0.01  104.86  183.50      0\n");
  EXPECT_DOUBLE_EQ(unit.comms.at(0).time_s, 10e-6);
  EXPECT_EQ(unit.warnings.entries().at(0).text.substr(0, 37),
            "a table's times are in another unit t");
  const PhysicalLog wrong = of(header + row + "15.00  104.86  183.50      0\n");
  EXPECT_DOUBLE_EQ(wrong.comms.at(0).time_s, 15e-6);
  EXPECT_EQ(wrong.warnings.total(), 1);
  EXPECT_EQ(of(header + row + "10.00  104.86  183.50      0\n").warnings.total(), 0);
  // Eight ranks would have 183.5 of bus bandwidth; two are listed.
  const std::string two = "# Collective test starting: all_reduce_perf\n" + kDevices;
  const PhysicalLog other = of(two + header + row + "10.00  104.86  183.50      0\n");
  ASSERT_EQ(other.warnings.total(), 1);
  EXPECT_EQ(other.warnings.entries()[0].text.substr(0, 24), "a table's bus bandwidths");
  EXPECT_EQ(of(two + header + row + "10.00  104.86  104.86      0\n").warnings.total(), 0);
}

}  // namespace
}  // namespace lockstep::nccl_runs_test
