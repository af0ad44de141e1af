/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-parts.h"

#include <algorithm>
#include <cmath>

namespace ns3
{

FabricBuffers::FabricBuffers(FabricParts& parts)
    : m_parts(parts),
      m_state(parts.state)
{
}

void
FabricBuffers::AddEcnRow(double rate, double kmin, double kmax, double pmax)
{
    m_ecnTable.push_back({rate, kmin, kmax, pmax});
}

void
FabricBuffers::Divide()
{
    for (FabricPort& port : m_state.ports)
    {
        SetMarks(port);
    }
    for (FabricNode& node : m_state.nodes)
    {
        DivideNode(node);
    }
    m_parts.credits.Divide();
}

void
FabricBuffers::SetMarks(FabricPort& port) const
{
    const FabricParameters& p = m_state.parameters;
    const double gbps = static_cast<double>(port.rate) / 1e9;
    port.kmin = WholeBytes(p.kminFactor * gbps);
    port.kmax = WholeBytes(p.kmaxFactor * gbps);
    port.pmax = p.pmax;
    for (const auto& row : m_ecnTable)
    {
        if (row[0] == static_cast<double>(port.rate))
        {
            port.kmin = WholeBytes(row[1]);
            port.kmax = WholeBytes(row[2]);
            port.pmax = row[3];
        }
    }
}

void
FabricBuffers::DivideNode(FabricNode& node)
{
    const FabricParameters& p = m_state.parameters;
    const uint32_t full = p.payload + p.header;
    node.granule = p.cutThrough ? std::min<uint32_t>(64, full) : full;
    const bool nvlink = node.kind == FABRIC_NVSWITCH && p.nvswitchFlow && p.nvlinkCredits == 0;
    node.finite = p.buffer > 0 && (node.kind == FABRIC_SWITCH || nvlink);
    node.pauses = node.finite && (nvlink || p.pfc);
    node.marks = node.kind == FABRIC_SWITCH && p.ecn &&
                 (m_state.tables.needs & FabricCongestionControl::MARKS) != 0;
    node.accounts = node.finite || node.marks ||
                    (node.kind == FABRIC_SWITCH &&
                     (m_state.tables.needs & FabricCongestionControl::TELEMETRY) != 0);
    // What comes by a port is held up by that port's buffer share in this node. Headroom: the
    // bytes of a round trip on the wire, and a unit at each end (twice for a pause frame that
    // just missed one).
    int64_t shared = static_cast<int64_t>(p.buffer);
    const auto classes = static_cast<int64_t>(p.classes);
    for (const uint32_t leaving : node.ports)
    {
        FabricPort& ingress = m_state.ports[leaving ^ 1];
        const double perPs = static_cast<double>(ingress.rate) / 8e12;
        ingress.headroom = static_cast<int64_t>(3 * static_cast<double>(ingress.delay) * perPs) +
                           static_cast<int64_t>(full) * p.headroomPackets * p.train;
        ingress.reserve = static_cast<int64_t>(p.portReserve);
        ingress.thresholdShare = ThresholdShare(ingress.rate);
        shared -= classes * (ingress.headroom + ingress.reserve);
    }
    const auto half = static_cast<int64_t>(p.buffer / 2);
    if (shared < half)
    {
        // Many ports for this buffer: what is set apart for them gets half of it.
        const double scale = static_cast<double>(half) /
                             static_cast<double>(static_cast<int64_t>(p.buffer) - shared);
        for (const uint32_t leaving : node.ports)
        {
            FabricPort& ingress = m_state.ports[leaving ^ 1];
            ingress.headroom = static_cast<int64_t>(scale * static_cast<double>(ingress.headroom));
            ingress.reserve = static_cast<int64_t>(scale * static_cast<double>(ingress.reserve));
        }
        shared = static_cast<int64_t>(p.buffer) - half;
    }
    node.shared = shared;
}

double
FabricBuffers::ThresholdShare(uint64_t rate) const
{
    double share = m_state.parameters.pfcAlpha;
    const uint64_t first = m_state.parameters.pfcAlphaByRate ? FirstRate() : 0;
    for (uint64_t left = rate; first > 0 && left > first && share < 1; left /= 2)
    {
        share = std::min(1.0, 2 * share);
    }
    return share;
}

uint64_t
FabricBuffers::FirstRate() const
{
    for (const FabricNode& node : m_state.nodes)
    {
        if (node.kind == FABRIC_HOST && !node.ports.empty())
        {
            return m_state.ports[node.ports.front()].rate;
        }
    }
    return 0;
}

int64_t
FabricBuffers::Threshold(const FabricPort& port) const
{
    const FabricParameters& p = m_state.parameters;
    const FabricNode& node = m_state.nodes[port.to];
    if (!p.dynamicThreshold)
    {
        const auto lanes = static_cast<int64_t>(node.ports.size()) * p.classes;
        return p.pfcThreshold > 0 ? static_cast<int64_t>(p.pfcThreshold) : node.shared / lanes;
    }
    return static_cast<int64_t>(port.thresholdShare *
                                static_cast<double>(node.shared - node.sharedUsed));
}

void
FabricBuffers::Hold(FabricPort& port, uint32_t trafficClass, int64_t bytes)
{
    FabricLane& lane = port.lanes[trafficClass];
    const int64_t before = std::max<int64_t>(0, lane.held - port.reserve);
    lane.held += bytes;
    const int64_t after = std::max<int64_t>(0, lane.held - port.reserve);
    FabricNode& node = m_state.nodes[port.to];
    node.sharedUsed += after - before;
    node.held += bytes;
}

void
FabricBuffers::SettleNode(uint32_t node)
{
    if (m_state.nodes[node].kind == FABRIC_HOST)
    {
        return; // it takes what comes out of the wire's buffer at once
    }
    for (const uint32_t index : m_state.nodes[node].ports)
    {
        m_parts.wires.Settle(index);
    }
}

bool
FabricBuffers::Admit(uint32_t egress, const FabricUnit& unit)
{
    const uint32_t number = m_state.ports[egress].from;
    FabricNode& node = m_state.nodes[number];
    if (!node.finite || unit.ingress == FabricUnit::NO_PORT)
    {
        return true;
    }
    FabricPort& ingress = m_state.ports[unit.ingress];
    FabricLane& lane = ingress.lanes[unit.trafficClass];
    // Whatever thresholds say, a buffer has no more than its bytes.
    const auto lacksRoom = [&]
    { return node.held + unit.wire > static_cast<int64_t>(m_state.parameters.buffer); };
    if (!node.pauses)
    {
        // An empty queue takes a packet even where the threshold is less than that.
        const auto full = [&]
        {
            const int64_t queued = m_state.ports[egress].lanes[unit.trafficClass].queued;
            return lacksRoom() || (queued > 0 && queued + unit.wire > Threshold(ingress));
        };
        if (full())
        {
            SettleNode(number);
            if (full())
            {
                return false;
            }
        }
        Hold(ingress, unit.trafficClass, unit.wire);
        return true;
    }
    const auto bit = static_cast<uint8_t>(1U << unit.trafficClass);
    const auto overflows = [&]
    {
        return lacksRoom() || ((ingress.holding & bit) != 0 &&
                               lane.held + unit.wire - lane.heldAtPause > ingress.headroom);
    };
    if (overflows())
    {
        SettleNode(number);
        if (overflows())
        {
            return false;
        }
    }
    Hold(ingress, unit.trafficClass, unit.wire);
    const auto crosses = [&] { return lane.held - ingress.reserve > Threshold(ingress); };
    if ((ingress.holding & bit) == 0 && crosses())
    {
        SettleNode(number);
        if (crosses())
        {
            ingress.holding = static_cast<uint8_t>(ingress.holding | bit);
            lane.heldAtPause = lane.held;
            ++node.pausing;
            SendPause(unit.ingress, unit.trafficClass, true);
            m_parts.wires.Watch(number);
        }
    }
    return true;
}

void
FabricBuffers::Release(uint32_t egress, FabricUnit& unit)
{
    FabricPort& port = m_state.ports[egress];
    FabricNode& node = m_state.nodes[port.from];
    port.queued -= unit.wire;
    port.lanes[unit.trafficClass].queued -= unit.wire;
    if (node.finite && unit.ingress != FabricUnit::NO_PORT)
    {
        FabricPort& ingress = m_state.ports[unit.ingress];
        Hold(ingress, unit.trafficClass, -static_cast<int64_t>(unit.wire));
        if ((ingress.holding >> unit.trafficClass & 1) != 0)
        {
            LetGo(unit.ingress, unit.trafficClass);
        }
    }
    if ((unit.flags & FabricUnit::ACK) != 0)
    {
        return;
    }
    if (node.marks)
    {
        Mark(port, unit);
    }
    if (unit.telemetry != FabricUnit::NO_TELEMETRY)
    {
        FabricTelemetry& telemetry = m_state.telemetry[unit.telemetry];
        if (telemetry.hops < FabricTelemetry::MAX_HOPS)
        {
            telemetry.hop[telemetry.hops++] = {unit.start,
                                               port.statistics.bytes,
                                               static_cast<uint64_t>(port.queued),
                                               static_cast<double>(port.rate),
                                               egress};
        }
    }
}

void
FabricBuffers::LetGo(uint32_t ingress, uint32_t trafficClass)
{
    FabricPort& port = m_state.ports[ingress];
    const int64_t used = std::max<int64_t>(0, port.lanes[trafficClass].held - port.reserve);
    if (used == 0 ||
        used + static_cast<int64_t>(m_state.parameters.resumeOffset) <= Threshold(port))
    {
        port.holding = static_cast<uint8_t>(port.holding & ~(1U << trafficClass));
        --m_state.nodes[port.to].pausing;
        SendPause(ingress, trafficClass, false);
    }
}

void
FabricBuffers::Mark(FabricPort& port, FabricUnit& unit)
{
    FabricLane& lane = port.lanes[unit.trafficClass];
    if (lane.queued <= port.kmin)
    {
        return;
    }
    bool mark = lane.queued > port.kmax;
    if (!mark)
    {
        double probability = port.pmax * static_cast<double>(lane.queued - port.kmin) /
                             static_cast<double>(port.kmax - port.kmin);
        if (m_state.parameters.deterministicMarks)
        {
            m_parts.episodes.Stop(); // the debt stays
            lane.markDebt += probability * unit.packets;
            if (lane.markDebt >= 1)
            {
                lane.markDebt -= std::floor(lane.markDebt);
                mark = true;
            }
        }
        else
        {
            if (unit.packets > 1)
            {
                probability = 1 - std::pow(1 - probability, unit.packets);
            }
            mark = m_state.Draw(port) < probability;
        }
    }
    if (mark)
    {
        unit.flags |= FabricUnit::CE;
        port.statistics.marks += unit.packets;
    }
}

void
FabricBuffers::SendPause(uint32_t index, uint32_t trafficClass, bool pause)
{
    constexpr uint32_t FRAME = 64; // bytes of a PFC frame
    const uint32_t reverse = index ^ 1;
    FabricPort& way = m_state.ports[reverse];
    // It goes before all that waits, but not before what is being sent.
    const int64_t start = std::max(m_state.now, way.startedEnd);
    const int64_t arrival = start + m_parts.wires.TransmissionTime(way, FRAME) + way.delay;
    m_state.Schedule(pause ? FABRIC_PAUSE : FABRIC_RESUME,
                     FabricState::Lane(index, trafficClass),
                     arrival,
                     m_state.NextKey());
}

} // namespace ns3
