/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "packet-records.h"

#include "base/atomic_file.h"

#include "ns3/uinteger.h"

#include <cstdio>
#include <utility>

using namespace ns3;

namespace
{

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

PacketRecords::PacketRecords(const lockstep::Topology& topology,
                             FabricConnections& connections,
                             Ptr<Fabric> fabric,
                             std::string fctFile,
                             std::string pfcFile)
    : m_topology(topology),
      m_connections(connections),
      m_fabric(fabric),
      m_fctFile(std::move(fctFile)),
      m_pfcFile(std::move(pfcFile))
{
    if (!m_fctFile.empty())
    {
        m_fabric->TraceConnectWithoutContext("Message",
                                             MakeCallback(&PacketRecords::RecordMessage, this));
    }
    if (!m_pfcFile.empty())
    {
        m_fabric->TraceConnectWithoutContext("Pfc",
                                             MakeCallback(&PacketRecords::RecordPause, this));
    }
}

void
PacketRecords::RecordMessage(const Fabric::MessageRecord& record)
{
    const FabricConnections::Endpoints& ends = m_connections.EndpointsOf(record.pair);
    auto [place, isNew] = m_rtts.try_emplace({ends.source, ends.destination});
    if (isNew)
    {
        place->second = m_connections.RttAndBandwidth(ends.source, ends.destination);
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
PacketRecords::RecordPause(int64_t now,
                           uint32_t node,
                           uint32_t port,
                           uint32_t trafficClass,
                           bool pause)
{
    // SimAI names the node that is told, what kind it is and its interface, counted from 1; not the
    // traffic class.
    static_cast<void>(node);
    static_cast<void>(trafficClass);
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
PacketRecords::Write() const
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
