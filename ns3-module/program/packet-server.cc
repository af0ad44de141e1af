/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "packet-server.h"

#include "base/error.h"
#include "base/json.h"
#include "first-order.h"
#include "packet-attributes.h"
#include "simulator/network/packet_engine_protocol.h"
#include "topologies/topology_file.h"

#include "ns3/boolean.h"
#include "ns3/pointer.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/simulator.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cstring>
#include <new>

using namespace ns3;
using lockstep::Error;
using lockstep::Json;
using lockstep::JsonView;

namespace packet = lockstep::packet;

PacketServer::PacketServer(int in, int out)
    : m_pipe(in, out)
{
}

PacketServer::~PacketServer()
{
    if (m_fabric)
    {
        m_fabric->Dispose();
    }
}

int
PacketServer::Serve()
{
    std::string message;
    packet::Failure failure{};
    try
    {
        while (ServeOne())
        {
        }
        return 0;
    }
    catch (const PacketPipe::Disconnected&)
    {
        return 0; // nobody is left to be told
    }
    catch (const Error& error)
    {
        message = error.what();
        failure.exit_code = static_cast<int>(error.code());
    }
    catch (const std::bad_alloc&)
    {
        message = "out of memory";
        failure = {static_cast<int>(lockstep::ExitCode::kBadInput), 1};
    }
    catch (const std::exception& error)
    {
        message = error.what();
        failure.exit_code = static_cast<int>(lockstep::ExitCode::kBug);
    }
    m_answer.clear();
    Append(m_answer, failure);
    m_answer += message;
    try
    {
        m_pipe.Write(packet::FrameType::kFailed, m_answer);
    }
    catch (const PacketPipe::Disconnected&)
    {
    }
    return failure.exit_code;
}

bool
PacketServer::ServeOne()
{
    packet::FrameType type{};
    if (!m_pipe.Read(type, m_request))
    {
        return false;
    }
    if ((type == packet::FrameType::kOpen) == (m_fabric != nullptr))
    {
        throw Error("standard input has no request that makes sense here")
            .hint("this program is started by 'lockstep simulate --engine packet'");
    }
    m_answer.clear();
    switch (type)
    {
    case packet::FrameType::kOpen:
        Open();
        m_pipe.Write(packet::FrameType::kOpened, m_answer);
        break;
    case packet::FrameType::kRun:
        Run();
        m_pipe.Write(packet::FrameType::kRan, m_answer);
        break;
    case packet::FrameType::kChange:
        Change();
        m_pipe.Write(packet::FrameType::kChanged, m_answer);
        break;
    default:
        Report();
        m_pipe.Write(packet::FrameType::kReported, m_answer);
        break;
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
    m_fabric = CreateObject<Fabric>();
    SetAttributes(m_fabric, view["fabric"]);
    RefuseTooSmallBuffer();
    const int64_t sampleInterval = view["sample_interval_ps"].integer(1, INT64_MAX);
    if (!view["samples_file"].string().empty())
    {
        const Time interval = PicoSeconds(static_cast<uint64_t>(sampleInterval));
        m_fabric->SetAttribute("SampleInterval", TimeValue(interval));
    }
    if (!view["pfc_file"].string().empty())
    {
        m_fabric->SetAttribute("FastForward", BooleanValue(false)); // every pause is told
    }
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
    routes.hash_nvlinks = view["hash_nvlinks"].boolean();
    m_connections = std::make_unique<FabricConnections>(m_topology,
                                                        routes,
                                                        m_fabric,
                                                        view["fresh_ports"].boolean());
    m_firstOrder = view["fresh_ports"].boolean();
    if (view["global_window"].boolean())
    {
        m_fabric->SetGlobalWindow(m_connections->LargestProduct());
    }
    ScheduleFaults(view["faults"], view["rerouting_ps"].integer(0, INT64_MAX));
    m_fabric->SetStopAtCompletion(true, m_lookahead);
    m_records = std::make_unique<PacketRecords>(m_topology,
                                                *m_connections,
                                                m_fabric,
                                                view["fct_file"].string(),
                                                view["pfc_file"].string());
    m_samples = std::make_unique<PacketSamples>(m_topology,
                                                *m_connections,
                                                m_fabric,
                                                view["samples_file"].string(),
                                                sampleInterval);
}

void
PacketServer::RefuseTooSmallBuffer() const
{
    const auto number = [this](const char* name)
    {
        UintegerValue value;
        m_fabric->GetAttribute(name, value);
        return value.Get();
    };
    const uint64_t packet = number("Payload") + number("Header");
    const uint64_t buffer = number("Buffer");
    if (buffer > 0 && buffer < packet)
    {
        throw Error("a switch with " + std::to_string(buffer) + " bytes has no room for a packet")
            .field("Buffer")
            .expected("at least " + std::to_string(packet) +
                      " (Payload and Header), or 0 for no limit");
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
        m_connections->Connect(record.source,
                               record.destination,
                               record.channel,
                               record.traffic_class);
    }
    std::vector<packet::StartRecord> starts(request.starts);
    for (packet::StartRecord& record : starts)
    {
        take(record);
    }
    Start(starts);

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
    int64_t reached = end;
    bool ended = limited && end <= now;
    while (!ended)
    {
        Simulator::Run();
        ended = completions.empty();
        if (!completions.empty())
        {
            reached = std::min(end, completions.front().time + ahead);
            MergeParts(completions);
            ended = reached == end || !completions.empty(); // otherwise only parts are through
        }
        else
        {
            reached = limited ? end : m_reached; // otherwise nothing was under way
        }
    }
    stop.Cancel();
    m_reached = std::max(m_reached, reached - (m_lookahead == 0 ? 1 : 0));
    const bool idle = m_fabric->GetLiveMessages() == 0;
    const auto beyond = [now](const Fabric::Completion& done)
    { return done.time < now || done.time >= FABRIC_LAST_TIME; };
    if ((!idle && m_fabric->GetNextTime() != INT64_MAX &&
         m_fabric->GetNextTime() >= FABRIC_LAST_TIME) ||
        std::any_of(completions.begin(), completions.end(), beyond))
    {
        throw Error("transfers would end after the clock's 100 days")
            .hint("look for a size that is far too large or a bandwidth that is far too small");
    }
    if (!limited && !idle && completions.empty())
    {
        throw Error("the network stands still with transfers under way: " +
                    std::to_string(m_fabric->GetLiveMessages()) + " of them cannot finish")
            .hint(DescribeStandstill());
    }
    Append(m_answer,
           packet::RunAnswer{m_reached, static_cast<uint32_t>(completions.size()), idle ? 1U : 0U});
    for (const Fabric::Completion& done : completions)
    {
        Append(m_answer, packet::Completion{done.time, done.tag, done.delivered ? 1U : 0U});
    }
}

void
PacketServer::Start(const std::vector<packet::StartRecord>& starts)
{
    m_parts.clear();
    m_firstPart.clear();
    std::vector<uint32_t> order(starts.size());
    for (uint32_t i = 0; i < starts.size(); ++i)
    {
        if (starts[i].bytes < 0)
        {
            throw Error("a transfer of " + std::to_string(starts[i].bytes) + " bytes")
                .expected("at least 0");
        }
        const auto& own = m_connections->TakeParts(starts[i].connection, starts[i].bytes);
        m_firstPart.push_back(m_parts.size());
        m_parts.insert(m_parts.end(), own.begin(), own.end());
        order[i] = i;
    }
    m_firstPart.push_back(m_parts.size());
    if (m_firstOrder && !starts.empty())
    {
        m_firstOrder = false;
        std::vector<FirstStart> first(starts.size());
        for (uint32_t i = 0; i < starts.size(); ++i)
        {
            const int32_t source = m_connections->SourceOf(starts[i].connection);
            first[i] = {starts[i].when_ps,
                        m_topology.nodes[static_cast<std::size_t>(source)].server};
        }
        order = OrderOfFirst(first);
    }
    for (const uint32_t i : order)
    {
        uint64_t tag = starts[i].tag;
        if (tag >= IN_PARTS)
        {
            throw Error("a transfer's tag makes no sense").expected("less than 2^63");
        }
        if (m_connections->HasLanes(starts[i].connection))
        {
            tag = IN_PARTS +
                  TrackParts(starts[i].connection, tag, m_firstPart[i + 1] - m_firstPart[i]);
        }
        for (std::size_t k = m_firstPart[i]; k < m_firstPart[i + 1]; ++k)
        {
            m_fabric->Send(m_parts[k].pair,
                           m_parts[k].bytes,
                           PicoSeconds(static_cast<uint64_t>(starts[i].when_ps)),
                           tag);
        }
    }
}

uint64_t
PacketServer::TrackParts(uint32_t connection, uint64_t tag, std::size_t parts)
{
    if (m_freeInParts.empty())
    {
        m_freeInParts.push_back(m_inParts.size());
        m_inParts.emplace_back();
    }
    const uint64_t place = m_freeInParts.back();
    m_freeInParts.pop_back();
    m_inParts[place] = {tag, connection, {parts, parts}, 0, NONE};
    m_orders.resize(std::max<std::size_t>(m_orders.size(), connection + 1));
    Order& order = m_orders[connection];
    if (order.last != NONE)
    {
        m_inParts[order.last].next = place;
    }
    order.last = place;
    for (uint64_t& next : order.next)
    {
        next = next == NONE ? place : next;
    }
    return place;
}

void
PacketServer::MergeParts(std::vector<Fabric::Completion>& completions)
{
    // One part may be the last that several messages waited for.
    m_merged.clear();
    for (Fabric::Completion done : completions)
    {
        if (done.tag >= IN_PARTS)
        {
            const std::size_t kind = done.delivered ? 1 : 0;
            InParts& message = m_inParts[done.tag - IN_PARTS];
            --message.left[kind];
            Order& order = m_orders[message.connection];
            uint64_t& next = order.next[kind];
            while (next != NONE && m_inParts[next].left[kind] == 0)
            {
                const uint64_t place = next;
                next = m_inParts[place].next;
                done.tag = m_inParts[place].tag;
                m_merged.push_back(done);
                if (++m_inParts[place].told == 2)
                {
                    m_freeInParts.push_back(place);
                }
            }
            if (order.next[0] == NONE && order.next[1] == NONE)
            {
                order.last = NONE; // its place may be another message's by now
            }
            continue;
        }
        m_merged.push_back(done);
    }
    completions.swap(m_merged);
}

void
PacketServer::Change()
{
    packet::ChangeRecord change{};
    if (m_request.size() != sizeof change)
    {
        throw Error("a request is cut short");
    }
    std::memcpy(&change, m_request.data(), sizeof change);
    const int64_t now = Simulator::Now().GetPicoSeconds();
    if (change.port < 0 || static_cast<uint32_t>(change.port) >= m_fabric->GetNPorts() ||
        change.when_ps < now || !(change.share > 0) || !(change.loss >= 0 && change.loss <= 1))
    {
        throw Error("a change of port " + std::to_string(change.port) + " makes no sense");
    }
    const lockstep::LinkId link(change.port / 2);
    const auto rate = static_cast<double>(m_topology.class_of(link).rate.bits_per_second());
    const auto left = static_cast<uint64_t>(std::max(1.0, rate * change.share));
    const Time wait = PicoSeconds(static_cast<uint64_t>(change.when_ps - now));
    const auto port = static_cast<uint32_t>(change.port);
    Simulator::Schedule(wait, &Fabric::SetPortRate, m_fabric, port, DataRate(left));
    // A fabric that may lose packets is slower to simulate: not before one does.
    const auto lose = [this, at = port / 2, loss = change.loss]
    {
        if (loss > 0 || m_losses.count(at) > 0)
        {
            m_losses[at].change = loss;
            ApplyLosses(at);
        }
    };
    Simulator::Schedule(wait, lose);
    m_fabric->ExpectChangesUntil(Simulator::Now() + wait);
}

std::string
PacketServer::DescribeStandstill() const
{
    std::string circle;
    for (const uint32_t port : m_fabric->FindDeadlock())
    {
        const lockstep::Link& link = m_topology.links[port / 2];
        const int32_t from = port % 2 == 0 ? link.a.value : link.b.value;
        const int32_t to = port % 2 == 0 ? link.b.value : link.a.value;
        circle += (circle.empty() ? "" : ", ") + std::to_string(from) + " -> " + std::to_string(to);
    }
    if (!circle.empty())
    {
        return "a PFC deadlock: these links wait for each other: " + circle +
               "; there are no virtual channels by hop, which avoid it where ways form circles: "
               "--fabric Buffer=0 (switches without limit) or --engine flow go on";
    }
    for (const uint32_t pair : m_fabric->GetGivenUp())
    {
        const FabricConnections::Endpoints& ends = m_connections->EndpointsOf(pair);
        return "from node " + std::to_string(ends.source) + " to node " +
               std::to_string(ends.destination) +
               " nothing gets through any more (RetryLimit timeouts in a row): " +
               (m_losses.empty() ? "links lose too much (LossRate), or switches (Buffer, Pfc)?"
                                 : "a link that is down without another way?");
    }
    return "a lost packet that is never sent again";
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
    uint64_t storms = 0;
    uint64_t stalls = 0;
    uint64_t maxQueue = 0;
    Json bytes = Json::array();
    Json busy = Json::array();
    for (uint32_t port = 0; port < m_fabric->GetNPorts(); ++port)
    {
        const Fabric::PortStatistics statistics = m_fabric->GetPortStatistics(port);
        marks += statistics.marks;
        drops += statistics.drops;
        pauses += statistics.pauses;
        storms += statistics.storms;
        stalls += statistics.stalls;
        maxQueue = std::max(maxQueue, statistics.maxQueue);
        const lockstep::LinkId link(static_cast<int32_t>(port / 2));
        const auto rate = static_cast<double>(m_topology.class_of(link).rate.bits_per_second());
        bytes.push_back(statistics.bytes);
        busy.push_back(static_cast<int64_t>(static_cast<double>(statistics.bytes) * 8e12 / rate));
    }
    json["marks"] = marks;
    json["drops"] = drops;
    json["pauses"] = pauses;
    json["storms"] = storms;
    json["stalls"] = stalls;
    json["max_queue_bytes"] = maxQueue;
    json["port_bytes"] = std::move(bytes);
    json["port_busy_ps"] = std::move(busy);
    m_answer = json.dump();
    m_records->Write();
    m_samples->Write();
}
