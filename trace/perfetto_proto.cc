#include "trace/perfetto_proto.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/gzip_file.h"

namespace lockstep {
namespace {

// Field numbers of the messages in perfetto/protos/perfetto/trace, by message.
enum Trace : protozero::pbf_tag_type { kPacket = 1 };
enum Packet : protozero::pbf_tag_type {
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kTrackDescriptor = 60,
};
enum Descriptor : protozero::pbf_tag_type {
  kUuid = 1,
  kName = 2,
  kParentUuid = 5,
  kChildOrdering = 11,
  kSiblingOrderRank = 12,
};
enum Event : protozero::pbf_tag_type {
  kCategoryIid = 3,
  kAnnotation = 4,
  kType = 9,
  kNameIid = 10,
  kTrackUuid = 11,
  kFlowIds = 47,
  kTerminatingFlowIds = 48,
};
enum Annotation : protozero::pbf_tag_type { kKeyIid = 1, kInt = 4 };
enum Interned : protozero::pbf_tag_type { kCategories = 1, kNames = 2, kKeys = 3 };
enum InternedText : protozero::pbf_tag_type { kIid = 1, kText = 2 };

constexpr std::uint32_t kSequence = 1;  // of packets; any number but 0
constexpr std::uint32_t kStateCleared = 1, kNeedsState = 2;
constexpr std::int32_t kExplicitOrder = 3;
constexpr std::int32_t kSliceBegin = 1, kSliceEnd = 2;

using Writer = protozero::pbf_writer;

std::uint64_t nanoseconds(Time time) { return static_cast<std::uint64_t>(time.count_ps() / 1000); }

/// Of the flows that start or end at each event: those of event e are ids[first[e] … first[e + 1]).
struct FlowsOfEvents {
  std::vector<std::int64_t> first, ids;

  FlowsOfEvents(const Timeline& timeline, std::int64_t TimelineFlow::*end)
      : first(timeline.events.size() + 1), ids(timeline.flows.size()) {
    for (const TimelineFlow& flow : timeline.flows) {
      ++first[static_cast<std::size_t>(flow.*end) + 1];
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    std::vector<std::int64_t> next(first.begin(), first.end() - 1);
    for (std::size_t i = 0; i < timeline.flows.size(); ++i) {
      const auto event = static_cast<std::size_t>(timeline.flows[i].*end);
      ids[static_cast<std::size_t>(next[event]++)] = static_cast<std::int64_t>(i);
    }
  }
};

class ProtoTrace {
 public:
  ProtoTrace(const Timeline& timeline, const std::function<void(std::string_view)>& out)
      : timeline_(timeline),
        out_(out),
        starting_(timeline, &TimelineFlow::from),
        ending_(timeline, &TimelineFlow::to),
        next_uuid_(timeline.tracks.size() + 1) {}

  void write() {
    interned();
    for (std::size_t track = 0; track < timeline_.tracks.size(); ++track) {
      descriptor(uuid_of(track), track);
    }
    std::vector<std::size_t> order(timeline_.events.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const TimelineEvent &x = timeline_.events[a], &y = timeline_.events[b];
      return x.track != y.track   ? x.track < y.track
             : x.begin != y.begin ? x.begin < y.begin
                                  : x.end > y.end;
    });
    for (std::size_t i = 0; i < order.size();) {
      const std::int32_t track = timeline_.events[order[i]].track;
      const std::size_t first = i;
      while (i < order.size() && timeline_.events[order[i]].track == track) {
        ++i;
      }
      slices(static_cast<std::size_t>(track), std::span(order).subspan(first, i - first));
    }
    out_(buffer_);
  }

 private:
  /// A track's bars that have begun and not ended, the innermost last.
  struct Lane {
    std::uint64_t uuid = 0;
    std::vector<std::size_t> open;
  };

  static std::uint64_t uuid_of(std::size_t track) { return track + 1; }

  /// Writes one packet that `fill(writer)` fills.
  template <class Fill>
  void packet(std::uint32_t flags, Fill&& fill) {
    Writer trace(buffer_);
    {
      Writer packet(trace, kPacket);
      packet.add_uint32(kSequenceId, kSequence);
      packet.add_uint32(kSequenceFlags, flags);
      fill(packet);
    }
    if (buffer_.size() > (1U << 20)) {
      out_(buffer_);
      buffer_.clear();
    }
  }

  void interned() {
    packet(kStateCleared | kNeedsState, [&](Writer& packet) {
      Writer data(packet, kInternedData);
      const auto texts = [&](Interned field, const std::vector<std::string>& all) {
        for (std::size_t i = 0; i < all.size(); ++i) {
          Writer text(data, field);
          text.add_uint64(kIid, i + 1);
          text.add_string(kText, all[i]);
        }
      };
      texts(kCategories, timeline_.kinds);
      texts(kNames, timeline_.names);
      texts(kKeys, timeline_.keys);
    });
  }

  void descriptor(std::uint64_t uuid, std::size_t track) {
    const TimelineTrack& what = timeline_.tracks[track];
    packet(kNeedsState, [&](Writer& packet) {
      Writer out(packet, kTrackDescriptor);
      out.add_uint64(kUuid, uuid);
      out.add_string(kName, what.name);
      if (what.parent >= 0) {
        out.add_uint64(kParentUuid, uuid_of(static_cast<std::size_t>(what.parent)));
      }
      out.add_enum(kChildOrdering, kExplicitOrder);
      out.add_int32(kSiblingOrderRank, static_cast<std::int32_t>(track));
    });
  }

  void slices(std::size_t track, std::span<const std::size_t> events) {
    std::vector<Lane> lanes{{uuid_of(track), {}}};
    for (const std::size_t event : events) {
      const TimelineEvent& what = timeline_.events[event];
      for (Lane& lane : lanes) {
        while (!lane.open.empty() && timeline_.events[lane.open.back()].end <= what.begin) {
          end(lane);
        }
      }
      auto lane = std::ranges::find_if(lanes, [&](const Lane& each) {
        return each.open.empty() || timeline_.events[each.open.back()].end >= what.end;
      });
      if (lane == lanes.end()) {
        descriptor(next_uuid_, track);
        lane = lanes.insert(lane, {next_uuid_++, {}});
      }
      begin(*lane, event);
    }
    for (Lane& lane : lanes) {
      while (!lane.open.empty()) {
        end(lane);
      }
    }
  }

  void begin(Lane& lane, std::size_t event) {
    const TimelineEvent& what = timeline_.events[event];
    slice(what.begin, lane.uuid, kSliceBegin, [&](Writer& out) {
      out.add_uint64(kNameIid, static_cast<std::uint64_t>(what.name) + 1);
      out.add_uint64(kCategoryIid, static_cast<std::uint64_t>(what.kind) + 1);
      for (std::int64_t i = 0; i < what.arguments; ++i) {
        const TimelineArgument& argument =
            timeline_.arguments[static_cast<std::size_t>(what.first_argument + i)];
        Writer annotation(out, kAnnotation);
        annotation.add_uint64(kKeyIid, static_cast<std::uint64_t>(argument.key) + 1);
        annotation.add_int64(kInt, argument.value);
      }
      flows(out, kFlowIds, starting_, event);
    });
    lane.open.push_back(event);
  }

  void end(Lane& lane) {
    const std::size_t event = lane.open.back();
    lane.open.pop_back();
    slice(timeline_.events[event].end, lane.uuid, kSliceEnd,
          [&](Writer& out) { flows(out, kTerminatingFlowIds, ending_, event); });
  }

  template <class Fill>
  void slice(Time when, std::uint64_t uuid, std::int32_t type, Fill&& fill) {
    packet(kNeedsState, [&](Writer& packet) {
      packet.add_uint64(kTimestamp, nanoseconds(when));
      Writer out(packet, kTrackEvent);
      out.add_enum(kType, type);
      out.add_uint64(kTrackUuid, uuid);
      fill(out);
    });
  }

  static void flows(Writer& out, Event field, const FlowsOfEvents& flows, std::size_t event) {
    for (std::int64_t i = flows.first[event]; i < flows.first[event + 1]; ++i) {
      out.add_fixed64(field,
                      static_cast<std::uint64_t>(flows.ids[static_cast<std::size_t>(i)]) + 1);
    }
  }

  const Timeline& timeline_;
  const std::function<void(std::string_view)>& out_;
  FlowsOfEvents starting_, ending_;
  std::uint64_t next_uuid_;
  std::string buffer_;
};

}  // namespace

void perfetto_proto(const Timeline& timeline, const std::function<void(std::string_view)>& out) {
  ProtoTrace(timeline, out).write();
}

void write_perfetto_proto(const Timeline& timeline, const std::string& path) {
  GzipFile file(path);
  perfetto_proto(timeline, [&](std::string_view bytes) { file.write(bytes); });
  file.commit();
}

}  // namespace lockstep
