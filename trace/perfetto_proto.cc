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
#include "trace/perfetto_fields.h"

namespace lockstep {
namespace {

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
    by_lines_ = worth_a_sequence_a_line(order);
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
  /// Texts that a sequence knows by number.
  struct Known {
    std::vector<bool> kinds, names, keys;
  };
  /// A line of bars. By lines, its packets are a sequence of their own, in which a time is the one
  /// since the packet before, and the track need not be named.
  struct Lane {
    std::uint64_t uuid = 0;
    std::vector<std::size_t> open = {};  ///< bars that have begun and not ended, innermost last
    Known known = {};
    std::uint64_t last_ns = 0;
    bool begun = false;
  };

  static std::uint64_t uuid_of(std::size_t track) { return track + 1; }
  /// Descriptors are sequence 1.
  std::uint32_t sequence_of(const Lane& lane) const {
    return by_lines_ ? static_cast<std::uint32_t>(lane.uuid) + 1 : 2;
  }

  /// Whether the shorter times and absent tracks weigh more than names that each line makes known
  /// anew. `order`: by track.
  bool worth_a_sequence_a_line(const std::vector<std::size_t>& order) const {
    constexpr std::size_t kSpared = 12;  // bytes an event: begin and end
    std::vector<std::int32_t> last(timeline_.names.size(), -1);
    std::size_t texts = 0, spared = 0;
    for (const std::size_t i : order) {
      const TimelineEvent& event = timeline_.events[i];
      const auto name = static_cast<std::size_t>(event.name);
      spared += kSpared;
      if (last[name] != event.track) {
        last[name] = event.track;
        texts += timeline_.names[name].size();
      }
    }
    return texts <= spared;
  }

  /// Writes one packet that `fill(writer)` fills.
  template <class Fill>
  void packet(std::uint32_t sequence, std::uint32_t flags, Fill&& fill) {
    Writer trace(buffer_);
    {
      Writer packet(trace, perfetto::kPacket);
      packet.add_uint32(perfetto::kSequenceId, sequence);
      packet.add_uint32(perfetto::kSequenceFlags, flags);
      fill(packet);
    }
    if (buffer_.size() > (1U << 20)) {
      out_(buffer_);
      buffer_.clear();
    }
  }

  Known nothing_known() const {
    return {std::vector<bool>(timeline_.kinds.size()), std::vector<bool>(timeline_.names.size()),
            std::vector<bool>(timeline_.keys.size())};
  }

  /// Opens the sequence of a lane, whose times count from `now`; or the one that all share.
  void open(Lane& lane, std::uint64_t now) {
    lane.begun = true;
    if (!by_lines_) {
      if (shared_.names.empty()) {
        shared_ = nothing_known();
        packet(sequence_of(lane), perfetto::kStateCleared, [](Writer&) {});
      }
      return;
    }
    lane.last_ns = now;
    lane.known = nothing_known();
    packet(sequence_of(lane), perfetto::kStateCleared, [&](Writer& packet) {
      {
        Writer snapshot(packet, perfetto::kClockSnapshot);
        {
          Writer clock(snapshot, perfetto::kClocks);
          clock.add_uint32(perfetto::kClockId, perfetto::kTraceClock);
          clock.add_uint64(perfetto::kReading, now);
        }
        Writer clock(snapshot, perfetto::kClocks);
        clock.add_uint32(perfetto::kClockId, perfetto::kDeltaClock);
        clock.add_uint64(perfetto::kReading, now);
        clock.add_bool(perfetto::kIncremental, true);
      }
      Writer defaults(packet, perfetto::kDefaults);
      {
        Writer event(defaults, perfetto::kEventDefaults);
        event.add_uint64(perfetto::kTrackUuid, lane.uuid);
      }
      defaults.add_uint32(perfetto::kTimestampClock, perfetto::kDeltaClock);
    });
  }

  /// Whether a category says more than the name does.
  bool categorised(const TimelineEvent& what) const {
    return timeline_.kinds[static_cast<std::size_t>(what.kind)] !=
           timeline_.names[static_cast<std::size_t>(what.name)];
  }

  /// Writes what of the bar's texts the lane's sequence does not know yet.
  void intern(Lane& lane, const TimelineEvent& what, Writer& packet) {
    Known& known = by_lines_ ? lane.known : shared_;
    const auto for_each_text = [&](auto&& f) {
      if (categorised(what)) {
        f(perfetto::kCategories, known.kinds, timeline_.kinds, static_cast<std::size_t>(what.kind));
      }
      f(perfetto::kNames, known.names, timeline_.names, static_cast<std::size_t>(what.name));
      for (std::int64_t i = 0; i < what.arguments; ++i) {
        const auto at = static_cast<std::size_t>(what.first_argument + i);
        f(perfetto::kKeys, known.keys, timeline_.keys,
          static_cast<std::size_t>(timeline_.arguments[at].key));
      }
    };
    bool all_known = true;
    for_each_text([&](perfetto::Interned, const std::vector<bool>& own, const auto&,
                      std::size_t i) { all_known = all_known && own[i]; });
    if (all_known) {
      return;
    }
    Writer data(packet, perfetto::kInternedData);
    for_each_text([&](perfetto::Interned field, std::vector<bool>& own,
                      const std::vector<std::string>& all, std::size_t i) {
      if (!own[i]) {
        own[i] = true;
        Writer text(data, field);
        text.add_uint64(perfetto::kIid, i + 1);
        text.add_string(perfetto::kText, all[i]);
      }
    });
  }

  void descriptor(std::uint64_t uuid, std::size_t track) {
    const TimelineTrack& what = timeline_.tracks[track];
    packet(1, 0, [&](Writer& packet) {
      Writer out(packet, perfetto::kTrackDescriptor);
      out.add_uint64(perfetto::kUuid, uuid);
      out.add_string(perfetto::kName, what.name);
      if (what.parent >= 0) {
        out.add_uint64(perfetto::kParentUuid, uuid_of(static_cast<std::size_t>(what.parent)));
      }
      out.add_enum(perfetto::kChildOrdering, perfetto::kExplicitOrder);
      out.add_int32(perfetto::kSiblingOrderRank, static_cast<std::int32_t>(track));
    });
  }

  void slices(std::size_t track, std::span<const std::size_t> events) {
    std::vector<Lane> lanes{{.uuid = uuid_of(track)}};
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
        lane = lanes.insert(lane, {.uuid = next_uuid_++});
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
    if (!lane.begun) {
      open(lane, nanoseconds(what.begin));
    }
    slice(lane, what.begin, perfetto::kSliceBegin, &what, [&](Writer& out) {
      out.add_uint64(perfetto::kNameIid, static_cast<std::uint64_t>(what.name) + 1);
      if (categorised(what)) {
        out.add_uint64(perfetto::kCategoryIid, static_cast<std::uint64_t>(what.kind) + 1);
      }
      for (std::int64_t i = 0; i < what.arguments; ++i) {
        const TimelineArgument& argument =
            timeline_.arguments[static_cast<std::size_t>(what.first_argument + i)];
        Writer annotation(out, perfetto::kAnnotation);
        annotation.add_uint64(perfetto::kKeyIid, static_cast<std::uint64_t>(argument.key) + 1);
        annotation.add_int64(perfetto::kInt, argument.value);
      }
      flows(out, perfetto::kFlowIds, starting_, event);
    });
    lane.open.push_back(event);
  }

  void end(Lane& lane) {
    const std::size_t event = lane.open.back();
    lane.open.pop_back();
    slice(lane, timeline_.events[event].end, perfetto::kSliceEnd, nullptr,
          [&](Writer& out) { flows(out, perfetto::kTerminatingFlowIds, ending_, event); });
  }

  /// `texts_of`: a bar whose texts the packet has to make known.
  template <class Fill>
  void slice(Lane& lane, Time when, std::int32_t type, const TimelineEvent* texts_of, Fill&& fill) {
    packet(sequence_of(lane), perfetto::kNeedsState, [&](Writer& packet) {
      const std::uint64_t now = nanoseconds(when);
      packet.add_uint64(perfetto::kTimestamp, now - lane.last_ns);
      lane.last_ns = by_lines_ ? now : 0;
      if (texts_of != nullptr) {
        intern(lane, *texts_of, packet);
      }
      Writer out(packet, perfetto::kTrackEvent);
      out.add_enum(perfetto::kType, type);
      if (!by_lines_) {
        out.add_uint64(perfetto::kTrackUuid, lane.uuid);
      }
      fill(out);
    });
  }

  static void flows(Writer& out, perfetto::Event field, const FlowsOfEvents& flows,
                    std::size_t event) {
    for (std::int64_t i = flows.first[event]; i < flows.first[event + 1]; ++i) {
      out.add_fixed64(field,
                      static_cast<std::uint64_t>(flows.ids[static_cast<std::size_t>(i)]) + 1);
    }
  }

  const Timeline& timeline_;
  const std::function<void(std::string_view)>& out_;
  FlowsOfEvents starting_, ending_;
  std::uint64_t next_uuid_;
  bool by_lines_ = true;
  Known shared_;  ///< texts, if all lines are one sequence
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
