/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Ports whose times change: pauses, and links that become slower or faster.
 */
#include "fabric-parts.h"

#include <algorithm>

namespace ns3
{

void
FabricWires::Pause(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    if (port.paused)
    {
        return;
    }
    Settle(index);
    port.paused = true;
    port.pausedSince = m_state.now;
    ++port.statistics.pauses;
    for (uint32_t i = port.started; i < port.ring.GetSize(); ++i)
    {
        port.ring[i].start = FabricUnit::NOT_STARTED;
    }
    port.freeAt = port.startedEnd;
    TakeBackArrival(port);
}

void
FabricWires::TakeBackArrival(FabricPort& port)
{
    if (port.started == 0 && port.arrivePending)
    {
        port.arrivePending = false;
        port.ring[0].key = m_state.NextKey(); // the event that is pending is recognised by the old
    }
}

void
FabricWires::Resume(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    if (!port.paused)
    {
        return;
    }
    port.paused = false;
    const int64_t duration = m_state.now - port.pausedSince;
    port.statistics.pausedTime += duration;
    if (duration >= m_state.parameters.stormTime.GetPicoSeconds())
    {
        ++port.statistics.storms;
        m_state.traces->storm(m_state.now, index, duration);
    }
    Retime(port, std::max(port.freeAt, m_state.now));
    if (!port.arrivePending && port.ring.GetSize() > 0)
    {
        ArmArrival(index);
    }
    if (port.endpoint != FabricState::NONE)
    {
        m_parts.senders.Kick(index);
    }
    if (m_state.nodes[port.from].pausing > 0)
    {
        Watch(port.from);
    }
}

void
FabricWires::Retime(FabricPort& port, int64_t from)
{
    int64_t free = from;
    for (uint32_t i = port.started; i < port.ring.GetSize(); ++i)
    {
        if (port.stalled && port.ring[i].start == FabricUnit::NOT_STARTED)
        {
            return; // waits for credits
        }
        SetTimes(port, port.ring[i], free);
        free = port.freeAt;
    }
}

void
FabricWires::SetTimes(FabricPort& port, FabricUnit& unit, int64_t start)
{
    unit.start = start;
    unit.end = start + TransmissionTime(port, unit.wire);
    if (unit.tail > m_state.now)
    {
        const int64_t whole = m_state.nodes[port.from].granule;
        const auto granule = std::min<uint32_t>(unit.wire, static_cast<uint32_t>(whole));
        unit.end = std::max(unit.end, unit.tail + TransmissionTime(port, granule));
    }
    port.freeAt = unit.end;
}

void
FabricWires::SetRate(uint32_t index, DataRate rate)
{
    FabricPort& port = m_state.ports[index];
    Settle(index);
    port.rate = rate;
    port.psPerByte = 8e12 / static_cast<double>(rate.GetBitRate());
    port.knownTime.fill(0);
    if (port.paused || port.started == port.ring.GetSize())
    {
        return; // nothing waits, or it gets its times when it may go on
    }
    TakeBackArrival(port);
    Retime(port, std::max(port.startedEnd, m_state.now));
    if (!port.arrivePending)
    {
        ArmArrival(index);
    }
}

bool
FabricWires::StartWaiting(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    Settle(index);
    uint32_t first = port.started;
    while (first < port.ring.GetSize() && port.ring[first].start != FabricUnit::NOT_STARTED)
    {
        ++first;
    }
    for (uint32_t i = first; i < port.ring.GetSize(); ++i)
    {
        FabricUnit& unit = port.ring[i];
        if (!m_parts.credits.Take(index, unit.wire))
        {
            return false;
        }
        SetTimes(port, unit, std::max(port.freeAt, m_state.now));
        if (i == 0)
        {
            ArmArrival(index);
        }
    }
    if (m_state.nodes[port.from].pausing > 0)
    {
        Watch(port.from);
    }
    return true;
}

void
FabricWires::Depart(uint32_t index)
{
    m_state.ports[index].departPending = false;
    Settle(index);
    if (m_state.nodes[m_state.ports[index].from].pausing > 0)
    {
        Watch(m_state.ports[index].from);
    }
}

void
FabricWires::Watch(uint32_t node)
{
    for (const uint32_t index : m_state.nodes[node].ports)
    {
        FabricPort& port = m_state.ports[index];
        if (port.departPending || port.started >= port.ring.GetSize())
        {
            continue;
        }
        const int64_t start = port.ring[port.started].start;
        if (start != FabricUnit::NOT_STARTED)
        {
            port.departPending = true;
            m_state.Schedule(FABRIC_DEPART, index, std::max(start, m_state.now), m_state.NextKey());
        }
    }
}

} // namespace ns3
