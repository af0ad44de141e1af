/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-connections.h"

#include "base/error.h"
#include "topologies/ecmp_hash.h"

#include "ns3/uinteger.h"

#include <algorithm>

using namespace ns3;

namespace
{

/**
 * \param options how ways are chosen
 * \return the same with one way for each flow, hashed everywhere
 */
lockstep::RouteOptions
Single(lockstep::RouteOptions options)
{
    options.spray = false;
    options.hash_nvlinks = true;
    return options;
}

} // namespace

FabricConnections::Map::Map(const lockstep::Topology& topology,
                            const lockstep::RouteOptions& options)
    : single(topology, Single(options)),
      all(topology, options)
{
}

FabricConnections::FabricConnections(const lockstep::Topology& topology,
                                     const lockstep::RouteOptions& options,
                                     Ptr<Fabric> fabric,
                                     bool freshPorts)
    : m_topology(topology),
      m_options(options),
      m_map(topology, options),
      m_fabric(fabric),
      m_oneShot(freshPorts && !options.spray)
{
    UintegerValue value;
    m_fabric->GetAttribute("Classes", value);
    m_classes = value.Get();
    m_fabric->GetAttribute("Payload", value);
    m_payload = static_cast<int64_t>(value.Get());
}

void
FabricConnections::Connect(int32_t source,
                           int32_t destination,
                           int32_t channel,
                           int32_t trafficClass)
{
    const auto nodes = static_cast<int32_t>(m_topology.nodes.size());
    for (const int32_t node : {source, destination})
    {
        if (node < 0 || node >= nodes)
        {
            throw lockstep::Error("a transfer names node " + std::to_string(node))
                .expected("a node of the topology, 0 to " + std::to_string(nodes - 1));
        }
    }
    if (source == destination)
    {
        throw lockstep::Error("a transfer from node " + std::to_string(source) + " to itself")
            .hint("what stays on one GPU does not cross the network");
    }
    if (trafficClass >= static_cast<int64_t>(m_classes))
    {
        throw lockstep::Error("a transfer in traffic class " + std::to_string(trafficClass))
            .expected("one of 0 to " + std::to_string(m_classes - 1))
            .hint("--fabric Classes=N makes more of them");
    }
    m_connections.push_back({source, destination, channel, static_cast<uint32_t>(trafficClass)});
}

uint32_t
FabricConnections::PortOf(const Map& map, const lockstep::PortId& port)
{
    const auto number = static_cast<uint32_t>(port.value);
    return map.links.empty() ? number : 2 * map.links[number / 2] + number % 2;
}

void
FabricConnections::FindWay(Map& map, const lockstep::FlowKey& key, Way& ports)
{
    map.single.route(key, m_route);
    ports.clear();
    for (const lockstep::Hop& hop : m_route.hops)
    {
        ports.push_back(PortOf(map, hop.port));
    }
}

void
FabricConnections::SetDown(const std::vector<uint32_t>& links, bool down)
{
    for (const uint32_t link : links)
    {
        if (down)
        {
            ++m_down[link];
        }
        else if (--m_down.at(link) == 0)
        {
            m_down.erase(link);
        }
    }
    m_left = m_topology;
    m_left.links.clear();
    std::vector<uint32_t> left;
    for (uint32_t link = 0; link < m_topology.links.size(); ++link)
    {
        if (m_down.count(link) == 0)
        {
            m_left.links.push_back(m_topology.links[link]);
            left.push_back(link);
        }
    }
    m_map = Map(m_left, m_options);
    m_map.links = std::move(left);
    for (uint32_t pair = 0; pair < m_endpoints.size(); ++pair)
    {
        try
        {
            FindWays(m_map, m_endpoints[pair]);
        }
        catch (const lockstep::Error&)
        {
            continue; // no other way
        }
        const std::vector<Way>& ways = LaneOf(m_endpoints[pair]);
        m_fabric->RerouteWays(pair, ways, m_back);
    }
}

lockstep::NodeId
FabricConnections::EndOf(uint32_t port, bool behind) const
{
    const lockstep::Link& link = m_topology.links[port / 2];
    return (port % 2 == 0) == behind ? link.b : link.a;
}

void
FabricConnections::FindWays(Map& map, const Endpoints& ends)
{
    const lockstep::NodeId source(ends.source);
    const lockstep::NodeId destination(ends.destination);
    const lockstep::FlowKey there{source, destination, ends.sourcePort, LISTEN_PORT, ends.channel};
    FindWay(map, there, m_there);
    FindWay(map, {destination, source, LISTEN_PORT, ends.sourcePort, ends.channel}, m_back);
    m_lanes.clear();
    if (m_oneShot)
    {
        m_lanes.push_back({m_there});
        return;
    }
    map.all.route(there, m_route);
    std::vector<uint32_t> first;
    for (const lockstep::Hop& hop : m_route.hops)
    {
        const uint32_t port = PortOf(map, hop.port);
        if (EndOf(port, false) == source)
        {
            first.push_back(port);
        }
    }
    std::rotate(first.begin(), std::find(first.begin(), first.end(), m_there.front()), first.end());
    for (const uint32_t port : first)
    {
        m_lanes.push_back(WaysFrom(map, there, port, m_there));
    }
}

std::vector<FabricConnections::Way>
FabricConnections::WaysFrom(Map& map,
                            const lockstep::FlowKey& key,
                            uint32_t first,
                            const Way& hashed)
{
    struct Node
    {
        std::vector<uint32_t> next;
        std::size_t begin{0};
        std::size_t turn{0};
    };

    std::map<lockstep::NodeId, Node> nodes;
    for (const lockstep::Hop& hop : m_route.hops)
    {
        const uint32_t port = PortOf(map, hop.port);
        nodes[EndOf(port, false)].next.push_back(port);
    }
    for (auto& [id, node] : nodes)
    {
        const auto found =
            std::find_if(node.next.begin(),
                         node.next.end(),
                         [&hashed](uint32_t port)
                         { return std::find(hashed.begin(), hashed.end(), port) != hashed.end(); });
        node.begin = found != node.next.end()
                         ? static_cast<std::size_t>(found - node.next.begin())
                         : lockstep::murmur3_x86_32(lockstep::node_address(key.source),
                                                    lockstep::node_address(key.destination),
                                                    key.source_port,
                                                    static_cast<uint32_t>(id.value)) %
                               node.next.size();
        node.turn = node.begin;
    }
    std::vector<Way> ways;
    const auto repeats = [&nodes]
    {
        return std::all_of(nodes.begin(),
                           nodes.end(),
                           [](const auto& each) { return each.second.turn == each.second.begin; });
    };
    do
    {
        Way& way = ways.emplace_back(Way{first});
        for (lockstep::NodeId at = EndOf(first, true); at != key.destination;
             at = EndOf(way.back(), true))
        {
            Node& node = nodes.at(at);
            way.push_back(node.next[node.turn]);
            node.turn = (node.turn + 1) % node.next.size();
        }
    } while (ways.size() < MOST_WAYS && !repeats());
    return ways;
}

const std::vector<FabricConnections::Way>&
FabricConnections::LaneOf(const Endpoints& ends)
{
    // Another port's where its own leads nowhere at present.
    const auto own =
        std::find_if(m_lanes.begin(),
                     m_lanes.end(),
                     [&ends](const auto& ways) { return ways.front().front() == ends.port; });
    const std::vector<Way>& ways =
        own != m_lanes.end() ? *own : m_lanes[ends.lane % m_lanes.size()];
    if (m_lanes.size() > 1)
    {
        // Each queue pair has its ACKs come to its own port.
        m_back.assign(ways.front().rbegin(), ways.front().rend());
        for (uint32_t& port : m_back)
        {
            port ^= 1;
        }
    }
    return ways;
}

uint32_t
FabricConnections::MakeOneShot(const Connection& connection, uint16_t sourcePort)
{
    if (!m_down.empty())
    {
        return MakePairs(connection, sourcePort).front();
    }
    const lockstep::NodeId source(connection.source);
    const lockstep::NodeId destination(connection.destination);
    FindWay(m_map, {source, destination, sourcePort, LISTEN_PORT, connection.channel}, m_there);
    FindWay(m_map, {destination, source, LISTEN_PORT, sourcePort, connection.channel}, m_back);
    const uint32_t pair = m_fabric->AddQueuePair(m_there, m_back, true, connection.trafficClass);
    NoteEndpoints(pair,
                  {connection.source,
                   connection.destination,
                   sourcePort,
                   connection.channel,
                   0,
                   m_there.front()});
    return pair;
}

void
FabricConnections::NoteEndpoints(uint32_t pair, const Endpoints& ends)
{
    if (pair >= m_endpoints.size())
    {
        m_endpoints.resize(pair + 1);
    }
    m_endpoints[pair] = ends;
}

std::vector<uint32_t>
FabricConnections::MakePairs(const Connection& connection, uint16_t sourcePort)
{
    Endpoints ends{connection.source, connection.destination, sourcePort, connection.channel, 0, 0};
    FindWays(Whole(), ends);
    const std::vector<std::vector<Way>> lanes = m_lanes;
    if (!m_down.empty())
    {
        try
        {
            FindWays(m_map, ends);
        }
        catch (const lockstep::Error&)
        {
            FindWays(Whole(), ends); // it waits for links that are down
        }
    }
    std::vector<uint32_t> pairs;
    const Way back = m_back;
    for (const std::vector<Way>& lane : lanes)
    {
        ends.lane = static_cast<uint32_t>(pairs.size());
        ends.port = lane.front().front();
        m_back = back;
        const std::vector<Way>& ways = LaneOf(ends);
        const uint32_t pair =
            m_fabric->AddQueuePair(ways.front(), m_back, m_oneShot, connection.trafficClass);
        for (std::size_t i = 1; i < ways.size(); ++i)
        {
            m_fabric->AddWay(pair, ways[i]);
        }
        NoteEndpoints(pair, ends);
        pairs.push_back(pair);
    }
    return pairs;
}

const std::vector<FabricConnections::Part>&
FabricConnections::TakeParts(uint32_t number, int64_t bytes)
{
    Connection& connection = m_connections.at(number);
    m_parts.clear();
    if (m_oneShot)
    {
        const uint64_t ends = static_cast<uint64_t>(connection.source) << 32 |
                              static_cast<uint32_t>(connection.destination);
        const uint32_t used = m_used[ends]++;
        const uint32_t pair = MakeOneShot(connection, static_cast<uint16_t>(FIRST_PORT + used));
        m_fabric->SetJitterSeries(pair, number, connection.messages++);
        m_parts.push_back({pair, bytes});
        return m_parts;
    }
    m_lanesOf.resize(std::max<std::size_t>(m_lanesOf.size(), number + 1));
    Lanes& own = m_lanesOf[number];
    if (own.pairs.empty())
    {
        own.pairs = MakePairs(
            connection,
            static_cast<uint16_t>(FIRST_PORT + static_cast<uint32_t>(connection.channel)));
        for (const uint32_t pair : own.pairs)
        {
            m_fabric->SetJitterSeries(pair, number, 0);
        }
    }
    const auto lanes = static_cast<int64_t>(own.pairs.size());
    const int64_t packets = bytes / m_payload + (bytes % m_payload != 0 ? 1 : 0);
    const int64_t count = std::clamp<int64_t>(packets, 1, lanes);
    for (int64_t i = 0; i < count; ++i)
    {
        m_parts.push_back({own.pairs[own.turn], bytes / count + (i < bytes % count ? 1 : 0)});
        own.turn = (own.turn + 1) % static_cast<uint32_t>(lanes);
    }
    return m_parts;
}

bool
FabricConnections::HasLanes(uint32_t connection) const
{
    return !m_oneShot && m_lanesOf.at(connection).pairs.size() > 1;
}

int32_t
FabricConnections::SourceOf(uint32_t connection) const
{
    return m_connections.at(connection).source;
}

const FabricConnections::Endpoints&
FabricConnections::EndpointsOf(uint32_t pair) const
{
    return m_endpoints[pair];
}

FabricConnections::Map&
FabricConnections::Whole()
{
    if (m_down.empty())
    {
        return m_map;
    }
    if (!m_whole)
    {
        m_whole.emplace(m_topology, m_options);
    }
    return *m_whole;
}

std::pair<int64_t, double>
FabricConnections::RttAndBandwidth(int32_t source, int32_t destination)
{
    FindWay(Whole(),
            {lockstep::NodeId(source), lockstep::NodeId(destination), FIRST_PORT, LISTEN_PORT, 0},
            m_there);
    double bandwidth = 0;
    for (const uint32_t port : m_there)
    {
        const lockstep::LinkId link(static_cast<int32_t>(port / 2));
        const auto rate = static_cast<double>(m_topology.class_of(link).rate.bits_per_second());
        bandwidth = bandwidth == 0 ? rate : std::min(bandwidth, rate);
    }
    return {m_fabric->GetBaseRtt(m_there), bandwidth};
}

int64_t
FabricConnections::LargestProduct()
{
    // All pairs would be GPUs squared; of a large cluster some senders stand for the rest.
    constexpr std::size_t SENDERS = 128;
    const std::vector<lockstep::NodeId> gpus = m_topology.gpus();
    const std::size_t step = std::max<std::size_t>(1, gpus.size() / SENDERS);
    double largest = 0;
    for (std::size_t i = 0; i < gpus.size(); i += step)
    {
        for (const lockstep::NodeId to : gpus)
        {
            if (to != gpus[i])
            {
                const auto [rtt, bandwidth] = RttAndBandwidth(gpus[i].value, to.value);
                largest = std::max(largest, static_cast<double>(rtt) * bandwidth / 8e12);
            }
        }
    }
    return static_cast<int64_t>(largest);
}
