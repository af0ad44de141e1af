/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Ports of a Fabric: queues, transmission, propagation.
 *
 * A switch port is a FIFO, so the moment a unit leaves is known when it comes:
 *
 *     start = max(the port is free, head + processing)
 *     end   = max(start + wire / C, tail + processing + granule / C)
 *
 * where head and tail are the arrivals of its first granule (a full packet when storing and
 * forwarding, 64 bytes when cutting through) and of its last bit. One event a unit and hop is left:
 * the arrival at the other end; and one pending event a port, for its oldest unit. What happens at
 * a unit's start (marks, buffer) is made up for when somebody looks. A pause takes back the times
 * of those that have not started.
 */
#include "fabric.h"

#include "ns3/simulator.h"

#include <algorithm>

namespace ns3
{

int64_t
Fabric::TransmissionTime(Port& port, uint32_t bytes) const
{
    for (std::size_t i = 0; i < port.knownSize.size(); ++i)
    {
        if (port.knownSize[i] == bytes && port.knownTime[i] != 0)
        {
            return port.knownTime[i];
        }
    }
    __extension__ using Wide = unsigned __int128;
    const Wide rate = port.rate.GetBitRate();
    const Wide picoBits = static_cast<Wide>(bytes) * 8 * 1'000'000'000'000U;
    int64_t time = 0;
    if (m_rounding == DOWN_TO_NANOSECOND)
    {
        time = static_cast<int64_t>(picoBits / rate / 1000) * 1000;
    }
    else
    {
        time = static_cast<int64_t>((picoBits + rate - 1) / rate);
    }
    // The first place keeps the full packet; others take turns in the second.
    const std::size_t place = bytes == m_payload + m_header ? 0 : 1;
    port.knownSize[place] = bytes;
    port.knownTime[place] = time;
    return time;
}

int64_t
Fabric::HeadTime(Port& port, const FabricUnit& unit) const
{
    if (m_routes[unit.route] == END_OF_ROUTE)
    {
        return unit.end + port.delay;
    }
    const auto granule = static_cast<uint32_t>(m_nodes[port.to].granule);
    if (unit.wire <= granule)
    {
        return unit.end + port.delay;
    }
    return unit.start + TransmissionTime(port, granule) + port.delay;
}

void
Fabric::ArmArrival(uint32_t index)
{
    Port& port = m_ports[index];
    const FabricUnit& unit = port.ring[0];
    port.arrivePending = true;
    port.arriveKey = unit.key;
    Schedule(ARRIVE, index, HeadTime(port, unit), unit.key);
}

void
Fabric::Arrive(uint32_t index, uint64_t key)
{
    Port& port = m_ports[index];
    if (!port.arrivePending || port.arriveKey != key)
    {
        m_events.Pop(); // a pause has taken it back
        return;
    }
    if (port.started == 0)
    {
        StartNext(index);
    }
    FabricUnit unit = port.ring[0];
    port.ring.RemoveFirst();
    --port.started;
    if (port.ring.GetSize() > 0 && port.ring[0].start != FabricUnit::NOT_STARTED)
    {
        const FabricUnit& next = port.ring[0];
        port.arriveKey = next.key;
        m_events.ReplaceTop({HeadTime(port, next), next.key, index << 3 | ARRIVE});
    }
    else
    {
        port.arrivePending = false;
        m_events.Pop();
    }
    unit.tail = unit.end + port.delay;
    unit.ingress = index;
    if (port.lossRate > 0 && Draw() < port.lossRate)
    {
        Drop(index, unit);
        return;
    }
    const uint32_t next = m_routes[unit.route];
    if (next == END_OF_ROUTE)
    {
        Receive(unit);
        return;
    }
    ++unit.route;
    Forward(next, unit);
}

int64_t
Fabric::GetQueue(uint32_t port)
{
    m_now = std::max(m_now, Simulator::Now().GetPicoSeconds());
    Settle(port);
    UpdatePump();
    return m_ports[port].queued;
}

void
Fabric::Enqueue(uint32_t index, const FabricUnit& unit)
{
    Port& port = m_ports[index];
    const Node& node = m_nodes[port.from];
    const bool accounted = node.finite || node.marks;
    if (accounted)
    {
        Settle(index);
        if (!Admit(index, unit))
        {
            Drop(index, unit);
            return;
        }
        port.queued += unit.wire;
        port.statistics.maxQueue =
            std::max(port.statistics.maxQueue, static_cast<uint64_t>(port.queued));
    }
    FabricUnit& entry = port.ring.Append();
    entry = unit;
    entry.key = NextKey();
    if (port.paused)
    {
        entry.start = FabricUnit::NOT_STARTED;
        return;
    }
    const int64_t processing = m_processing.GetPicoSeconds();
    const auto granule = std::min<uint32_t>(unit.wire, static_cast<uint32_t>(node.granule));
    entry.start = std::max(port.freeAt, m_now + processing);
    entry.end = entry.start + TransmissionTime(port, unit.wire);
    if (unit.tail > m_now)
    {
        entry.end = std::max(entry.end, unit.tail + processing + TransmissionTime(port, granule));
    }
    port.freeAt = entry.end;
    if (port.ring.GetSize() == 1)
    {
        ArmArrival(index);
    }
    if (node.pausing > 0)
    {
        Watch(port.from);
    }
}

void
Fabric::Transmit(uint32_t index, const FabricUnit& unit)
{
    Port& port = m_ports[index];
    FabricUnit& entry = port.ring.Append();
    entry = unit;
    entry.start = m_now;
    entry.end = m_now + TransmissionTime(port, unit.wire);
    if (unit.tail > m_now)
    {
        const auto granule =
            std::min<uint32_t>(unit.wire, static_cast<uint32_t>(m_nodes[port.from].granule));
        entry.end = std::max(entry.end, unit.tail + TransmissionTime(port, granule));
    }
    port.freeAt = entry.end;
    port.pullKey = NextKey();
    entry.key = NextKey();
    Settle(index);
    if (port.ring.GetSize() == 1)
    {
        ArmArrival(index);
    }
}

void
Fabric::Settle(uint32_t index)
{
    Port& port = m_ports[index];
    while (port.started < port.ring.GetSize() && port.ring[port.started].start <= m_now)
    {
        StartNext(index);
    }
}

void
Fabric::StartNext(uint32_t index)
{
    Port& port = m_ports[index];
    FabricUnit& unit = port.ring[port.started];
    ++port.started;
    port.startedEnd = unit.end;
    port.statistics.bytes += unit.wire;
    ++port.statistics.units;
    const Node& node = m_nodes[port.from];
    if (node.finite || node.marks)
    {
        Release(index, unit);
    }
}

void
Fabric::Drop(uint32_t index, const FabricUnit& unit)
{
    ++m_ports[index].statistics.drops;
    m_dropTrace(m_now, index, unit.wire);
    Discard(unit);
}

void
Fabric::Pause(uint32_t index)
{
    Port& port = m_ports[index];
    if (port.paused)
    {
        return;
    }
    Settle(index);
    port.paused = true;
    port.pausedSince = m_now;
    ++port.statistics.pauses;
    for (uint32_t i = port.started; i < port.ring.GetSize(); ++i)
    {
        port.ring[i].start = FabricUnit::NOT_STARTED;
    }
    port.freeAt = port.startedEnd;
    if (port.started == 0)
    {
        port.arrivePending = false;
    }
}

void
Fabric::Resume(uint32_t index)
{
    Port& port = m_ports[index];
    if (!port.paused)
    {
        return;
    }
    port.paused = false;
    port.statistics.pausedTime += m_now - port.pausedSince;
    const Node& node = m_nodes[port.from];
    int64_t free = std::max(port.freeAt, m_now);
    for (uint32_t i = port.started; i < port.ring.GetSize(); ++i)
    {
        FabricUnit& unit = port.ring[i];
        unit.start = free;
        unit.end = free + TransmissionTime(port, unit.wire);
        if (unit.tail > m_now)
        {
            const auto granule = std::min<uint32_t>(unit.wire, static_cast<uint32_t>(node.granule));
            unit.end = std::max(unit.end, unit.tail + TransmissionTime(port, granule));
        }
        free = unit.end;
        port.freeAt = free;
    }
    if (!port.arrivePending && port.ring.GetSize() > 0)
    {
        ArmArrival(index);
    }
    if (port.endpoint != NONE)
    {
        Kick(index);
    }
    if (node.pausing > 0)
    {
        Watch(port.from);
    }
}

void
Fabric::Depart(uint32_t index)
{
    m_ports[index].departPending = false;
    Settle(index);
    if (m_nodes[m_ports[index].from].pausing > 0)
    {
        Watch(m_ports[index].from);
    }
}

void
Fabric::Watch(uint32_t node)
{
    for (const uint32_t index : m_nodes[node].ports)
    {
        Port& port = m_ports[index];
        if (port.departPending || port.started >= port.ring.GetSize())
        {
            continue;
        }
        const int64_t start = port.ring[port.started].start;
        if (start != FabricUnit::NOT_STARTED)
        {
            port.departPending = true;
            Schedule(DEPART, index, std::max(start, m_now), NextKey());
        }
    }
}

} // namespace ns3
