/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-parts.h"

#include <algorithm>

namespace ns3
{

FabricWires::FabricWires(FabricParts& parts)
    : m_parts(parts),
      m_state(parts.state)
{
}

int64_t
FabricWires::TransmissionTime(FabricPort& port, uint32_t bytes) const
{
    for (std::size_t i = 0; i < port.knownSize.size(); ++i)
    {
        if (port.knownSize[i] == bytes && port.knownTime[i] != 0)
        {
            return port.knownTime[i];
        }
    }
    __extension__ using Wide = unsigned __int128;
    const Wide rate = port.rate;
    const Wide picoBits = static_cast<Wide>(bytes) * 8 * 1'000'000'000'000U;
    int64_t time = 0;
    if (m_state.parameters.rounding == FABRIC_DOWN_TO_NANOSECOND)
    {
        time = static_cast<int64_t>(picoBits / rate / 1000) * 1000;
    }
    else
    {
        time = static_cast<int64_t>((picoBits + rate - 1) / rate);
    }
    // The first place keeps the full packet, the last one what base RTTs are of; others take turns
    // in the second.
    const uint32_t payload = m_state.parameters.payload;
    const std::size_t last = bytes == payload ? 2 : 1;
    const std::size_t place = bytes == payload + m_state.parameters.header ? 0 : last;
    port.knownSize[place] = bytes;
    port.knownTime[place] = time;
    return time;
}

int64_t
FabricWires::HeadTime(FabricPort& port, const FabricUnit& unit) const
{
    if (m_state.routes[unit.route] == FabricRoutes::END)
    {
        return unit.end + port.delay;
    }
    const auto granule = static_cast<uint32_t>(m_state.nodes[port.to].granule);
    if (unit.wire <= granule)
    {
        return unit.end + port.delay;
    }
    return unit.start + TransmissionTime(port, granule) + port.delay;
}

void
FabricWires::ArmArrival(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    const FabricUnit& unit = port.ring[0];
    port.arrivePending = true;
    port.arriveKey = unit.key;
    m_state.Schedule(FABRIC_ARRIVE, index, HeadTime(port, unit), unit.key);
}

void
FabricWires::Arrive(uint32_t index, uint64_t key)
{
    FabricPort& port = m_state.ports[index];
    if (!port.arrivePending || port.arriveKey != key)
    {
        m_state.events.Pop(); // a pause has taken it back
        return;
    }
    if (port.started == 0)
    {
        StartNext(index);
    }
    FabricUnit unit = port.ring[0];
    port.ring.RemoveFirst();
    --port.started;
    --port.timed;
    port.ahead -= port.ahead > 0 ? 1 : 0;
    if (port.ring.GetSize() > 0 && port.ring[0].start != FabricUnit::NOT_STARTED)
    {
        const FabricUnit& next = port.ring[0];
        port.arriveKey = next.key;
        m_state.events.ReplaceTop(
            {HeadTime(port, next), next.key, FabricEvent::Pack(FABRIC_ARRIVE, index)});
    }
    else
    {
        port.arrivePending = false;
        m_state.events.Pop();
    }
    unit.tail = unit.end + port.delay;
    unit.ingress = index;
    const bool lost =
        port.lossRate > 0 && (port.lossRate >= 1 || m_state.Draw(port) < port.lossRate);
    const uint32_t next = m_state.routes[unit.route];
    // What goes on from an NVSwitch keeps its room there until it starts.
    if (port.credits > 0 &&
        (lost || next == FabricRoutes::END || m_state.nodes[port.to].kind != FABRIC_NVSWITCH))
    {
        m_parts.credits.Return(index, unit.wire);
    }
    if (lost)
    {
        Drop(index, unit);
        return;
    }
    if (next == FabricRoutes::END)
    {
        m_parts.receivers.Receive(unit);
        return;
    }
    ++unit.route;
    m_parts.senders.Forward(next, unit);
}

void
FabricWires::SetTimes(FabricPort& port, FabricUnit& unit, int64_t start, int64_t there)
{
    unit.start = start;
    unit.end = start + TransmissionTime(port, unit.wire);
    if (unit.tail > there)
    {
        const int64_t whole = m_state.nodes[port.from].granule;
        const auto granule = std::min<uint32_t>(unit.wire, static_cast<uint32_t>(whole));
        const int64_t processing = m_state.parameters.processing.GetPicoSeconds();
        unit.end = std::max(unit.end, unit.tail + processing + TransmissionTime(port, granule));
    }
    port.freeAt = unit.end;
}

void
FabricWires::TimeNext(FabricPort& port)
{
    FabricUnit& unit = port.ring[port.timed++];
    if (unit.start != FabricUnit::NOT_STARTED)
    {
        // What has been there for as long as it is processed when it starts leaves at the full
        // rate.
        const int64_t start = std::max(port.freeAt, unit.start);
        SetTimes(port, unit, start, start - m_state.parameters.processing.GetPicoSeconds());
    }
}

void
FabricWires::TimeQueue(FabricPort& port)
{
    while (port.timed < port.ring.GetSize())
    {
        TimeNext(port);
    }
}

uint32_t
FabricWires::PlaceOf(FabricPort& port, const FabricUnit& unit, bool mayStart, int64_t ready)
{
    uint32_t place = port.ring.GetSize();
    while (mayStart && port.timed < place && port.freeAt < ready)
    {
        TimeNext(port); // those without times start at `ready` or later
    }
    if (mayStart && m_state.parameters.RankOf(unit) < m_state.parameters.LastRank())
    {
        // It goes before all that comes behind these: that is of the last rank, and starts later.
        place = std::min(place, std::max({port.started, port.timed, port.ahead}));
    }
    while (place > port.started && GoesBefore(port, unit, place - 1, mayStart, ready))
    {
        --place;
    }
    return place;
}

void
FabricWires::CountAhead(FabricPort& port) const
{
    const FabricParameters& p = m_state.parameters;
    port.ahead = port.ring.GetSize();
    while (port.ahead > 0 && p.RankOf(port.ring[port.ahead - 1]) == p.LastRank())
    {
        --port.ahead;
    }
}

void
FabricWires::Enqueue(uint32_t index, const FabricUnit& unit)
{
    FabricPort& port = m_state.ports[index];
    const FabricNode& node = m_state.nodes[port.from];
    const bool accounted = node.accounts;
    const bool mayOvertake = m_state.parameters.classes > 1 ||
                             (m_state.parameters.ackFirst && (unit.flags & FabricUnit::ACK) != 0);
    if (accounted || mayOvertake)
    {
        Settle(index);
    }
    if (accounted)
    {
        if (!m_parts.buffers.Admit(index, unit))
        {
            Drop(index, unit);
            return;
        }
        port.queued += unit.wire;
        port.lanes[unit.trafficClass].queued += unit.wire;
        port.statistics.maxQueue =
            std::max(port.statistics.maxQueue, static_cast<uint64_t>(port.queued));
    }
    const bool mayGo = !port.IsPaused(unit.trafficClass) && !port.stalled;
    const bool mayStart = mayGo && (port.credits == 0 || m_parts.credits.Take(index, unit.wire));
    const int64_t ready = m_state.now + m_state.parameters.processing.GetPicoSeconds();
    const uint32_t place = mayOvertake ? PlaceOf(port, unit, mayStart, ready) : port.ring.GetSize();
    if (place == 0)
    {
        TakeBackArrival(port);
    }
    FabricUnit& entry = port.ring.Insert(place);
    entry = unit;
    entry.key = m_state.NextKey();
    entry.start = mayStart ? ready : FabricUnit::NOT_STARTED;
    if (mayOvertake && m_state.parameters.RankOf(unit) < m_state.parameters.LastRank())
    {
        port.ahead = std::max(port.ahead, place) + 1;
    }
    else if (place < port.ahead)
    {
        ++port.ahead;
    }
    if (!mayStart)
    {
        port.timed += place <= port.timed ? 1 : 0;
        if (mayGo)
        {
            m_parts.credits.Stall(index);
        }
        return;
    }
    if (place <= port.timed)
    {
        port.timed = place;
        port.freeAt = place > port.started ? port.ring[place - 1].end : port.startedEnd;
        TimeNext(port);
    }
    if (place == 0)
    {
        ArmArrival(index);
    }
    if (node.pausing > 0)
    {
        Watch(port.from);
    }
}

void
FabricWires::Transmit(uint32_t index, const FabricUnit& unit)
{
    FabricPort& port = m_state.ports[index];
    FabricUnit& entry = port.ring.Append();
    entry = unit;
    entry.start = m_state.now;
    entry.end = m_state.now + TransmissionTime(port, unit.wire);
    if (unit.tail > m_state.now)
    {
        const auto granule =
            std::min<uint32_t>(unit.wire, static_cast<uint32_t>(m_state.nodes[port.from].granule));
        entry.end = std::max(entry.end, unit.tail + TransmissionTime(port, granule));
    }
    port.freeAt = port.sourceFree = entry.end;
    ++port.timed;
    port.pullKey = m_state.NextKey();
    entry.key = m_state.NextKey();
    Settle(index);
    if (port.credits > 0)
    {
        m_parts.credits.Spend(index, unit.wire);
    }
    if (port.ring.GetSize() == 1)
    {
        ArmArrival(index);
    }
}

void
FabricWires::Settle(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    while (port.started < port.ring.GetSize() && port.ring[port.started].start <= m_state.now)
    {
        StartNext(index);
    }
}

void
FabricWires::StartNext(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    FabricUnit& unit = port.ring[port.started];
    ++port.started;
    port.startedEnd = unit.end;
    if (port.timed == port.started && port.timed < port.ring.GetSize())
    {
        TimeNext(port);
    }
    port.statistics.bytes += unit.wire;
    ++port.statistics.units;
    const FabricNode& node = m_state.nodes[port.from];
    if (node.accounts)
    {
        m_parts.buffers.Release(index, unit);
    }
    if (unit.ingress != FabricUnit::NO_PORT && node.kind == FABRIC_NVSWITCH &&
        m_state.ports[unit.ingress].credits > 0)
    {
        m_parts.credits.Return(unit.ingress, unit.wire);
    }
}

void
FabricWires::Drop(uint32_t index, const FabricUnit& unit)
{
    ++m_state.ports[index].statistics.drops;
    m_state.tables.traces->drop(m_state.now, index, unit.wire);
    m_parts.receivers.Discard(unit);
    if (!m_state.lossy)
    {
        // A switch with PFC, whose headroom was too small: from now on losses are looked for.
        m_state.lossy = true;
        m_state.looking = false;
        m_parts.jumps.Forget();
        m_parts.episodes.Stop();
        m_parts.receivers.WatchAll();
    }
}

} // namespace ns3
