// Decodes what is written with a reader of its own, by the field numbers of Perfetto's documents.
#include "trace/perfetto_proto.h"

#include <map>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::perfetto_proto_test {
namespace {

using protozero::pbf_reader;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Decoded {
  struct Track {
    std::string name;
    std::uint64_t parent = 0;
    std::int32_t order = 0;
  };
  struct Event {
    std::uint64_t when = 0, track = 0;
    std::int32_t type = 0;
    std::string name, category;
    std::map<std::string, std::int64_t> annotations;
    std::vector<std::uint64_t> starts, ends;
  };
  std::map<std::uint64_t, Track> tracks;
  std::vector<Event> events;
  /// What the packets of a sequence rest on.
  struct Sequence {
    bool cleared = false;
    std::uint64_t delta_clock = 0, boot_clock = 0, track = 0;
    std::map<std::uint64_t, std::string> names, categories, keys;
  };
  std::map<std::uint32_t, Sequence> sequences;

  static void intern(Sequence& own, pbf_reader data) {
    while (data.next()) {
      auto& into = data.tag() == 1 ? own.categories : data.tag() == 2 ? own.names : own.keys;
      pbf_reader text = data.get_message();
      std::uint64_t iid = 0;
      while (text.next()) {
        if (text.tag() == 1) {
          iid = text.get_uint64();
        } else {
          EXPECT_TRUE(into.emplace(iid, text.get_string()).second) << "known already";
        }
      }
    }
  }

  /// The two clocks of a sequence that begins: the trace's, and one that counts on from packet to
  /// packet.
  static void read_clocks(Sequence& own, pbf_reader data) {
    while (data.next(1)) {
      pbf_reader clock = data.get_message();
      std::uint32_t id = 0;
      std::uint64_t reading = 0;
      bool incremental = false;
      while (clock.next()) {
        if (clock.tag() == 1) {
          id = clock.get_uint32();
        } else if (clock.tag() == 2) {
          reading = clock.get_uint64();
        } else {
          EXPECT_EQ(clock.tag(), 3U);
          incremental = clock.get_bool();
        }
      }
      EXPECT_EQ(incremental, id == 64);
      (id == 64 ? own.delta_clock : own.boot_clock) = reading;
    }
    EXPECT_EQ(own.delta_clock, own.boot_clock);
  }

  static void read_defaults(Sequence& own, pbf_reader data) {
    while (data.next()) {
      if (data.tag() == 58) {
        EXPECT_EQ(data.get_uint32(), 64U);
        continue;
      }
      EXPECT_EQ(data.tag(), 11U);
      pbf_reader event = data.get_message();
      while (event.next(11)) {
        own.track = event.get_uint64();
      }
    }
  }

  void describe(pbf_reader data) {
    std::uint64_t uuid = 0;
    Track track;
    while (data.next()) {
      switch (data.tag()) {
        case 1:
          uuid = data.get_uint64();
          break;
        case 2:
          track.name = data.get_string();
          break;
        case 5:
          track.parent = data.get_uint64();
          break;
        case 12:
          track.order = data.get_int32();
          break;
        default:
          data.skip();
      }
    }
    EXPECT_TRUE(tracks.emplace(uuid, track).second) << "a track is described twice";
  }

  static void annotate(const Sequence& own, Event& event, pbf_reader data) {
    std::uint64_t key = 0;
    while (data.next()) {
      if (data.tag() == 1) {
        key = data.get_uint64();
      } else {
        event.annotations[own.keys.at(key)] = data.get_int64();
      }
    }
  }

  void happen(Sequence& own, std::uint64_t delta, pbf_reader data) {
    EXPECT_TRUE(own.cleared);
    Event event;
    event.when = own.track == 0 ? delta : own.delta_clock += delta;
    event.track = own.track;
    while (data.next()) {
      switch (data.tag()) {
        case 3:
          event.category = own.categories.at(data.get_uint64());
          break;
        case 4:
          annotate(own, event, data.get_message());
          break;
        case 9:
          event.type = data.get_enum();
          break;
        case 10:
          event.name = own.names.at(data.get_uint64());
          break;
        case 11:
          EXPECT_EQ(own.track, 0U) << "a track beside the default";
          event.track = data.get_uint64();
          break;
        case 47:
          event.starts.push_back(data.get_fixed64());
          break;
        case 48:
          event.ends.push_back(data.get_fixed64());
          break;
        default:
          ADD_FAILURE() << "unknown field " << data.tag();
          data.skip();
      }
    }
    EXPECT_EQ(tracks.count(event.track), 1U) << "an event on a track not described before";
    events.push_back(event);
  }

  explicit Decoded(const std::string& bytes) {
    pbf_reader trace(bytes);
    while (trace.next(1)) {
      pbf_reader packet = trace.get_message();
      std::uint64_t when = 0;
      std::uint32_t sequence = 0;
      while (packet.next()) {
        Sequence& own = sequences[sequence];
        switch (packet.tag()) {
          case 6:
            read_clocks(own, packet.get_message());
            break;
          case 8:
            when = packet.get_uint64();
            break;
          case 10:
            sequence = packet.get_uint32();
            EXPECT_GT(sequence, 0U);
            break;
          case 11:
            happen(own, when, packet.get_message());
            break;
          case 12:
            intern(own, packet.get_message());
            break;
          case 13:
            if ((packet.get_uint32() & 1U) != 0) {
              own = {.cleared = true};
            }
            break;
          case 59:
            read_defaults(own, packet.get_message());
            break;
          case 60:
            describe(packet.get_message());
            break;
          default:
            ADD_FAILURE() << "unknown field " << packet.tag();
            packet.skip();
        }
      }
    }
  }

  /// The bars of a track by the rule of the format: an end closes the innermost open bar.
  std::vector<std::string> bars(std::uint64_t track) const {
    std::vector<std::string> out;
    std::vector<const Event*> open;
    for (const Event& event : events) {
      if (event.track != track) {
        continue;
      }
      if (event.type == 1) {
        open.push_back(&event);
      } else {
        EXPECT_EQ(event.type, 2);
        EXPECT_FALSE(open.empty());
        out.push_back(open.back()->name + " " + std::to_string(open.back()->when) + "-" +
                      std::to_string(event.when));
        open.pop_back();
      }
    }
    EXPECT_THAT(open, IsEmpty());
    return out;
  }
};

std::string proto(const Timeline& timeline) {
  std::string bytes;
  perfetto_proto(timeline, [&](std::string_view piece) { bytes += piece; });
  return bytes;
}

Timeline two_ranks() {
  Timeline t;
  t.tracks = {{"rank 0", -1, 0}, {"compute", 0, 0}, {"rank 1", -1, 1}, {"pp", 2, 0}};
  t.names = {"forward", "send", "receive"};
  t.kinds = {"compute", "sendrecv"};
  t.keys = {"bytes", "microbatch"};
  return t;
}

TEST(PerfettoProto, TracksSlicesNumbersAndFlows) {
  Timeline t = two_ranks();
  t.arguments = {{1, -3}, {0, std::int64_t{1} << 40}};
  t.events = {{1, 0, 0, 1, 0, Time::us(1), Time::us(3)},
              {1, 1, 1, 1, 1, Time::us(3), Time::us(4)},
              {3, 2, 1, 0, 2, Time::us(2), Time::us(5)}};
  t.flows = {{1, 2}};
  const Decoded got(proto(t));
  // One of descriptors, one of each of the two lines of bars.
  EXPECT_EQ(got.sequences.size() - got.sequences.count(0), 3U);
  ASSERT_EQ(got.tracks.size(), 4U);
  EXPECT_EQ(got.tracks.at(1).name, "rank 0");
  EXPECT_EQ(got.tracks.at(1).parent, 0U);
  EXPECT_EQ(got.tracks.at(4).name, "pp");
  EXPECT_EQ(got.tracks.at(4).parent, 3U);
  EXPECT_LT(got.tracks.at(1).order, got.tracks.at(3).order);
  EXPECT_THAT(got.bars(2), ElementsAre("forward 1000-3000", "send 3000-4000"));
  EXPECT_THAT(got.bars(4), ElementsAre("receive 2000-5000"));
  const auto& forward = got.events.front();
  EXPECT_EQ(forward.category, "compute");
  EXPECT_EQ(forward.annotations, (std::map<std::string, std::int64_t>{{"microbatch", -3}}));
  for (const auto& event : got.events) {
    const bool starts = event.type == 1 && event.name == "send";
    EXPECT_THAT(event.starts, starts ? ::testing::SizeIs(1) : ::testing::SizeIs(0));
    if (starts) {
      EXPECT_EQ(event.annotations.at("bytes"), std::int64_t{1} << 40);
    }
    // The arrow points to where the receive ends.
    EXPECT_THAT(event.ends,
                event.type == 2 && event.track == 4 ? ::testing::SizeIs(1) : ::testing::SizeIs(0));
  }
}

TEST(PerfettoProto, NestedBarsShareATrackAndOthersGetAnother) {
  Timeline t = two_ranks();
  // 0-10 holds 2-5 and an empty one at 10; 8-12 overlaps it; 12-13 touches.
  t.events = {{1, 1, 0, 0, 0, Time::us(8), Time::us(12)},
              {1, 0, 0, 0, 0, Time::us(0), Time::us(10)},
              {1, 2, 0, 0, 0, Time::us(10), Time::us(10)},
              {1, 2, 0, 0, 0, Time::us(2), Time::us(5)},
              {1, 0, 0, 0, 0, Time::us(12), Time::us(13)}};
  const Decoded got(proto(t));
  ASSERT_EQ(got.tracks.size(), 5U);
  EXPECT_EQ(got.tracks.at(5).name, "compute");
  EXPECT_EQ(got.tracks.at(5).parent, got.tracks.at(2).parent);
  EXPECT_THAT(got.bars(2), ElementsAre("receive 2000-5000", "forward 0-10000",
                                       "receive 10000-10000", "forward 12000-13000"));
  EXPECT_THAT(got.bars(5), ElementsAre("send 8000-12000"));
}

TEST(PerfettoProto, RoundsDownSoThatWhatTouchedStillTouches) {
  Timeline t = two_ranks();
  t.events = {{1, 0, 0, 0, 0, Time::ps(1), Time::ps(1999)},
              {1, 1, 0, 0, 0, Time::ps(1999), Time::ps(1'000'000'000'000'001)}};
  EXPECT_THAT(Decoded(proto(t)).bars(2), ElementsAre("forward 0-1", "send 1-1000000000000"));
}

// Each bar has a name of its own: one sequence, which knows it once.
TEST(PerfettoProto, ManyNamesAreASequenceForAll) {
  Timeline t = two_ranks();
  for (int i = 0; i < 20; ++i) {
    t.names.push_back("a name that is long enough to count, number " + std::to_string(i));
    for (const std::int32_t track : {1, 3}) {
      t.events.push_back({track, 3 + i, 0, 0, 0, Time::us(i), Time::us(i + 1)});
    }
  }
  const std::string bytes = proto(t);
  const Decoded got(bytes);
  EXPECT_EQ(got.sequences.size() - got.sequences.count(0), 2U);
  EXPECT_EQ(got.bars(2).size(), 20U);
  EXPECT_EQ(got.bars(4).back(), t.names.back() + " 19000-20000");
  EXPECT_EQ(bytes.find("number 7"), bytes.rfind("number 7"));
}

TEST(PerfettoProto, ACategoryThatIsTheNameIsLeftOut) {
  Timeline t = two_ranks();
  t.kinds = t.names;
  t.events = {{1, 0, 0, 0, 0, Time::us(1), Time::us(2)}, {1, 1, 0, 0, 0, Time::us(2), Time::us(3)}};
  const Decoded got(proto(t));
  EXPECT_EQ(got.events.at(0).category, "");
  EXPECT_EQ(got.events.at(2).category, "forward");
}

TEST(PerfettoProto, AnEmptyTimelineHasOnlyItsTracks) {
  EXPECT_THAT(Decoded(proto(two_ranks())).events, IsEmpty());
  EXPECT_THAT(Decoded(proto({})).tracks, IsEmpty());
}

TEST(PerfettoProto, ManyEventsComeInPieces) {
  Timeline t = two_ranks();
  for (int i = 0; i < 50'000; ++i) {
    t.events.push_back({1, i % 3, 0, 0, 0, Time::us(i), Time::us(i + 1)});
  }
  std::string bytes;
  int pieces = 0;
  perfetto_proto(t, [&](std::string_view piece) {
    EXPECT_LT(piece.size(), 2U << 20);
    bytes += piece;
    ++pieces;
  });
  EXPECT_GT(pieces, 1);
  EXPECT_EQ(Decoded(bytes).bars(2).size(), 50'000U);
}

}  // namespace
}  // namespace lockstep::perfetto_proto_test
