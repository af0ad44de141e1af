/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "packet-server.h"

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "base/units.h"
#include "simulator/network/packet_engine_protocol.h"
#include "topologies/topology_file.h"

#include "ns3/object-factory.h"
#include "ns3/pointer.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>

using namespace ns3;
using lockstep::Error;
using lockstep::Json;
using lockstep::JsonView;

namespace packet = lockstep::packet;

namespace
{

/** The other side has closed its end within a message. */
struct Disconnected
{
};

/**
 * \param descriptor where to read
 * \param data where to put it
 * \param size how much
 * \return false if there was nothing at all
 */
bool
ReadAll(int descriptor, char* data, std::size_t size)
{
    std::size_t have = 0;
    while (have < size)
    {
        const ssize_t got = ::read(descriptor, data + have, size - have);
        if (got > 0)
        {
            have += static_cast<std::size_t>(got);
        }
        else if (got == 0 && have == 0)
        {
            return false;
        }
        else if (got == 0 || errno != EINTR)
        {
            throw Disconnected();
        }
    }
    return true;
}

/**
 * \param descriptor where to write
 * \param text what
 */
void
WriteAll(int descriptor, const std::string& text)
{
    std::size_t done = 0;
    while (done < text.size())
    {
        const ssize_t put = ::write(descriptor, text.data() + done, text.size() - done);
        if (put > 0)
        {
            done += static_cast<std::size_t>(put);
        }
        else if (errno != EINTR)
        {
            throw Disconnected();
        }
    }
}

/**
 * \param text where to add
 * \param value its bytes
 */
template <class T>
void
Append(std::string& text, const T& value)
{
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/**
 * ns-3 aborts the process where a text is no value of a type, so that is found out before.
 * \param type of the attribute's value
 * \param text the value
 * \param choices of an enumeration, "A|B|C"
 * \return whether it can be one
 */
bool
CanBe(const std::string& type, const std::string& text, const std::string& choices)
{
    try
    {
        if (type == "ns3::UintegerValue")
        {
            return lockstep::to_int(text).value_or(-1) >= 0;
        }
        if (type == "ns3::DoubleValue")
        {
            return lockstep::to_double(text).has_value();
        }
        if (type == "ns3::BooleanValue")
        {
            return text == "true" || text == "false" || text == "1" || text == "0";
        }
        if (type == "ns3::TimeValue")
        {
            lockstep::parse_time(text);
        }
        if (type == "ns3::DataRateValue")
        {
            lockstep::parse_bandwidth(text);
        }
        if (type == "ns3::EnumValue")
        {
            const auto names = lockstep::split(choices, '|');
            return std::find(names.begin(), names.end(), text) != names.end();
        }
    }
    catch (const Error&)
    {
        return false;
    }
    return type != "ns3::PointerValue";
}

/**
 * \param object an ns-3 object
 * \param attributes names and values
 */
void
SetAttributes(Ptr<Object> object, const JsonView& attributes)
{
    const TypeId type = object->GetInstanceTypeId();
    for (const auto& [name, value] : attributes.json().items())
    {
        const std::string& text = attributes[name].string();
        struct TypeId::AttributeInformation information;
        if (!type.LookupAttributeByName(name, &information))
        {
            throw Error(type.GetName() + " has no attribute '" + lockstep::printable(name) + "'")
                .hint("'lockstep-packet --attributes' lists them");
        }
        const Ptr<const AttributeChecker> checker = information.checker;
        const std::string kind = checker->HasUnderlyingTypeInformation()
                                     ? checker->GetUnderlyingTypeInformation()
                                     : checker->GetValueTypeName();
        if (!CanBe(checker->GetValueTypeName(), text, kind) ||
            !object->SetAttributeFailSafe(name, StringValue(text)))
        {
            throw Error("attribute " + name + " of " + type.GetName() + " cannot be '" +
                        lockstep::printable(text) + "'")
                .expected(kind);
        }
    }
}

/**
 * "dcqcn" is ns3::DcqcnCongestionControl; "none" is the base class.
 * \param type a TypeId
 * \return its name on the command line, or nothing if it is no congestion control
 */
std::string
CongestionControlName(TypeId type)
{
    const TypeId base = FabricCongestionControl::GetTypeId();
    if (type == base)
    {
        return "none";
    }
    const std::string prefix = "ns3::";
    const std::string suffix = "CongestionControl";
    const std::string name = type.GetName();
    return type.IsChildOf(base)
               ? lockstep::to_lower(
                     name.substr(prefix.size(), name.size() - prefix.size() - suffix.size()))
               : "";
}

/**
 * \param name of a congestion control
 * \return a new one
 */
Ptr<FabricCongestionControl>
MakeCongestionControl(const std::string& name)
{
    std::vector<std::string> names;
    for (uint16_t i = 0; i < TypeId::GetRegisteredN(); ++i)
    {
        const TypeId type = TypeId::GetRegistered(i);
        const std::string known = CongestionControlName(type);
        if (known == name && !name.empty())
        {
            ObjectFactory factory(type.GetName());
            return factory.Create<FabricCongestionControl>();
        }
        if (!known.empty())
        {
            names.push_back(known);
        }
    }
    std::sort(names.begin(), names.end());
    std::string list;
    for (const std::string& known : names)
    {
        list += (list.empty() ? "" : ", ") + known;
    }
    throw Error("there is no congestion control '" + lockstep::printable(name) + "'")
        .expected(list);
}

/**
 * \param node of a topology
 * \return its address as SimAI's records have it
 */
std::string
AddressOf(int32_t node)
{
    char text[16];
    std::snprintf(text, sizeof text, "%08x", 0x0b000001U + (static_cast<uint32_t>(node) << 8));
    return text;
}

} // namespace

PacketServer::PacketServer(int in, int out)
    : m_in(in),
      m_out(out)
{
}

PacketServer::~PacketServer()
{
    if (m_fabric)
    {
        m_fabric->Dispose();
    }
}

void
PacketServer::Answer(uint32_t type)
{
    std::string frame;
    Append(frame,
           packet::FrameHeader{static_cast<packet::FrameType>(type),
                               static_cast<uint32_t>(m_answer.size())});
    WriteAll(m_out, frame + m_answer);
}

int
PacketServer::Serve()
{
    std::string message;
    int code = 0;
    try
    {
        while (ServeOne())
        {
        }
        return 0;
    }
    catch (const Disconnected&)
    {
        return 0; // nobody is left to be told
    }
    catch (const Error& error)
    {
        message = error.what();
        code = static_cast<int>(error.code());
    }
    catch (const std::exception& error)
    {
        message = error.what();
        code = static_cast<int>(lockstep::ExitCode::kBug);
    }
    m_answer.clear();
    Append(m_answer, packet::Failure{code, 0});
    m_answer += message;
    try
    {
        Answer(static_cast<uint32_t>(packet::FrameType::kFailed));
    }
    catch (const Disconnected&)
    {
    }
    return code;
}

bool
PacketServer::ServeOne()
{
    packet::FrameHeader header{};
    if (!ReadAll(m_in, reinterpret_cast<char*>(&header), sizeof header))
    {
        return false;
    }
    const bool known = header.type == packet::FrameType::kOpen ||
                       header.type == packet::FrameType::kRun ||
                       header.type == packet::FrameType::kReport;
    if (!known)
    {
        throw Error("standard input has no request that makes sense here")
            .hint("this program is started by 'lockstep simulate --engine packet'");
    }
    m_request.resize(header.size);
    if (header.size > 0 && !ReadAll(m_in, m_request.data(), header.size))
    {
        throw Disconnected();
    }
    m_answer.clear();
    if (header.type == packet::FrameType::kOpen && !m_fabric)
    {
        Open();
        Answer(static_cast<uint32_t>(packet::FrameType::kOpened));
    }
    else if (header.type == packet::FrameType::kRun && m_fabric)
    {
        Run();
        Answer(static_cast<uint32_t>(packet::FrameType::kRan));
    }
    else if (header.type == packet::FrameType::kReport && m_fabric)
    {
        Report();
        Answer(static_cast<uint32_t>(packet::FrameType::kReported));
    }
    else
    {
        throw Error("standard input has no request that makes sense here")
            .hint("this program is started by 'lockstep simulate --engine packet'");
    }
    return true;
}

void
PacketServer::Open()
{
    const Json json = lockstep::parse_json(m_request, "request");
    const JsonView view(json, "request");
    if (view["protocol"].integer(0, INT32_MAX) != packet::kProtocolVersion)
    {
        throw Error("lockstep speaks another version of the protocol than lockstep-packet")
            .hint("build both from the same sources");
    }
    m_topology = lockstep::parse_topology(view["topology"].string(), "topology");
    RngSeedManager::SetSeed(static_cast<uint32_t>(view["seed"].integer(1, 4294944442)));
    m_lookahead = view["lookahead_ps"].integer(0, INT64_MAX);
    m_fctFile = view["fct_file"].string();
    m_pfcFile = view["pfc_file"].string();
    m_fabric = CreateObject<Fabric>();
    SetAttributes(m_fabric, view["fabric"]);
    const auto control = MakeCongestionControl(view["congestion"].string());
    SetAttributes(control, view["congestion_attributes"]);
    m_fabric->SetAttribute("CongestionControl", PointerValue(control));
    const JsonView ecn = view["ecn"];
    for (std::size_t i = 0; i < ecn.size(); ++i)
    {
        m_fabric->AddEcnRow(ecn[i][0].number(),
                            ecn[i][1].number(),
                            ecn[i][2].number(),
                            ecn[i][3].number());
    }
    m_fabric->AssignStreams(1);
    BuildFabric();
    lockstep::RouteOptions routes;
    routes.pxn = view["pxn"].boolean();
    routes.spray = view["spray"].boolean();
    routes.rail_affinity = view["rail_affinity"].boolean();
    m_connections = std::make_unique<FabricConnections>(m_topology,
                                                        routes,
                                                        m_fabric,
                                                        view["fresh_ports"].boolean());
    if (view["global_window"].boolean())
    {
        m_fabric->SetGlobalWindow(m_connections->LargestProduct());
    }
    m_fabric->SetStopAtCompletion(true, m_lookahead);
    if (!m_fctFile.empty())
    {
        m_fabric->TraceConnectWithoutContext("Message",
                                             MakeCallback(&PacketServer::RecordMessage, this));
    }
    if (!m_pfcFile.empty())
    {
        m_fabric->TraceConnectWithoutContext("Pfc", MakeCallback(&PacketServer::RecordPause, this));
    }
}

void
PacketServer::BuildFabric()
{
    for (const lockstep::Node& node : m_topology.nodes)
    {
        switch (node.kind)
        {
        case lockstep::NodeKind::kGpu:
            m_fabric->AddNode(Fabric::HOST);
            break;
        case lockstep::NodeKind::kNvSwitch:
            m_fabric->AddNode(Fabric::NVSWITCH);
            break;
        case lockstep::NodeKind::kSwitch:
            m_fabric->AddNode(Fabric::SWITCH);
            break;
        }
    }
    for (std::size_t i = 0; i < m_topology.links.size(); ++i)
    {
        const lockstep::Link& link = m_topology.links[i];
        const lockstep::LinkClass& kind = m_topology.class_of(lockstep::LinkId(i));
        m_fabric->AddLink(static_cast<uint32_t>(link.a.value),
                          static_cast<uint32_t>(link.b.value),
                          DataRate(static_cast<uint64_t>(kind.rate.bits_per_second())),
                          PicoSeconds(static_cast<uint64_t>(kind.delay.count_ps())),
                          kind.error_rate);
    }
    m_fabric->Finish();
}

void
PacketServer::Run()
{
    packet::RunRequest request{};
    const char* at = m_request.data();
    const auto take = [&](auto& value)
    {
        if (static_cast<std::size_t>(m_request.data() + m_request.size() - at) < sizeof value)
        {
            throw Error("a request is cut short");
        }
        std::memcpy(&value, at, sizeof value);
        at += sizeof value;
    };
    take(request);
    for (uint32_t i = 0; i < request.connects; ++i)
    {
        packet::ConnectRecord record{};
        take(record);
        m_connections->Connect(record.source, record.destination, record.channel);
    }
    for (uint32_t i = 0; i < request.starts; ++i)
    {
        packet::StartRecord record{};
        take(record);
        m_connections->Send(record.connection,
                            record.bytes,
                            PicoSeconds(static_cast<uint64_t>(record.when_ps)),
                            record.tag);
    }

    // With no lookahead the limit itself is included.
    const int64_t ahead = std::max<int64_t>(m_lookahead, 1);
    const bool limited = request.limit_ps < INT64_MAX - ahead;
    const int64_t end = limited ? request.limit_ps + ahead : INT64_MAX;
    std::vector<Fabric::Completion>& completions = m_fabric->GetCompletions();
    completions.clear();
    EventId stop;
    const int64_t now = Simulator::Now().GetPicoSeconds();
    if (limited && end > now)
    {
        stop = Simulator::Schedule(PicoSeconds(static_cast<uint64_t>(end - now)), &Simulator::Stop);
    }
    if (!limited || end > now)
    {
        Simulator::Run();
    }
    stop.Cancel();
    int64_t reached = end;
    if (!completions.empty())
    {
        reached = std::min(end, completions.front().time + ahead);
    }
    else if (!limited)
    {
        reached = m_reached; // nothing was under way
    }
    m_reached = std::max(m_reached, reached - (m_lookahead == 0 ? 1 : 0));
    const bool idle = m_fabric->GetLiveMessages() == 0;
    if (!limited && !idle && completions.empty())
    {
        throw Error("the network stands still with transfers under way: " +
                    std::to_string(m_fabric->GetLiveMessages()) + " of them cannot finish")
            .hint("a pause deadlock, or a lost packet that is never sent again");
    }
    Append(m_answer,
           packet::RunAnswer{m_reached, static_cast<uint32_t>(completions.size()), idle ? 1U : 0U});
    for (const Fabric::Completion& done : completions)
    {
        Append(m_answer, packet::Completion{done.time, done.tag, done.delivered ? 1U : 0U});
    }
}

void
PacketServer::Report()
{
    Json json;
    json["schema"] = "lockstep-packet-report/1";
    json["events"] = m_fabric->GetEventCount();
    json["packets"] = m_fabric->GetPacketCount();
    json["jumps"] = m_fabric->GetJumps();
    json["skipped_ps"] = m_fabric->GetSkippedTime();
    uint64_t marks = 0;
    uint64_t drops = 0;
    uint64_t pauses = 0;
    uint64_t maxQueue = 0;
    Json bytes = Json::array();
    Json busy = Json::array();
    for (uint32_t port = 0; port < m_fabric->GetNPorts(); ++port)
    {
        const Fabric::PortStatistics statistics = m_fabric->GetPortStatistics(port);
        marks += statistics.marks;
        drops += statistics.drops;
        pauses += statistics.pauses;
        maxQueue = std::max(maxQueue, statistics.maxQueue);
        const lockstep::LinkId link(static_cast<int32_t>(port / 2));
        const auto rate = static_cast<double>(m_topology.class_of(link).rate.bits_per_second());
        bytes.push_back(statistics.bytes);
        busy.push_back(static_cast<int64_t>(static_cast<double>(statistics.bytes) * 8e12 / rate));
    }
    json["marks"] = marks;
    json["drops"] = drops;
    json["pauses"] = pauses;
    json["max_queue_bytes"] = maxQueue;
    json["port_bytes"] = std::move(bytes);
    json["port_busy_ps"] = std::move(busy);
    m_answer = json.dump();
    WriteRecords();
}

void
PacketServer::RecordMessage(const Fabric::MessageRecord& record)
{
    const FabricConnections::Endpoints& ends = m_connections->EndpointsOf(record.pair);
    auto [place, isNew] = m_rtts.try_emplace({ends.source, ends.destination});
    if (isNew)
    {
        place->second = m_connections->RttAndBandwidth(ends.source, ends.destination);
    }
    UintegerValue payload;
    UintegerValue header;
    m_fabric->GetAttribute("Payload", payload);
    m_fabric->GetAttribute("Header", header);
    const auto packet = static_cast<int64_t>(payload.Get());
    const int64_t packets = (record.bytes + packet - 1) / packet;
    const int64_t wire = record.bytes + packets * static_cast<int64_t>(header.Get());
    const int64_t alone =
        place->second.first / 1000 +
        static_cast<int64_t>(static_cast<double>(wire) * 8e9 / place->second.second);
    m_fct += AddressOf(ends.source) + " " + AddressOf(ends.destination) + " " +
             std::to_string(ends.sourcePort) + " 100 " + std::to_string(record.bytes) + " " +
             std::to_string(record.start / 1000) + " " +
             std::to_string((record.end - record.start) / 1000) + " " + std::to_string(alone) +
             "\n";
}

void
PacketServer::RecordPause(int64_t now, uint32_t node, uint32_t port, bool pause)
{
    // SimAI names the node that is told, what kind it is and its interface, counted from 1.
    static_cast<void>(node);
    const lockstep::Link& link = m_topology.links[port / 2];
    const lockstep::NodeId told = port % 2 == 0 ? link.a : link.b;
    uint32_t interface = 1;
    for (std::size_t i = 0; i < port / 2; ++i)
    {
        interface += m_topology.links[i].a == told || m_topology.links[i].b == told ? 1U : 0U;
    }
    const bool host = m_topology.nodes[told.index()].kind == lockstep::NodeKind::kGpu;
    m_pfc += std::to_string(now / 1000) + " " + std::to_string(told.value) + " " +
             (host ? "0 " : "1 ") + std::to_string(interface) + (pause ? " 1\n" : " 0\n");
}

void
PacketServer::WriteRecords()
{
    if (!m_fctFile.empty())
    {
        lockstep::write_file(m_fctFile, m_fct);
    }
    if (!m_pfcFile.empty())
    {
        lockstep::write_file(m_pfcFile, m_pfc);
    }
}
