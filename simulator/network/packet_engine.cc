#include "simulator/network/packet_engine.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <set>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.h"
#include "base/file_record.h"
#include "base/find_program.h"
#include "base/json.h"
#include "base/kept_inputs.h"
#include "base/text.h"
#include "topologies/topology_json.h"

namespace lockstep {
namespace {

using packet::FrameHeader;
using packet::FrameType;

/// At one time: in one frame, which has less than 4 GiB.
constexpr std::size_t kMostStarts = std::size_t{1} << 26;

std::string program_path(const PacketOptions& options) {
  if (!options.program.empty()) {
    return options.program;
  }
  const auto path = find_program("lockstep-packet");
  if (path.empty()) {
    throw Error(
        "the packet engine needs lockstep-packet, which is neither beside this program nor "
        "on PATH",
        ExitCode::kMissingPart)
        .hint("./setup installs ns-3; then configure and build again, or use --engine flow");
  }
  return path.string();
}

std::string open_text(const Topology& topology, const PacketOptions& options) {
  Json json;
  json["schema"] = "lockstep-packet-open/1";
  json["protocol"] = packet::kProtocolVersion;
  json["fabric"] = options.fabric;
  json["congestion"] = options.congestion;
  json["congestion_attributes"] = options.congestion_attributes;
  json["ecn"] = Json::array();
  for (const PacketOptions::EcnRow& row : options.ecn) {
    json["ecn"].push_back(
        {row.rate.bits_per_second(), row.kmin.count(), row.kmax.count(), row.pmax});
  }
  json["faults"] = Json::array();
  for (const PacketOptions::LinkFault& fault : options.faults) {
    json["faults"].push_back({fault.a.value, fault.b.value, fault.from.count_ps(),
                              fault.until == Time::max() ? -1 : fault.until.count_ps(),
                              fault.loss});
  }
  json["rerouting_ps"] = options.rerouting.count_ps();
  json["fresh_ports"] = options.fresh_ports;
  json["global_window"] = options.global_window;
  json["spray"] = options.routes.spray;
  json["rail_affinity"] = options.routes.rail_affinity;
  json["pxn"] = options.routes.pxn;
  json["hash_nvlinks"] = options.routes.hash_nvlinks;
  json["seed"] = options.seed;
  json["lookahead_ps"] = options.lookahead.count_ps();
  json["fct_file"] = options.fct_file;
  json["pfc_file"] = options.pfc_file;
  json["samples_file"] = options.samples_file;
  json["sample_interval_ps"] = options.sample_interval.count_ps();
  json["topology"] = to_json_text(topology);
  return json.dump();
}

template <class T>
void append(std::string& text, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
void append_all(std::string& text, const std::vector<T>& values) {
  text.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

Error senseless() {
  return Error(
             "lockstep-packet gave an answer that makes no sense: it is another program, or of "
             "another build",
             ExitCode::kMissingPart)
      .hint("'lockstep doctor' shows which one is taken, and whether it fits this program");
}

/// The T at the start of a text; what follows is left in `rest`.
template <class T>
T take(std::string_view text, std::string_view& rest) {
  T value{};
  if (text.size() < sizeof value) {
    throw senseless();
  }
  std::memcpy(&value, text.data(), sizeof value);
  rest = text.substr(sizeof value);
  return value;
}

}  // namespace

struct PacketEngine::Report {
  std::vector<PortUse> ports;
  PacketStatistics statistics;
};

PacketEngine::PacketEngine(const Topology& topology, const PacketOptions& options)
    : topology_(topology), options_(options), lookahead_(options.lookahead) {
  for (const std::string& file : {options.fct_file, options.pfc_file, options.samples_file}) {
    if (!file.empty()) {
      refuse_input(file);
      FileRecord::note_written(file);  // by lockstep-packet, for us
    }
  }
  open();
}

void PacketEngine::open() {
  report_.reset();
  process_.reset();
  process_ =
      std::make_unique<ChildProcess>(std::vector<std::string>{program_path(options_), "--serve"});
  message_ = open_text(topology_, options_);
  call(FrameType::kOpen, FrameType::kOpened);
}

void PacketEngine::add_fault(const LinkFault& fault) {
  constexpr Time kNever = Time::ns(100'000'000'000'000);  // beyond any run
  LOCKSTEP_CHECK(connections_ == 0 && !changes_,
                 "faults are known before connections are made and changes are told");
  const Time rerouting = std::min(fault.rerouting, kNever);
  if (!options_.faults.empty() && options_.rerouting != rerouting) {
    throw Error("the packet engine has one time to reroute for all faults")
        .expected("the same REROUTE everywhere")
        .hint("use --engine flow");
  }
  options_.rerouting = rerouting;
  std::set<std::pair<NodeId, NodeId>> ends;  // a fault there is one of all links between two nodes
  for (const LinkId id : fault.links) {
    const Link& link = topology_.links[id.index()];
    if (ends.emplace(link.a, link.b).second) {
      options_.faults.push_back({link.a, link.b, fault.from, fault.until, 1});
    }
  }
  open();
}

PacketEngine::~PacketEngine() = default;

const std::string& PacketEngine::call(FrameType type, FrameType expected) const {
  const FrameHeader header{type, static_cast<std::uint32_t>(message_.size())};
  LOCKSTEP_CHECK(message_.size() == header.size, "a frame is smaller than 4 GiB");
  process_->write({reinterpret_cast<const char*>(&header), sizeof header});
  process_->write(message_);
  FrameHeader reply{};
  process_->read({reinterpret_cast<char*>(&reply), sizeof reply});
  if (reply.type != expected && reply.type != FrameType::kFailed) {
    process_->kill();  // it may talk without end
    throw senseless();
  }
  answer_.resize(reply.size);
  process_->read(answer_);
  if (reply.type == FrameType::kFailed) {
    std::string_view text;
    const auto failure = take<packet::Failure>(answer_, text);
    if (failure.out_of_memory != 0) {
      throw std::bad_alloc();  // as if it were ours: limits are for both
    }
    throw Error(std::string(text), static_cast<ExitCode>(failure.exit_code));
  }
  return answer_;
}

ConnectionId PacketEngine::connect(NodeId source, NodeId destination, std::int32_t channel) {
  return connect_in_class(source, destination, channel, -1);
}

ConnectionId PacketEngine::connect_in_class(NodeId source, NodeId destination, std::int32_t channel,
                                            std::int32_t traffic_class) {
  connects_.push_back({source.value, destination.value, channel, traffic_class});
  return ConnectionId(connections_++);
}

void PacketEngine::start(ConnectionId connection, Bytes bytes, Time when, std::uint64_t tag) {
  LOCKSTEP_CHECK(connection.valid() && connection.value < connections_, "connect() comes first");
  if (when < now_ + lookahead_ || when < reached_) {
    throw Error(fmt::format("a transfer starts {} ps after the present time, but the packet engine "
                            "was promised at least {}",
                            (when - now_).count_ps(), to_text(lookahead_)),
                ExitCode::kBug);
  }
  if (starts_.size() == kMostStarts) {
    throw Error(fmt::format("more than {} transfers start at once", kMostStarts))
        .hint("the packet engine carries out each packet: use a smaller size, or --engine flow");
  }
  starts_.push_back(
      {when.count_ps(), bytes.count(), tag, static_cast<std::uint32_t>(connection.value), 0});
}

void PacketEngine::run(Time limit) {
  report_.reset();
  message_.clear();
  append(message_,
         packet::RunRequest{limit.count_ps(), static_cast<std::uint32_t>(connects_.size()),
                            static_cast<std::uint32_t>(starts_.size())});
  append_all(message_, connects_);
  append_all(message_, starts_);
  connects_.clear();
  starts_.clear();
  std::string_view rest = call(FrameType::kRun, FrameType::kRan);
  const auto answer = take<packet::RunAnswer>(rest, rest);
  if (rest.size() != answer.completions * sizeof(packet::Completion)) {
    throw senseless();
  }
  completions_.resize(answer.completions);
  if (answer.completions > 0) {
    std::memcpy(completions_.data(), rest.data(), rest.size());
  }
  next_ = 0;
  reached_ = Time::ps(answer.reached_ps);
  idle_ = answer.idle != 0;
}

Time PacketEngine::advance(Time limit, std::vector<NetworkEvent>& events) {
  if (next_ == completions_.size()) {
    if (idle_ && starts_.empty()) {
      now_ = limit == Time::max() ? now_ : std::max(now_, limit);
      reached_ = std::max(reached_, now_);
      return now_;
    }
    if (limit >= reached_) {
      run(limit);
    }
  }
  if (next_ == completions_.size()) {
    if (limit == Time::max()) {
      LOCKSTEP_CHECK(idle_, "without a limit the network runs until something happens");
      return now_;
    }
    now_ = std::max(now_, limit);
    return now_;
  }
  const Time when = Time::ps(completions_[next_].when_ps);
  if (when > limit) {
    now_ = std::max(now_, limit);
    return now_;
  }
  now_ = when;
  for (; next_ < completions_.size() && completions_[next_].when_ps == when.count_ps(); ++next_) {
    const packet::Completion& done = completions_[next_];
    events.push_back(
        {when, done.tag,
         done.delivered != 0 ? NetworkEvent::Kind::kDelivered : NetworkEvent::Kind::kSent});
  }
  return now_;
}

bool PacketEngine::plan_change(Time when, PortId port, double share, double loss) {
  constexpr double kLeast = 1e-6;  // a packet that is sent at less never ends
  if (share < kLeast) {
    return false;
  }
  report_.reset();
  message_.clear();
  append(message_, packet::ChangeRecord{when.count_ps(), share, loss, port.value, 0});
  call(FrameType::kChange, FrameType::kChanged);
  changes_ = true;
  return true;
}

const PacketEngine::Report& PacketEngine::report() const {
  if (report_ != nullptr) {
    return *report_;
  }
  message_.clear();
  const std::string& text = call(FrameType::kReport, FrameType::kReported);
  const Json json = parse_json(text, "lockstep-packet");
  const JsonView view(json, "lockstep-packet");
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto count = [&](const char* name) { return view[name].integer(0, kMost); };
  auto made = std::make_unique<Report>();
  Report& report = *made;
  report.statistics = {
      count("events"), count("packets"), count("marks"),  count("drops"),
      count("pauses"), count("storms"),  count("stalls"), Bytes(count("max_queue_bytes"))};
  const JsonView bytes = view["port_bytes"];
  const JsonView busy = view["port_busy_ps"];
  for (std::size_t port = 0; port < bytes.size(); ++port) {
    report.ports.push_back(
        {Bytes(bytes[port].integer(0, kMost)), Time::ps(busy[port].integer(0, kMost))});
  }
  report_ = std::move(made);
  return *report_;
}

std::vector<PortUse> PacketEngine::port_use() const { return report().ports; }

PacketStatistics PacketEngine::statistics() const { return report().statistics; }

bool PacketEngine::runs_by_chance() const {
  const auto is = [&](const char* name, auto what) {
    const auto found = options_.fabric.find(name);
    return found != options_.fabric.end() && what(found->second);
  };
  return !options_.faults.empty() ||
         is("LossRate", [](const std::string& text) { return to_double(text).value_or(0) > 0; }) ||
         is("SendJitter",
            [](const std::string& text) {
              return text.find_first_of("123456789") != std::string::npos;
            }) ||
         is("Pfc", [](const std::string& text) { return text == "false" || text == "0"; }) ||
         std::ranges::any_of(topology_.link_classes,
                             [](const LinkClass& kind) { return kind.error_rate > 0; });
}

}  // namespace lockstep
