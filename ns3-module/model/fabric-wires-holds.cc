/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Ports whose times change: pauses, and links that become slower or faster.
 */
#include "fabric-parts.h"

#include <algorithm>

namespace ns3
{

bool
FabricWires::GoesBefore(const FabricPort& port,
                        const FabricUnit& unit,
                        uint32_t place,
                        bool mayStart,
                        int64_t ready) const
{
    const FabricUnit& other = port.ring[place];
    if (port.IsPaused(other.trafficClass))
    {
        return !port.IsPaused(unit.trafficClass);
    }
    if (m_state.parameters.RankOf(unit) >= m_state.parameters.RankOf(other))
    {
        return false;
    }
    // One that leaves before this one may is not held up for it.
    return mayStart ? place >= port.timed || other.start >= ready
                    : other.start == FabricUnit::NOT_STARTED;
}

void
FabricWires::Pause(uint32_t index, uint32_t trafficClass)
{
    FabricPort& port = m_state.ports[index];
    if (port.IsPaused(trafficClass))
    {
        return;
    }
    Settle(index);
    port.paused = static_cast<uint8_t>(port.paused | 1U << trafficClass);
    port.lanes[trafficClass].pausedSince = m_state.now;
    ++port.statistics.pauses;
    Reorder(index);
}

void
FabricWires::Reorder(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    TimeQueue(port);
    TakeBackArrival(port);
    const auto isBefore = [this, &port](const FabricUnit& a, const FabricUnit& b)
    {
        const bool aWaits = port.IsPaused(a.trafficClass);
        const bool bWaits = port.IsPaused(b.trafficClass);
        const FabricParameters& p = m_state.parameters;
        return aWaits != bWaits ? bWaits : p.RankOf(a) < p.RankOf(b);
    };
    bool isInOrder = true;
    for (uint32_t i = port.started + 1; i < port.ring.GetSize() && isInOrder; ++i)
    {
        isInOrder = !isBefore(port.ring[i], port.ring[i - 1]);
    }
    if (m_state.parameters.OneMayOvertake() && !isInOrder)
    {
        m_waiting.clear();
        for (uint32_t i = port.started; i < port.ring.GetSize(); ++i)
        {
            m_waiting.push_back(port.ring[i]);
        }
        std::stable_sort(m_waiting.begin(), m_waiting.end(), isBefore);
        for (uint32_t i = 0; i < m_waiting.size(); ++i)
        {
            port.ring[port.started + i] = m_waiting[i];
        }
        CountAhead(port);
    }
    port.freeAt = port.startedEnd;
    Retime(port, std::max(port.startedEnd, m_state.now));
    if (!port.arrivePending && port.ring.GetSize() > 0 &&
        port.ring[0].start != FabricUnit::NOT_STARTED)
    {
        ArmArrival(index);
    }
    if (m_state.nodes[port.from].pausing > 0)
    {
        Watch(port.from);
    }
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
FabricWires::Resume(uint32_t index, uint32_t trafficClass)
{
    FabricPort& port = m_state.ports[index];
    if (!port.IsPaused(trafficClass))
    {
        return;
    }
    Settle(index);
    port.paused = static_cast<uint8_t>(port.paused & ~(1U << trafficClass));
    const int64_t duration = m_state.now - port.lanes[trafficClass].pausedSince;
    port.statistics.pausedTime += duration;
    if (duration >= m_state.parameters.stormTime.GetPicoSeconds())
    {
        ++port.statistics.storms;
        m_state.tables.traces->storm(m_state.now, index, duration);
    }
    Reorder(index);
    if (port.endpoint != FabricState::NONE)
    {
        m_parts.senders.Kick(index);
    }
}

void
FabricWires::Retime(FabricPort& port, int64_t from)
{
    const int64_t processed = m_state.now + m_state.parameters.processing.GetPicoSeconds();
    int64_t free = from;
    for (uint32_t i = port.started; i < port.ring.GetSize(); ++i)
    {
        FabricUnit& unit = port.ring[i];
        if (port.IsPaused(unit.trafficClass))
        {
            unit.start = FabricUnit::NOT_STARTED;
            continue;
        }
        if (port.stalled && unit.start == FabricUnit::NOT_STARTED)
        {
            return; // waits for credits
        }
        // It may move forward, but not to before it was there.
        const int64_t ready =
            unit.start == FabricUnit::NOT_STARTED ? m_state.now : std::min(unit.start, processed);
        SetTimes(port, unit, std::max(free, ready), m_state.now);
        free = port.freeAt;
    }
}

void
FabricWires::SetRate(uint32_t index, DataRate rate)
{
    FabricPort& port = m_state.ports[index];
    Settle(index);
    TimeQueue(port);
    port.rate = rate.GetBitRate();
    port.psPerByte = 8e12 / static_cast<double>(port.rate);
    port.knownTime.fill(0);
    if (port.started == port.ring.GetSize())
    {
        return; // nothing waits
    }
    TakeBackArrival(port);
    Retime(port, std::max(port.startedEnd, m_state.now));
    if (!port.arrivePending && port.ring[0].start != FabricUnit::NOT_STARTED)
    {
        ArmArrival(index);
    }
}

bool
FabricWires::StartWaiting(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    Settle(index);
    TimeQueue(port);
    uint32_t first = port.started;
    while (first < port.ring.GetSize() && port.ring[first].start != FabricUnit::NOT_STARTED)
    {
        ++first;
    }
    uint32_t i = first;
    for (; i < port.ring.GetSize(); ++i)
    {
        FabricUnit& unit = port.ring[i];
        if (!m_parts.credits.Take(index, unit.wire))
        {
            break;
        }
        SetTimes(port, unit, std::max(port.freeAt, m_state.now), m_state.now);
        if (i == 0)
        {
            ArmArrival(index);
        }
    }
    const bool all = i == port.ring.GetSize();
    if ((all || i > first) && m_state.nodes[port.from].pausing > 0)
    {
        Watch(port.from); // the room of those that start now is free when they do
    }
    return all;
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
    if (m_state.nodes[node].kind == FABRIC_HOST)
    {
        return; // see FabricBuffers::SettleNode()
    }
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
