#pragma once

#include <cstdint>

/// What PacketEngine and lockstep-packet say to each other over the latter's standard input and
/// output (docs/formats/packet-protocol.md). Frames of a header and `size` bytes; numbers in the
/// machine's own order, for both run on one machine. Plain structs without padding.
namespace lockstep::packet {

inline constexpr std::uint32_t kProtocolVersion = 5;

enum class FrameType : std::uint32_t {
  kOpen = 1,      ///< to lockstep-packet: JSON text, schema "lockstep-packet-open/1"
  kOpened = 2,    ///< answer: JSON text
  kRun = 3,       ///< RunRequest, then its records
  kRan = 4,       ///< answer: RunAnswer, then its Completions
  kReport = 5,    ///< nothing
  kReported = 6,  ///< answer: JSON text, schema "lockstep-packet-report/1"
  kFailed = 7,    ///< answer to anything: Failure, then the message; the program ends
  kChange = 8,    ///< ChangeRecord
  kChanged = 9    ///< answer: nothing
};

struct FrameHeader {
  FrameType type;
  std::uint32_t size;  ///< bytes that follow
};

/// Connections are numbered from 0 in the order in which they are made.
struct ConnectRecord {
  std::int32_t source, destination;  ///< nodes of the topology
  std::int32_t channel;
  std::int32_t traffic_class;  ///< -1: that of those that are given none
};

struct StartRecord {
  std::int64_t when_ps;
  std::int64_t bytes;
  std::uint64_t tag;
  std::uint32_t connection;
  std::uint32_t unused;
};

/// From `when_ps` on a port has this share of its bandwidth, and its link loses packets.
struct ChangeRecord {
  std::int64_t when_ps;  ///< not before the present
  double share, loss;
  std::int32_t port;
  std::int32_t unused;
};

/// Followed by `connects` ConnectRecords and `starts` StartRecords; then the network runs to
/// `limit_ps`, or to the first completion if that is earlier, and on for the `lookahead` of kOpen.
struct RunRequest {
  std::int64_t limit_ps;
  std::uint32_t connects, starts;
};

/// All that happens before `reached_ps` has happened. Followed by `completions` Completions.
struct RunAnswer {
  std::int64_t reached_ps;
  std::uint32_t completions;
  std::uint32_t idle;  ///< 1: nothing is under way
};

struct Completion {
  std::int64_t when_ps;
  std::uint64_t tag;
  std::uint64_t delivered;  ///< 0: its last bit has left the source
};

struct Failure {
  std::int32_t exit_code;      ///< as ExitCode
  std::int32_t out_of_memory;  ///< 1: for want of memory, which is nobody's mistake
};

}  // namespace lockstep::packet
