// Perfetto's own format, as far as our time lines use it (trace/perfetto_proto.h): slices on nested
// tracks, of which the one at the top is a rank.
#include <algorithm>
#include <map>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "trace/log_reader.h"
#include "trace/perfetto_fields.h"
#include "trace/timeline_log.h"

namespace lockstep {
namespace {

using Message = protozero::pbf_reader;

constexpr auto kBytes = protozero::pbf_wire_type::length_delimited;

Message message_of(std::string_view text) { return Message(text.data(), text.size()); }

/// The first packet of a trace has nothing but numbered fields of a packet, its sequence among
/// them.
bool sniff(std::string_view head, std::string_view) {
  try {
    Message trace = message_of(head);
    if (!trace.next(perfetto::kPacket, kBytes)) {
      return false;
    }
    Message packet = trace.get_message();
    bool of_sequence = false;
    while (packet.next()) {
      of_sequence = of_sequence || (packet.tag() == perfetto::kSequenceId &&
                                    packet.wire_type() == protozero::pbf_wire_type::varint);
      if (packet.tag() < perfetto::kClockSnapshot) {
        return false;
      }
      packet.skip();
    }
    return of_sequence;
  } catch (const protozero::exception&) {
    return false;
  }
}

class Reader {
 public:
  void run(std::string_view text, PhysicalLog& log) {
    Message trace = message_of(text);
    try {
      while (trace.next()) {
        if (trace.tag() == perfetto::kPacket && trace.wire_type() == kBytes) {
          take(trace.get_message());
        } else {
          trace.skip();
        }
      }
    } catch (const protozero::exception&) {
      log.warnings.add("the file is cut off or damaged within a packet");
    }
    if (timeline_.events.empty()) {
      throw Error("there are no slices").expected("a time line with bars on tracks");
    }
    for (const auto& [uuid, track] : tracks_) {
      open_ += std::ssize(track.open);
    }
    if (open_ > 0) {
      log.warnings.add("slices without an end were taken as of no length");
    }
    if (strays_ > 0) {
      log.warnings.add("ends of slices that have not begun were left out");
    }
    lay_tracks();
    join();
    add_to_log(timeline_, log);
  }

 private:
  /// What a sequence of packets has said so far.
  struct Sequence {
    std::map<std::uint64_t, std::string> categories, names, keys;
    std::uint64_t track = 0;     ///< of its events, where they name none
    bool incremental = false;    ///< times are since the packet before
    std::uint64_t clock_ns = 0;  ///< then: of that
  };
  struct Track {
    std::string name;
    std::uint64_t parent = 0;
    std::vector<std::size_t> open;  ///< events, innermost last
    std::int32_t number = -1;       ///< in the time line
  };
  struct Slice {
    std::int32_t type = 0;
    std::uint64_t track = 0, name = 0, category = 0;
    std::vector<std::uint64_t> starts, ends;
    std::vector<std::pair<std::uint64_t, std::int64_t>> arguments;
  };

  void take(Message packet) {
    std::uint64_t timestamp = 0;
    std::uint32_t id = 0, flags = 0;
    protozero::data_view event, interned, defaults, snapshot, descriptor;
    while (packet.next()) {
      switch (packet.tag_and_type()) {
        case protozero::tag_and_type(perfetto::kTimestamp, protozero::pbf_wire_type::varint):
          timestamp = packet.get_uint64();
          break;
        case protozero::tag_and_type(perfetto::kSequenceId, protozero::pbf_wire_type::varint):
          id = packet.get_uint32();
          break;
        case protozero::tag_and_type(perfetto::kSequenceFlags, protozero::pbf_wire_type::varint):
          flags = packet.get_uint32();
          break;
        case protozero::tag_and_type(perfetto::kTrackEvent, kBytes):
          event = packet.get_view();
          break;
        case protozero::tag_and_type(perfetto::kInternedData, kBytes):
          interned = packet.get_view();
          break;
        case protozero::tag_and_type(perfetto::kDefaults, kBytes):
          defaults = packet.get_view();
          break;
        case protozero::tag_and_type(perfetto::kClockSnapshot, kBytes):
          snapshot = packet.get_view();
          break;
        case protozero::tag_and_type(perfetto::kTrackDescriptor, kBytes):
          descriptor = packet.get_view();
          break;
        default:
          packet.skip();
      }
    }
    Sequence& sequence = sequences_[id];
    if ((flags & perfetto::kStateCleared) != 0) {
      sequence = {};
    }
    if (!snapshot.empty()) {
      take_clocks(Message(snapshot), sequence);
    }
    if (!defaults.empty()) {
      take_defaults(Message(defaults), sequence);
    }
    if (!interned.empty()) {
      take_texts(Message(interned), sequence);
    }
    if (!descriptor.empty()) {
      take_track(Message(descriptor));
    }
    if (!event.empty()) {
      const std::uint64_t now = sequence.incremental ? sequence.clock_ns + timestamp : timestamp;
      sequence.clock_ns = now;
      take_event(Message(event), sequence, now);
    }
  }

  /// Where an incremental clock of the sequence begins.
  static void take_clocks(Message snapshot, Sequence& sequence) {
    std::uint64_t trace_ns = 0;
    bool has_delta = false;
    while (snapshot.next()) {
      if (snapshot.tag() != perfetto::kClocks || snapshot.wire_type() != kBytes) {
        snapshot.skip();
        continue;
      }
      Message clock = snapshot.get_message();
      std::uint64_t id = 0, reading = 0;
      while (clock.next()) {
        const bool is_number = clock.wire_type() == protozero::pbf_wire_type::varint;
        if (is_number && clock.tag() == perfetto::kClockId) {
          id = clock.get_uint64();
        } else if (is_number && clock.tag() == perfetto::kReading) {
          reading = clock.get_uint64();
        } else {
          clock.skip();
        }
      }
      trace_ns = id == perfetto::kTraceClock ? reading : trace_ns;
      has_delta = has_delta || id >= perfetto::kDeltaClock;
    }
    if (has_delta) {
      sequence.clock_ns = trace_ns;
    }
  }

  static void take_defaults(Message defaults, Sequence& sequence) {
    while (defaults.next()) {
      if (defaults.tag() == perfetto::kEventDefaults && defaults.wire_type() == kBytes) {
        Message event = defaults.get_message();
        while (event.next()) {
          if (event.tag() == perfetto::kTrackUuid &&
              event.wire_type() == protozero::pbf_wire_type::varint) {
            sequence.track = event.get_uint64();
          } else {
            event.skip();
          }
        }
      } else if (defaults.tag() == perfetto::kTimestampClock &&
                 defaults.wire_type() == protozero::pbf_wire_type::varint) {
        sequence.incremental = defaults.get_uint64() >= perfetto::kDeltaClock;
      } else {
        defaults.skip();
      }
    }
  }

  static void take_texts(Message interned, Sequence& sequence) {
    while (interned.next()) {
      auto* known = interned.tag() == perfetto::kCategories ? &sequence.categories
                    : interned.tag() == perfetto::kNames    ? &sequence.names
                    : interned.tag() == perfetto::kKeys     ? &sequence.keys
                                                            : nullptr;
      if (known == nullptr || interned.wire_type() != kBytes) {
        interned.skip();
        continue;
      }
      Message each = interned.get_message();
      std::uint64_t id = 0;
      std::string text;
      while (each.next()) {
        if (each.tag() == perfetto::kIid && each.wire_type() == protozero::pbf_wire_type::varint) {
          id = each.get_uint64();
        } else if (each.tag() == perfetto::kText && each.wire_type() == kBytes) {
          text = each.get_string();
        } else {
          each.skip();
        }
      }
      (*known)[id] = text;
    }
  }

  void take_track(Message descriptor) {
    std::uint64_t uuid = 0, parent = 0;
    std::string name;
    while (descriptor.next()) {
      switch (descriptor.tag_and_type()) {
        case protozero::tag_and_type(perfetto::kUuid, protozero::pbf_wire_type::varint):
          uuid = descriptor.get_uint64();
          break;
        case protozero::tag_and_type(perfetto::kParentUuid, protozero::pbf_wire_type::varint):
          parent = descriptor.get_uint64();
          break;
        case protozero::tag_and_type(perfetto::kName, kBytes):
          name = descriptor.get_string();
          break;
        default:
          descriptor.skip();
      }
    }
    tracks_[uuid].name = name;
    tracks_[uuid].parent = parent;
  }

  void take_event(Message event, const Sequence& sequence, std::uint64_t now_ns) {
    Slice slice;
    slice.track = sequence.track;
    while (event.next()) {
      switch (event.tag_and_type()) {
        case protozero::tag_and_type(perfetto::kType, protozero::pbf_wire_type::varint):
          slice.type = event.get_enum();
          break;
        case protozero::tag_and_type(perfetto::kTrackUuid, protozero::pbf_wire_type::varint):
          slice.track = event.get_uint64();
          break;
        case protozero::tag_and_type(perfetto::kNameIid, protozero::pbf_wire_type::varint):
          slice.name = event.get_uint64();
          break;
        case protozero::tag_and_type(perfetto::kCategoryIid, protozero::pbf_wire_type::varint):
          slice.category = event.get_uint64();
          break;
        case protozero::tag_and_type(perfetto::kFlowIds, protozero::pbf_wire_type::fixed64):
          slice.starts.push_back(event.get_fixed64());
          break;
        case protozero::tag_and_type(perfetto::kTerminatingFlowIds,
                                     protozero::pbf_wire_type::fixed64):
          slice.ends.push_back(event.get_fixed64());
          break;
        case protozero::tag_and_type(perfetto::kAnnotation, kBytes):
          slice.arguments.push_back(argument(event.get_message()));
          break;
        default:
          event.skip();
      }
    }
    constexpr std::uint64_t kLatest = 9'000'000'000'000'000;  // ns, within the clock
    const Time now = Time::ns(static_cast<std::int64_t>(std::min(now_ns, kLatest)));
    if (slice.type == perfetto::kSliceBegin) {
      begin(slice, sequence, now);
    } else if (slice.type == perfetto::kSliceEnd) {
      end(slice, now);
    }
  }

  static std::pair<std::uint64_t, std::int64_t> argument(Message annotation) {
    std::pair<std::uint64_t, std::int64_t> result;
    while (annotation.next()) {
      const bool is_number = annotation.wire_type() == protozero::pbf_wire_type::varint;
      if (is_number && annotation.tag() == perfetto::kKeyIid) {
        result.first = annotation.get_uint64();
      } else if (is_number && annotation.tag() == perfetto::kInt) {
        result.second = annotation.get_int64();
      } else {
        annotation.skip();
      }
    }
    return result;
  }

  static std::string text(const std::map<std::uint64_t, std::string>& texts, std::uint64_t id) {
    const auto found = texts.find(id);
    return found == texts.end() ? std::string() : found->second;
  }

  void begin(const Slice& slice, const Sequence& sequence, Time now) {
    const std::string name = text(sequence.names, slice.name);
    const std::string kind = text(sequence.categories, slice.category);
    TimelineEvent event;
    event.name = names_.index(name);
    event.kind = kinds_.index(slice.category == 0 ? name : kind);  // one is left out if the same
    event.begin = event.end = now;
    event.arguments = static_cast<std::int32_t>(slice.arguments.size());
    event.first_argument = std::ssize(timeline_.arguments);
    for (const auto& [key, value] : slice.arguments) {
      timeline_.arguments.push_back({keys_.index(text(sequence.keys, key)), value});
    }
    const std::size_t index = timeline_.events.size();
    timeline_.events.push_back(event);
    track_of_.push_back(slice.track);
    tracks_[slice.track].open.push_back(index);
    for (const std::uint64_t flow : slice.starts) {
      starts_[flow] = static_cast<std::int64_t>(index);
    }
  }

  void end(const Slice& slice, Time now) {
    std::vector<std::size_t>& open = tracks_[slice.track].open;
    if (open.empty()) {
      ++strays_;
      return;
    }
    TimelineEvent& event = timeline_.events[open.back()];
    event.end = std::max(event.begin, now);
    for (const std::uint64_t flow : slice.ends) {
      ends_[flow] = static_cast<std::int64_t>(open.back());
    }
    open.pop_back();
  }

  /// Tracks of a rank that have one name are lines of one: bars that overlap lie on several.
  void lay_tracks() {
    std::map<std::uint64_t, std::pair<std::int32_t, std::int32_t>> ranks;  // track, tracks below
    std::map<std::pair<std::int32_t, std::string>, std::int32_t> known;
    std::int32_t next_rank = 0;
    for (std::size_t i = 0; i < timeline_.events.size(); ++i) {
      Track& track = tracks_[track_of_[i]];
      if (track.number < 0) {
        const std::uint64_t top = track.parent != 0 ? track.parent : track_of_[i];
        const auto [rank, is_new] = ranks.try_emplace(top, std::pair(0, 0));
        if (is_new) {
          const std::string& name = tracks_[top].name;
          const auto number = to_int(std::string_view(name).substr(name.rfind(' ') + 1));
          const bool named =
              name.starts_with("rank ") && number && *number >= 0 && *number < (1 << 24);
          rank->second.first = static_cast<std::int32_t>(timeline_.tracks.size());
          timeline_.tracks.push_back(
              {name, -1, named ? static_cast<std::int32_t>(*number) : next_rank});
          ++next_rank;
        }
        const auto [line, fresh] = known.try_emplace({rank->second.first, track.name}, 0);
        if (fresh) {
          line->second = static_cast<std::int32_t>(timeline_.tracks.size());
          timeline_.tracks.push_back({track.name, rank->second.first, rank->second.second++});
        }
        track.number = line->second;
      }
      timeline_.events[i].track = track.number;
    }
  }

  void join() {
    for (const auto& [id, from] : starts_) {
      const auto to = ends_.find(id);
      if (to != ends_.end()) {
        timeline_.flows.push_back({from, to->second});
      }
    }
  }

  Timeline timeline_;
  TextTable names_{timeline_.names}, kinds_{timeline_.kinds}, keys_{timeline_.keys};
  std::map<std::uint32_t, Sequence> sequences_;
  std::map<std::uint64_t, Track> tracks_;
  std::vector<std::uint64_t> track_of_;                  // per event
  std::map<std::uint64_t, std::int64_t> starts_, ends_;  // of arrows: events
  std::ptrdiff_t open_ = 0, strays_ = 0;
};

void read(std::string_view text, PhysicalLog& log) { Reader().run(text, log); }

}  // namespace

extern const LogReader kPerfettoLogReader;
const LogReader kPerfettoLogReader{"perfetto", "time lines in Perfetto's own format", sniff, read};

}  // namespace lockstep
