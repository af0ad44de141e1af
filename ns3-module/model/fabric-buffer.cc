/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Shared buffers of a Fabric's switches: dynamic thresholds, PFC, drops, ECN.
 *
 *     used(i)   = max(0, bytes that came by ingress port i and are still here - reserve)
 *     threshold = PfcAlpha * (shared buffer - sum of used)
 *     pause i   when used(i) > threshold;  go on when used(i) + ResumeOffset <= threshold
 *
 * (Choudhury and Hahne: Dynamic queue length thresholds for shared-memory packet switches, 1998.)
 * What comes after a pause goes to the port's headroom. Counts fall when units leave, and that is
 * made up for lazily, so a count may only be too large: before it leads to anything all ports of
 * the node are settled.
 */
#include "fabric.h"

#include <algorithm>
#include <cmath>

namespace ns3
{

int64_t
Fabric::Threshold(const Port& port) const
{
    const Node& node = m_nodes[port.to];
    return static_cast<int64_t>(port.thresholdShare *
                                static_cast<double>(node.shared - node.sharedUsed));
}

void
Fabric::Hold(Port& port, int64_t bytes)
{
    const int64_t before = std::max<int64_t>(0, port.held - port.reserve);
    port.held += bytes;
    const int64_t after = std::max<int64_t>(0, port.held - port.reserve);
    m_nodes[port.to].sharedUsed += after - before;
}

void
Fabric::SettleNode(uint32_t node)
{
    for (const uint32_t index : m_nodes[node].ports)
    {
        Settle(index);
    }
}

bool
Fabric::Admit(uint32_t egress, const FabricUnit& unit)
{
    const uint32_t number = m_ports[egress].from;
    Node& node = m_nodes[number];
    if (!node.finite || unit.ingress == FabricUnit::NO_PORT)
    {
        return true;
    }
    Port& ingress = m_ports[unit.ingress];
    if (!node.pauses)
    {
        const auto full = [&]
        {
            const double free = static_cast<double>(node.shared - node.sharedUsed);
            return static_cast<double>(m_ports[egress].queued + unit.wire) > m_pfcAlpha * free;
        };
        if (full())
        {
            SettleNode(number);
            if (full())
            {
                return false;
            }
        }
        Hold(ingress, unit.wire);
        return true;
    }
    const auto overflows = [&] {
        return ingress.holding && ingress.held + unit.wire - ingress.heldAtPause > ingress.headroom;
    };
    if (overflows())
    {
        SettleNode(number);
        if (overflows())
        {
            return false;
        }
    }
    Hold(ingress, unit.wire);
    const auto crosses = [&] { return ingress.held - ingress.reserve > Threshold(ingress); };
    if (!ingress.holding && crosses())
    {
        SettleNode(number);
        if (crosses())
        {
            ingress.holding = true;
            ingress.heldAtPause = ingress.held;
            ++node.pausing;
            SendPause(unit.ingress, true);
            Watch(number);
        }
    }
    return true;
}

void
Fabric::Release(uint32_t egress, FabricUnit& unit)
{
    Port& port = m_ports[egress];
    Node& node = m_nodes[port.from];
    port.queued -= unit.wire;
    if (node.finite && unit.ingress != FabricUnit::NO_PORT)
    {
        Port& ingress = m_ports[unit.ingress];
        Hold(ingress, -static_cast<int64_t>(unit.wire));
        if (ingress.holding)
        {
            const int64_t used = std::max<int64_t>(0, ingress.held - ingress.reserve);
            if (used == 0 || used + static_cast<int64_t>(m_resumeOffset) <= Threshold(ingress))
            {
                ingress.holding = false;
                --node.pausing;
                SendPause(unit.ingress, false);
            }
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
        FabricTelemetry& telemetry = m_telemetry[unit.telemetry];
        if (telemetry.hops < FabricTelemetry::MAX_HOPS)
        {
            telemetry.hop[telemetry.hops++] = {unit.start,
                                               port.statistics.bytes,
                                               static_cast<uint64_t>(port.queued),
                                               static_cast<double>(port.rate.GetBitRate())};
        }
    }
}

void
Fabric::Mark(Port& port, FabricUnit& unit)
{
    if (port.queued <= port.kmin)
    {
        return;
    }
    bool mark = port.queued > port.kmax;
    if (!mark)
    {
        double probability = port.pmax * static_cast<double>(port.queued - port.kmin) /
                             static_cast<double>(port.kmax - port.kmin);
        if (m_deterministicMarks)
        {
            port.markDebt += probability * unit.packets;
            if (port.markDebt >= 1)
            {
                port.markDebt -= std::floor(port.markDebt);
                mark = true;
            }
        }
        else
        {
            if (unit.packets > 1)
            {
                probability = 1 - std::pow(1 - probability, unit.packets);
            }
            mark = Draw() < probability;
        }
    }
    if (mark)
    {
        unit.flags |= FabricUnit::CE;
        port.statistics.marks += unit.packets;
    }
}

void
Fabric::SendPause(uint32_t index, bool pause)
{
    constexpr uint32_t FRAME = 64; // bytes of a PFC frame
    const uint32_t reverse = index ^ 1;
    Port& way = m_ports[reverse];
    m_pauseTrace(m_now, way.from, index, pause);
    // It goes before all that waits, but not before what is being sent.
    const int64_t start = std::max(m_now, way.startedEnd);
    const int64_t arrival = start + TransmissionTime(way, FRAME) + way.delay;
    Schedule(pause ? PAUSE : RESUME, index, arrival, NextKey());
}

} // namespace ns3
