/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-connections.h"

#include "base/error.h"

#include "ns3/uinteger.h"

#include <algorithm>

using namespace ns3;

namespace
{

/**
 * \param options how ways are chosen
 * \param spray whether all are found at once
 * \return the same with that
 */
lockstep::RouteOptions
With(lockstep::RouteOptions options, bool spray)
{
    options.spray = spray;
    return options;
}

} // namespace

FabricConnections::Map::Map(const lockstep::Topology& topology,
                            const lockstep::RouteOptions& options)
    : single(topology, With(options, false)),
      all(topology, With(options, true))
{
}

FabricConnections::FabricConnections(const lockstep::Topology& topology,
                                     const lockstep::RouteOptions& options,
                                     Ptr<Fabric> fabric,
                                     bool freshPorts)
    : m_topology(topology),
      m_options(With(options, false)),
      m_map(topology, options),
      m_spray(options.spray),
      m_fabric(fabric),
      m_freshPorts(freshPorts)
{
    UintegerValue classes;
    m_fabric->GetAttribute("Classes", classes);
    m_classes = classes.Get();
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
    m_connections.push_back(
        {source, destination, channel, static_cast<uint32_t>(trafficClass), NONE});
}

uint32_t
FabricConnections::PortOf(const Map& map, const lockstep::PortId& port)
{
    const auto number = static_cast<uint32_t>(port.value);
    return map.links.empty() ? number : 2 * map.links[number / 2] + number % 2;
}

void
FabricConnections::FindWay(Map& map, const lockstep::FlowKey& key, std::vector<uint32_t>& ports)
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
        if (m_spray)
        {
            m_fabric->RerouteWays(pair, m_ways, m_back);
        }
        else
        {
            m_fabric->Reroute(pair, m_there, m_back);
        }
    }
}

void
FabricConnections::FindWays(Map& map, const Endpoints& ends)
{
    const lockstep::NodeId source(ends.source);
    const lockstep::NodeId destination(ends.destination);
    const lockstep::FlowKey there{source, destination, ends.sourcePort, LISTEN_PORT, ends.channel};
    FindWay(map, there, m_there);
    FindWay(map, {destination, source, LISTEN_PORT, ends.sourcePort, ends.channel}, m_back);
    if (m_spray)
    {
        FindAllWays(map, there);
    }
}

void
FabricConnections::FindAllWays(Map& map, const lockstep::FlowKey& key)
{
    map.all.route(key, m_route);
    const auto end = [this](uint32_t port, bool behind)
    {
        const lockstep::Link& link = m_topology.links[port / 2];
        return (port % 2 == 0) == behind ? link.b : link.a;
    };
    // Hops come by distance, so each way grows by the hops that leave the node where it ends.
    std::vector<std::vector<uint32_t>> ways = {{m_there.front()}};
    for (bool grown = true; grown;)
    {
        grown = false;
        std::vector<std::vector<uint32_t>> longer;
        for (const std::vector<uint32_t>& way : ways)
        {
            const lockstep::NodeId last = end(way.back(), true);
            for (const lockstep::Hop& hop : m_route.hops)
            {
                const uint32_t port = PortOf(map, hop.port);
                if (last != key.destination && end(port, false) == last &&
                    longer.size() < MOST_WAYS)
                {
                    longer.push_back(way);
                    longer.back().push_back(port);
                    grown = true;
                }
            }
            if (last == key.destination)
            {
                longer.push_back(way);
            }
        }
        ways = std::move(longer);
    }
    m_ways = {m_there};
    for (std::vector<uint32_t>& way : ways)
    {
        if (way != m_there)
        {
            m_ways.push_back(std::move(way));
        }
    }
}

uint32_t
FabricConnections::MakePair(const Connection& connection, uint16_t sourcePort)
{
    const Endpoints ends{connection.source, connection.destination, sourcePort, connection.channel};
    try
    {
        FindWays(m_map, ends);
    }
    catch (const lockstep::Error&)
    {
        if (m_down.empty())
        {
            throw;
        }
        // It waits for links that are down.
        if (!m_whole)
        {
            m_whole.emplace(m_topology, m_options);
        }
        FindWays(*m_whole, ends);
    }
    const uint32_t pair =
        m_fabric->AddQueuePair(m_there, m_back, m_freshPorts && !m_spray, connection.trafficClass);
    for (std::size_t i = 1; m_spray && i < m_ways.size(); ++i)
    {
        m_fabric->AddWay(pair, m_ways[i]);
    }
    m_endpoints.resize(std::max<std::size_t>(m_endpoints.size(), pair + 1));
    m_endpoints[pair] = ends;
    return pair;
}

uint32_t
FabricConnections::TakePair(uint32_t number)
{
    Connection& connection = m_connections.at(number);
    if (m_freshPorts && !m_spray)
    {
        const uint64_t ends = static_cast<uint64_t>(connection.source) << 32 |
                              static_cast<uint32_t>(connection.destination);
        const uint32_t used = m_used[ends]++;
        const uint32_t pair = MakePair(connection, static_cast<uint16_t>(FIRST_PORT + used));
        m_fabric->SetJitterSeries(pair, number, connection.messages++);
        return pair;
    }
    if (connection.pair == NONE)
    {
        connection.pair =
            MakePair(connection,
                     static_cast<uint16_t>(FIRST_PORT + static_cast<uint32_t>(connection.channel)));
        m_fabric->SetJitterSeries(connection.pair, number, 0);
    }
    return connection.pair;
}

const FabricConnections::Endpoints&
FabricConnections::EndpointsOf(uint32_t pair) const
{
    return m_endpoints[pair];
}

std::pair<int64_t, double>
FabricConnections::RttAndBandwidth(int32_t source, int32_t destination)
{
    FindWay(m_map,
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
