// Our own time lines, read back: the three forms of one tell the same operations.
#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/error_of.h"
#include "trace/log_reader.h"
#include "trace/perfetto_proto.h"
#include "trace/timeline.h"

namespace lockstep::timeline_readers_test {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Two ranks: computations, one of them within another and two that overlap, and an all-reduce that
/// rank 1 enters last.
Timeline two_ranks() {
  Timeline line;
  line.tracks = {{"rank 3", -1, 3}, {"compute", 0, 0}, {"tp", 0, 1},
                 {"rank 5", -1, 5}, {"compute", 3, 0}, {"tp", 3, 1}};
  line.names = {"attention, forward", "mlp", "allreduce"};
  line.kinds = {"compute", "allreduce"};
  line.keys = {"microbatch", "bytes"};
  line.arguments = {{0, 2}, {1, 4096}, {1, 4096}};
  line.events = {
      {1, 0, 0, 1, 0, Time::us(5), Time::us(9)},    //
      {1, 1, 0, 0, 0, Time::us(6), Time::us(8)},    // within it
      {1, 1, 0, 0, 0, Time::us(7), Time::us(12)},   // on from it
      {2, 2, 1, 1, 1, Time::us(12), Time::us(20)},  //
      {4, 0, 0, 0, 0, Time::us(5), Time::us(14)},   //
      {5, 2, 1, 1, 2, Time::us(14), Time::us(20)},  //
      {4, 1, 0, 0, 0, Time::us(20), Time::us(20)},  // takes no time
  };
  line.flows = {{5, 3}};
  return line;
}

class TimelineReaders : public ::testing::Test {
 protected:
  PhysicalLog written(const Timeline& line, const std::string& ending) {
    const std::string path = ::testing::TempDir() + "timeline_readers_test" + ending;
    if (ending.find("json") != std::string::npos) {
      write_chrome_trace(line, path);
    } else if (ending.find("csv") != std::string::npos) {
      write_timeline_csv(line, path);
    } else {
      write_perfetto_proto(line, path);
    }
    std::vector<PhysicalLog> logs = read_logs(path);
    std::filesystem::remove(path);
    EXPECT_EQ(logs.size(), 1U);
    return logs.at(0);
  }
};

struct Op {
  std::int32_t rank;
  OpKind kind;
  CommType op;
  std::string name, group;
  std::int64_t bytes, begin_ps, duration_ps;
  bool joined;
  auto operator<=>(const Op&) const = default;
};
void PrintTo(const Op& op, std::ostream* out) {
  *out << op.rank << ' ' << op.name << ' ' << op.group << ' ' << op.bytes << ' ' << op.begin_ps
       << '+' << op.duration_ps << (op.joined ? " joined" : "");
}

std::vector<Op> ops_of(const PhysicalLog& log, bool with_arrows) {
  std::vector<Op> ops;
  for (const OpRow& op : log.ops) {
    const auto ps = [](double s) { return static_cast<std::int64_t>(s * 1e12 + 0.5); };
    ops.push_back({op.rank, op.kind, op.op, log.names[static_cast<std::size_t>(op.name)],
                   op.group < 0 ? "" : log.groups[static_cast<std::size_t>(op.group)], op.bytes,
                   ps(op.begin_s), ps(op.duration_s), with_arrows && op.occurrence >= 0});
  }
  std::ranges::sort(ops);
  return ops;
}

TEST_F(TimelineReaders, AllFormsTellTheSame) {
  const Timeline line = two_ranks();
  const PhysicalLog json = written(line, ".json");
  ASSERT_EQ(json.ops.size(), line.events.size());
  for (const char* ending : {".pftrace", ".pftrace.gz", ".csv", ".csv.gz"}) {
    const bool perfetto = std::string(ending).starts_with(".pf");
    const PhysicalLog log = written(line, ending);
    EXPECT_EQ(log.format, perfetto ? "perfetto" : "timeline-csv");
    EXPECT_THAT(log.warnings.entries(), IsEmpty());
    EXPECT_EQ(ops_of(log, true), ops_of(json, true)) << ending;
    EXPECT_EQ(log.facts.at("begin_s"), json.facts.at("begin_s"));
  }
}

TEST_F(TimelineReaders, ManyNamesAreOneSequence) {
  Timeline line = two_ranks();
  for (int i = 0; i < 40; ++i) {  // so long that lines share their names
    line.names.push_back(std::string(150, 'n') + std::to_string(i));
    const Time begin = Time::us(100 + 3 * i);
    line.events.push_back({i % 2 == 0 ? 1 : 4, i + 3, 0, 0, 0, begin, begin + Time::us(2)});
  }
  EXPECT_EQ(ops_of(written(line, ".pftrace"), true), ops_of(written(line, ".json"), true));
}

std::string bytes_of(const Timeline& line) {
  std::string bytes;
  perfetto_proto(line, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

TEST_F(TimelineReaders, APieceOfAPerfettoFileGivesWhatIsInIt) {
  const std::string bytes = bytes_of(two_ranks());
  std::size_t most = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    try {
      const PhysicalLog log = read_log(bytes.substr(0, size), "piece.pftrace");
      EXPECT_GE(log.ops.size(), most);
      most = log.ops.size();
    } catch (const Error&) {
      EXPECT_EQ(most, 0U);
    }
  }
  EXPECT_EQ(most, two_ranks().events.size());
}

TEST_F(TimelineReaders, RowsOfACsv) {
  const std::string header = "rank,track,kind,name,begin_s,end_s,bytes\n";
  const PhysicalLog log = read_log(header +
                                       "0,dp,allgather,\"a, b\",1.000000000001,2,64\n"
                                       "x,dp,allgather,a,1,2,64\n"
                                       "0,dp,allgather,a,2,1,64\n"
                                       "0,dp,allgather,a,1,2,-1\n"
                                       "0,dp,allgather,a,1,1e30,1\n"
                                       "0,dp,allgather,a,1\n",
                                   "t.csv");
  ASSERT_EQ(log.ops.size(), 1U);
  EXPECT_EQ(log.names.at(0), "a, b");
  EXPECT_EQ(log.ops[0].op, CommType::kAllGather);
  EXPECT_NEAR(log.ops[0].duration_s, 1 - 1e-12, 1e-15);
  EXPECT_EQ(log.warnings.total(), 5);
  EXPECT_THAT(error_of([&] { (void)read_log(header, "t.csv"); }), HasSubstr("no rows"));
  const PhysicalLog joined = read_log(
      "rank,track,kind,name,begin_s,end_s,bytes,together\n"
      "0,dp,allgather,a,1,2,64,7\n"
      "1,dp,allgather,a,1,2,64,\n"
      "2,dp,allgather,a,1,2,64,7\n"
      "3,dp,allgather,a,1,2,64,x\n",
      "t.csv");
  ASSERT_EQ(joined.ops.size(), 3U);
  EXPECT_GE(joined.ops[0].occurrence, 0);
  EXPECT_EQ(joined.ops[0].occurrence, joined.ops[2].occurrence);
  EXPECT_EQ(joined.ops[1].occurrence, -1);
  EXPECT_EQ(joined.warnings.total(), 1);
}

}  // namespace
}  // namespace lockstep::timeline_readers_test
