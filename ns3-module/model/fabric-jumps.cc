/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-event-source.h"
#include "fabric-parts.h"

#include <algorithm>

namespace ns3
{

FabricJumps::FabricJumps(FabricParts& parts)
    : m_parts(parts),
      m_state(parts.state),
      m_present(parts)
{
}

void
FabricJumps::Forget()
{
    m_have = false;
    m_due = false;
    m_since = 0;
    m_distance = 1;
    m_reference = FabricState::NONE;
}

void
FabricJumps::Look()
{
    m_due = false;
    const bool saved = m_present.Save();
    // A look costs about 2 ns a number and 50 ns an event that is pending, an event 100 ns: with
    // this distance some 10 %, and the less the longer nothing has repeated.
    const uint64_t cost =
        m_state.ownPorts.size() / 8 + m_present.numbers.size() / 50 + m_present.pending.size() / 2;
    m_nextEvent = m_state.eventCount + std::max<uint64_t>(64, 4 * cost * m_patience);
    m_patience = std::min<uint64_t>(m_patience + 1, 16);
    if (!saved)
    {
        return;
    }
    if (m_have && m_present.mark.draws == m_mark.draws && m_present.numbers == m_numbers)
    {
        m_periods = LargestJump();
        m_patience = 1;
        if (m_periods == 0)
        {
            Forget();
        }
        return;
    }
    ++m_since;
    if (!m_have || m_since >= m_distance)
    {
        m_have = true;
        m_since = 0;
        m_distance *= 2;
        m_numbers.swap(m_present.numbers);
        m_mark = m_present.mark;
        for (const uint32_t port : m_state.ownPorts)
        {
            m_mark.ports.push_back(m_state.ports[port].statistics);
        }
    }
}

int64_t
FabricJumps::GetNextTime() const
{
    return m_state.now + m_periods * (m_state.now - m_mark.time);
}

void
FabricJumps::Land()
{
    Jump(m_periods);
    m_periods = 0;
    Forget();
}

void
FabricJumps::Interrupt(int64_t now)
{
    if (m_periods == 0)
    {
        return;
    }
    const int64_t period = m_state.now - m_mark.time;
    const int64_t periods = std::min(m_periods, (now - m_state.now) / period);
    m_periods = 0;
    if (periods > 0)
    {
        Jump(periods);
    }
    Forget();
    m_parts.CarryOutUntil(now);
}

void
FabricJumps::Renumber(uint64_t keys)
{
    for (const uint32_t index : m_state.ownPorts)
    {
        FabricPort& port = m_state.ports[index];
        for (uint32_t u = 0; u < port.ring.GetSize(); ++u)
        {
            port.ring[u].key += keys;
        }
        port.pullKey += keys;
        port.arriveKey += keys;
        port.wakeKey += keys;
    }
    for (const uint32_t index : m_state.ownEndpoints)
    {
        FabricRing& control = m_state.endpoints[index].control;
        for (uint32_t u = 0; u < control.GetSize(); ++u)
        {
            control[u].key += keys;
        }
    }
    for (FabricEvent& event : m_state.events.Events())
    {
        event.key += keys;
    }
}

int64_t
FabricJumps::LargestJump() const
{
    const FabricSnapshot::Mark& before = m_mark;
    const FabricSnapshot::Mark& present = m_present.mark;
    const int64_t period = m_state.now - before.time;
    bool ends = present.nextBegin != INT64_MAX; // what repeats for ever is carried out
    const int64_t until = std::min(present.nextBegin, FABRIC_LAST_TIME);
    int64_t periods = (until - 1 - m_state.now) / period;
    // So near to the end of a message its packets are last ones, or its trains get shorter.
    const int64_t train = m_state.parameters.train;
    const int64_t margin =
        (train > 1 ? FabricSenders::TRAIN_PART * train : 1) * m_state.parameters.payload;
    for (std::size_t i = 0; i < present.pairs.size(); ++i)
    {
        const FabricSnapshot::PairState& now = present.pairs[i];
        const FabricQueuePair& pair = m_state.pairs[now.index];
        const auto bound = [&](uint32_t message, int64_t offset, int64_t growth)
        {
            if (growth > 0 && message != FabricState::NONE)
            {
                const int64_t left = m_state.messages[message].end - 1 - margin - offset;
                ends = true;
                periods = std::min(periods, std::max<int64_t>(0, left) / growth);
            }
        };
        bound(pair.sending, now.next, now.next - before.pairs[i].next);
        bound(pair.receiving, now.expected, now.expected - before.pairs[i].expected);
        bound(pair.oldest, now.acked, now.acked - before.pairs[i].acked);
    }
    return ends ? periods : 0;
}

void
FabricJumps::Jump(int64_t periods)
{
    const int64_t shift = periods * (m_state.now - m_mark.time);
    const uint64_t keys = static_cast<uint64_t>(periods) * (m_state.nextKey - m_mark.key);
    // Offsets of units first: they are relative to their queue pair's growth.
    for (std::size_t i = 0; i < m_present.mark.pairs.size(); ++i)
    {
        const FabricSnapshot::PairState& now = m_present.mark.pairs[i];
        m_state.pairs[now.index].shift = periods * (now.next - m_mark.pairs[i].next);
    }
    MovePorts(periods, shift, keys);
    MoveEndpoints(shift, keys);
    MovePairs(shift);
    MoveEvents(shift, keys);
    m_state.packetCount += static_cast<uint64_t>(periods) * (m_state.packetCount - m_mark.packets);
    m_state.nextKey += keys;
    m_state.now += shift;
    m_state.skippedTime += shift;
    ++m_state.jumps;
}

void
FabricJumps::MoveUnit(FabricUnit& unit, int64_t shift, uint64_t keys) const
{
    if (unit.start != FabricUnit::NOT_STARTED)
    {
        unit.start += shift;
    }
    unit.end += shift;
    unit.tail += shift;
    unit.sent += shift;
    unit.key += keys;
    unit.sequence += m_state.pairs[unit.pair].shift;
}

void
FabricJumps::MovePorts(int64_t periods, int64_t shift, uint64_t keys)
{
    const auto times = static_cast<uint64_t>(periods);
    for (std::size_t i = 0; i < m_state.ownPorts.size(); ++i)
    {
        FabricPort& port = m_state.ports[m_state.ownPorts[i]];
        for (uint32_t u = 0; u < port.ring.GetSize(); ++u)
        {
            MoveUnit(port.ring[u], shift, keys);
        }
        for (FabricLane& lane : port.lanes)
        {
            lane.pausedSince += shift;
        }
        const FabricPortStatistics& old = m_mark.ports[i];
        FabricPortStatistics& present = port.statistics;
        present.bytes += times * (present.bytes - old.bytes);
        present.units += times * (present.units - old.units);
        present.marks += times * (present.marks - old.marks);
        present.pauses += times * (present.pauses - old.pauses);
        present.storms += times * (present.storms - old.storms);
        present.stalls += times * (present.stalls - old.stalls);
        present.pausedTime += periods * (present.pausedTime - old.pausedTime);
        port.freeAt += shift;
        port.startedEnd += shift;
        port.sourceFree += shift;
        port.pullKey += keys;
        port.arriveKey += keys;
        port.wakeKey += keys;
    }
}

void
FabricJumps::MoveEndpoints(int64_t shift, uint64_t keys)
{
    for (const uint32_t index : m_state.ownEndpoints)
    {
        FabricEndpoint& endpoint = m_state.endpoints[index];
        for (uint32_t u = 0; u < endpoint.control.GetSize(); ++u)
        {
            MoveUnit(endpoint.control[u], shift, keys);
        }
        if (endpoint.wake != INT64_MAX)
        {
            endpoint.wake += shift;
        }
    }
}

void
FabricJumps::MovePairs(int64_t shift)
{
    for (const FabricSnapshot::PairState& now : m_present.mark.pairs)
    {
        FabricQueuePair& pair = m_state.pairs[now.index];
        pair.next += pair.shift;
        pair.highest += pair.shift;
        pair.acked += pair.shift;
        pair.expected += pair.shift;
        pair.requested += pair.shift;
        pair.available += shift;
        pair.progress += shift;
        pair.shift = 0;
    }
}

void
FabricJumps::MoveEvents(int64_t shift, uint64_t keys)
{
    std::vector<FabricEvent> begins;
    for (const FabricEvent& event : m_state.events.Events())
    {
        if (event.GetKind() == FABRIC_BEGIN)
        {
            begins.push_back(event);
        }
    }
    m_state.events.Events().clear();
    for (const FabricEvent& event : begins)
    {
        m_state.events.Push(event);
    }
    for (const FabricEvent& event : m_present.pending)
    {
        m_state.events.Push({event.time + shift, event.key + keys, event.what});
    }
}

} // namespace ns3
