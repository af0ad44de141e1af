/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-parts.h"

#include <algorithm>

namespace ns3
{

namespace
{

/**
 * \param time ps, absolute
 * \param now ps
 * \return relative; all of the past is one
 */
int64_t
Ahead(int64_t time, int64_t now)
{
    return time < now ? -1 : time - now;
}

} // namespace

FabricSnapshot::FabricSnapshot(FabricParts& parts)
    : m_parts(parts),
      m_state(parts.state)
{
}

bool
FabricSnapshot::SaveUnit(const FabricUnit& unit)
{
    const FabricQueuePair& pair = m_state.pairs[unit.pair];
    const bool waits = unit.start == FabricUnit::NOT_STARTED;
    const int64_t values[] = {waits ? -1 : unit.start - m_state.now,
                              waits ? -1 : unit.end - m_state.now,
                              unit.tail - m_state.now,
                              static_cast<int64_t>(m_state.nextKey - unit.key),
                              unit.sequence - pair.acked,
                              int64_t{unit.pair} << 32 | unit.route,
                              int64_t{unit.wire} << 32 | unit.ingress,
                              int64_t{unit.payload} << 32 | int64_t{unit.trafficClass} << 24 |
                                  int64_t{unit.packets} << 8 | unit.flags};
    numbers.insert(numbers.end(), std::begin(values), std::end(values));
    return unit.telemetry == FabricUnit::NO_TELEMETRY;
}

bool
FabricSnapshot::SavePair(const FabricQueuePair& pair)
{
    mark.pairs.push_back({pair.index, pair.next, pair.acked, pair.expected});
    const int64_t values[] = {pair.index,
                              pair.next - pair.acked,
                              pair.expected - pair.acked,
                              pair.highest - pair.next,
                              std::max<int64_t>(pair.requested - pair.acked, 0),
                              Ahead(pair.available, m_state.now),
                              pair.window,
                              static_cast<int64_t>(pair.rate),
                              int64_t{pair.markedBytes} << 33 | int64_t{pair.unconfirmed} << 1 |
                                  (pair.marked ? 1 : 0),
                              int64_t{pair.oldest} << 32 | pair.sending,
                              int64_t{pair.receiving} << 32 | pair.slot};
    numbers.insert(numbers.end(), std::begin(values), std::end(values));
    return pair.ways == 1 && m_state.tables.control->IsSteady(pair) && pair.next == pair.highest;
}

bool
FabricSnapshot::SavePort(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    const int64_t now = m_state.now;
    const auto classes = port.lanes.begin() + m_state.parameters.classes;
    const bool held = std::any_of(port.lanes.begin(),
                                  classes,
                                  [](const FabricLane& lane) { return lane.held != 0; });
    const bool idle = port.ring.GetSize() == 0 && port.queued == 0 && !held && port.owed == 0 &&
                      port.paused == 0 && port.freeAt < now && port.sourceFree < now;
    if (idle)
    {
        return true;
    }
    if (port.finishing != FabricState::NONE)
    {
        return false;
    }
    m_parts.wires.Settle(index);
    m_parts.wires.TimeQueue(port);
    const int64_t flags = (port.arrivePending ? 1 : 0) | (port.pullPending ? 2 : 0) |
                          (port.departPending ? 4 : 0) | (port.stalled ? 8 : 0) |
                          (port.creditPending ? 16 : 0) | int64_t{port.paused} << 8 |
                          int64_t{port.holding} << 16;
    const bool busy = port.endpoint != FabricState::NONE && port.sourceFree >= now;
    const int64_t values[] = {int64_t{index} << 32 | flags,
                              int64_t{port.ring.GetSize()} << 32 | port.started,
                              Ahead(port.freeAt, now),
                              Ahead(port.startedEnd, now),
                              Ahead(port.sourceFree, now),
                              busy ? static_cast<int64_t>(m_state.nextKey - port.pullKey) : -1,
                              port.owed};
    numbers.insert(numbers.end(), std::begin(values), std::end(values));
    SaveLanes(port);
    for (uint32_t i = 0; i < port.ring.GetSize(); ++i)
    {
        if (!SaveUnit(port.ring[i]))
        {
            return false;
        }
    }
    return true;
}

void
FabricSnapshot::SaveLanes(const FabricPort& port)
{
    for (uint32_t i = 0; i < m_state.parameters.classes; ++i)
    {
        const FabricLane& lane = port.lanes[i];
        const bool holding = (port.holding >> i & 1) != 0;
        const int64_t values[] = {lane.queued,
                                  lane.held,
                                  holding ? lane.heldAtPause : -1,
                                  port.IsPaused(i) ? m_state.now - lane.pausedSince : -1,
                                  static_cast<int64_t>(lane.markDebt * 1e15)};
        numbers.insert(numbers.end(), std::begin(values), std::end(values));
    }
}

bool
FabricSnapshot::SaveEndpoint(FabricEndpoint& endpoint)
{
    numbers.push_back(endpoint.control.GetSize());
    for (uint32_t i = 0; i < endpoint.control.GetSize(); ++i)
    {
        if (!SaveUnit(endpoint.control[i]))
        {
            return false;
        }
    }
    numbers.push_back(int64_t{endpoint.last} << 32 | endpoint.finished);
    numbers.push_back(endpoint.owed == 0 ? 0 : int64_t{endpoint.ahead} << 32 | endpoint.owed);
    numbers.push_back(endpoint.wake == INT64_MAX ? -1 : endpoint.wake - m_state.now);
    for (const uint32_t index : endpoint.pairs)
    {
        numbers.push_back(index);
        if (index != FabricState::NONE && m_state.pairs[index].oldest != FabricState::NONE &&
            !SavePair(m_state.pairs[index]))
        {
            return false;
        }
    }
    return true;
}

bool
FabricSnapshot::Save()
{
    numbers.clear();
    mark = {};
    mark.time = m_state.now;
    mark.key = m_state.nextKey;
    mark.draws = m_state.draws;
    mark.packets = m_state.packetCount;
    for (const uint32_t index : m_state.ownPorts)
    {
        if (!SavePort(index))
        {
            return false;
        }
    }
    for (const uint32_t index : m_state.ownEndpoints)
    {
        if (!SaveEndpoint(m_state.endpoints[index]))
        {
            return false;
        }
    }
    SaveEvents();
    return true;
}

void
FabricSnapshot::SaveEvents()
{
    // Starts of messages come from outside.
    mark.nextBegin = INT64_MAX;
    pending.clear();
    for (const FabricEvent& event : m_state.events.Events())
    {
        if (event.GetKind() == FABRIC_BEGIN)
        {
            mark.nextBegin = std::min(mark.nextBegin, event.time);
        }
        else if (event.GetKind() == FABRIC_ARRIVE && !IsArrivalPending(event))
        {
            continue; // taken back by a pause
        }
        else
        {
            pending.push_back(event);
        }
    }
    std::sort(pending.begin(),
              pending.end(),
              [](const FabricEvent& a, const FabricEvent& b) { return a.Before(b); });
    for (const FabricEvent& event : pending)
    {
        numbers.push_back(event.time - m_state.now);
        numbers.push_back(static_cast<int64_t>(m_state.nextKey - event.key));
        numbers.push_back(event.what);
    }
}

bool
FabricSnapshot::IsArrivalPending(const FabricEvent& event) const
{
    const FabricPort& port = m_state.ports[event.GetIndex()];
    return port.arrivePending && port.arriveKey == event.key;
}

} // namespace ns3
