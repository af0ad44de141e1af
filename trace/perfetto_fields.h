#pragma once

#include <cstdint>
#include <protozero/types.hpp>

namespace lockstep::perfetto {

// Field numbers of the messages in perfetto/protos/perfetto/trace that we write and read, by
// message.
enum Trace : protozero::pbf_tag_type { kPacket = 1 };
enum Packet : protozero::pbf_tag_type {
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequenceId = 10,
  kTrackEvent = 11,
  kInternedData = 12,
  kSequenceFlags = 13,
  kDefaults = 59,
  kTrackDescriptor = 60,
};
enum Snapshot : protozero::pbf_tag_type { kClocks = 1 };
enum Clock : protozero::pbf_tag_type { kClockId = 1, kReading = 2, kIncremental = 3 };
enum Defaults : protozero::pbf_tag_type { kEventDefaults = 11, kTimestampClock = 58 };
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

constexpr std::uint32_t kTraceClock = 6;   ///< boot time, Perfetto's own
constexpr std::uint32_t kDeltaClock = 64;  ///< the first of those that a sequence may define
constexpr std::uint32_t kStateCleared = 1, kNeedsState = 2;
constexpr std::int32_t kExplicitOrder = 3;
constexpr std::int32_t kSliceBegin = 1, kSliceEnd = 2;

}  // namespace lockstep::perfetto
