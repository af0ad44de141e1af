/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Fast-forward of a Fabric: where its state repeats, it jumps.
 *
 * Long messages that share ports soon fall into step: after some time T everything is as it was,
 * each queue pair i is d(i) bytes further, and n keys have been drawn. What happens next depends on
 * nothing but the state relative to now, so it happens again, until something from outside comes or
 * a message ends. So k periods are skipped by adding k T to all times, k d(i) to the offsets, k n
 * to the keys and k times their growth to the counters, with the largest k for which
 *
 *     offset(i) + k d(i) + one train < end of the message the offset lies in,   for all offsets
 *     now + k T < the next start of a message, and < the limit of the run.
 *
 * The result is exactly that of the run without jumps. The state is compared in full, not by a
 * hash; it is looked at after the last event of a time stamp in which one queue pair, the
 * reference, has sent a packet, and compared with one taken at a growing distance (Brent's search
 * for cycles), seldom enough to cost little where nothing repeats. Random draws between two looks
 * mean that they are not the same.
 */
#include "fabric.h"

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

void
Fabric::ForgetState()
{
    m_looks.have = false;
    m_looks.due = false;
    m_looks.since = 0;
    m_looks.distance = 1;
    m_looks.reference = NONE;
}

bool
Fabric::SaveUnit(const FabricUnit& unit)
{
    const FabricQueuePair& pair = m_pairs[unit.pair];
    const bool waits = unit.start == FabricUnit::NOT_STARTED;
    const int64_t values[] = {waits ? -1 : unit.start - m_now,
                              waits ? -1 : unit.end - m_now,
                              unit.tail - m_now,
                              static_cast<int64_t>(m_nextKey - unit.key),
                              unit.sequence - pair.acked,
                              int64_t{unit.pair} << 32 | unit.route,
                              int64_t{unit.wire} << 32 | unit.ingress,
                              int64_t{unit.payload} << 32 | int64_t{unit.packets} << 8 |
                                  unit.flags};
    m_state.insert(m_state.end(), std::begin(values), std::end(values));
    return unit.telemetry == FabricUnit::NO_TELEMETRY;
}

bool
Fabric::SavePair(const FabricQueuePair& pair)
{
    m_mark.pairs.push_back({pair.index, pair.next, pair.acked, pair.expected});
    const int64_t values[] = {pair.index,
                              pair.next - pair.acked,
                              pair.expected - pair.acked,
                              pair.highest - pair.next,
                              std::max<int64_t>(pair.requested - pair.acked, 0),
                              Ahead(pair.available, m_now),
                              pair.window,
                              static_cast<int64_t>(pair.rate),
                              int64_t{pair.unconfirmed} << 1 | (pair.marked ? 1 : 0),
                              int64_t{pair.oldest} << 32 | pair.sending,
                              int64_t{pair.receiving} << 32 | pair.slot};
    m_state.insert(m_state.end(), std::begin(values), std::end(values));
    return pair.ways == 1 && m_control->IsSteady(pair) && pair.next == pair.highest;
}

bool
Fabric::SaveState()
{
    m_state.clear();
    m_mark = {};
    m_mark.time = m_now;
    m_mark.key = m_nextKey;
    m_mark.draws = m_draws;
    m_mark.packets = m_packetCount;
    for (uint32_t index = 0; index < m_ports.size(); ++index)
    {
        Port& port = m_ports[index];
        const bool idle = port.ring.GetSize() == 0 && port.queued == 0 && port.held == 0 &&
                          !port.paused && port.freeAt < m_now;
        if (idle)
        {
            continue;
        }
        if (port.finishing != NONE)
        {
            return false;
        }
        Settle(index);
        const int64_t flags = (port.paused ? 1 : 0) | (port.arrivePending ? 2 : 0) |
                              (port.pullPending ? 4 : 0) | (port.departPending ? 8 : 0) |
                              (port.holding ? 16 : 0);
        const bool busy = port.endpoint != NONE && port.freeAt >= m_now;
        const int64_t values[] = {int64_t{index} << 32 | flags,
                                  int64_t{port.ring.GetSize()} << 32 | port.started,
                                  Ahead(port.freeAt, m_now),
                                  Ahead(port.startedEnd, m_now),
                                  busy ? static_cast<int64_t>(m_nextKey - port.pullKey) : -1,
                                  port.queued,
                                  port.held,
                                  port.holding ? port.heldAtPause : -1,
                                  port.paused ? m_now - port.pausedSince : -1,
                                  static_cast<int64_t>(port.markDebt * 1e15)};
        m_state.insert(m_state.end(), std::begin(values), std::end(values));
        for (uint32_t i = 0; i < port.ring.GetSize(); ++i)
        {
            if (!SaveUnit(port.ring[i]))
            {
                return false;
            }
        }
    }
    for (Endpoint& endpoint : m_endpoints)
    {
        m_state.push_back(endpoint.control.GetSize());
        for (uint32_t i = 0; i < endpoint.control.GetSize(); ++i)
        {
            if (!SaveUnit(endpoint.control[i]))
            {
                return false;
            }
        }
        m_state.push_back(int64_t{endpoint.last} << 32 | endpoint.finished);
        m_state.push_back(endpoint.wake == INT64_MAX ? -1 : endpoint.wake - m_now);
        for (const uint32_t pair : endpoint.pairs)
        {
            m_state.push_back(pair);
            if (pair != NONE && m_pairs[pair].oldest != NONE && !SavePair(m_pairs[pair]))
            {
                return false;
            }
        }
    }
    // Pending events, but for starts of messages, which come from outside.
    m_mark.nextBegin = INT64_MAX;
    m_pending.clear();
    for (const FabricEvent& event : m_events.Events())
    {
        if ((event.what & 7) == BEGIN)
        {
            m_mark.nextBegin = std::min(m_mark.nextBegin, event.time);
        }
        else if ((event.what & 7) == ARRIVE && !IsArrivalPending(event))
        {
            continue; // taken back by a pause
        }
        else
        {
            m_pending.push_back(event);
        }
    }
    std::sort(m_pending.begin(),
              m_pending.end(),
              [](const FabricEvent& a, const FabricEvent& b) { return a.Before(b); });
    for (const FabricEvent& event : m_pending)
    {
        m_state.push_back(event.time - m_now);
        m_state.push_back(static_cast<int64_t>(m_nextKey - event.key));
        m_state.push_back(event.what);
    }
    return true;
}

bool
Fabric::IsArrivalPending(const FabricEvent& event) const
{
    const Port& port = m_ports[event.what >> 3];
    return port.arrivePending && port.arriveKey == event.key;
}

void
Fabric::Look(int64_t limit)
{
    m_looks.due = false;
    const bool saved = SaveState();
    // A look costs about 2 ns a number and 50 ns an event that is pending, an event 100 ns: with
    // this distance some 10 %, and the less the longer nothing has repeated.
    const uint64_t cost = m_ports.size() / 8 + m_state.size() / 50 + m_pending.size() / 2;
    m_looks.nextEvent = m_eventCount + std::max<uint64_t>(64, 4 * cost * m_looks.patience);
    m_looks.patience = std::min<uint64_t>(m_looks.patience + 1, 16);
    if (!saved)
    {
        return;
    }
    if (m_looks.have && m_mark.draws == m_looks.mark.draws && m_state == m_looks.state)
    {
        const int64_t periods = LargestJump(limit);
        if (periods > 0)
        {
            Jump(periods);
        }
        ForgetState();
        m_looks.patience = 1;
        return;
    }
    ++m_looks.since;
    if (!m_looks.have || m_looks.since >= m_looks.distance)
    {
        m_looks.have = true;
        m_looks.since = 0;
        m_looks.distance *= 2;
        m_looks.state.swap(m_state);
        m_looks.mark = m_mark;
        for (const Port& port : m_ports)
        {
            m_looks.mark.ports.push_back(port.statistics);
        }
    }
}

int64_t
Fabric::LargestJump(int64_t limit) const
{
    const State& before = m_looks.mark;
    const int64_t period = m_now - before.time;
    const int64_t until = std::min(limit, m_mark.nextBegin);
    int64_t periods = until == INT64_MAX ? INT64_MAX : (until - 1 - m_now) / period;
    const int64_t margin = int64_t{m_train} * m_payload;
    for (std::size_t i = 0; i < m_mark.pairs.size(); ++i)
    {
        const PairState& now = m_mark.pairs[i];
        const FabricQueuePair& pair = m_pairs[now.index];
        const auto bound = [&](uint32_t message, int64_t offset, int64_t growth)
        {
            if (growth > 0 && message != NONE)
            {
                const int64_t left = m_messages[message].end - 1 - margin - offset;
                periods = std::min(periods, std::max<int64_t>(0, left) / growth);
            }
        };
        bound(pair.sending, now.next, now.next - before.pairs[i].next);
        bound(pair.receiving, now.expected, now.expected - before.pairs[i].expected);
        bound(pair.oldest, now.acked, now.acked - before.pairs[i].acked);
    }
    return periods == INT64_MAX ? 0 : periods;
}

void
Fabric::Jump(int64_t periods)
{
    const State& before = m_looks.mark;
    const int64_t shift = periods * (m_now - before.time);
    const auto times = static_cast<uint64_t>(periods);
    const uint64_t keys = times * (m_nextKey - before.key);
    const auto move = [&](int64_t& time)
    {
        if (time != INT64_MAX)
        {
            time += shift;
        }
    };
    const auto moveUnit = [&](FabricUnit& unit)
    {
        move(unit.start);
        move(unit.end);
        move(unit.tail);
        move(unit.sent);
        unit.key += keys;
    };
    // Offsets of units first: they are relative to their queue pair's growth.
    for (std::size_t i = 0; i < m_mark.pairs.size(); ++i)
    {
        const PairState& now = m_mark.pairs[i];
        m_pairs[now.index].shift = periods * (now.next - before.pairs[i].next);
    }
    for (std::size_t i = 0; i < m_ports.size(); ++i)
    {
        Port& port = m_ports[i];
        for (uint32_t u = 0; u < port.ring.GetSize(); ++u)
        {
            moveUnit(port.ring[u]);
            port.ring[u].sequence += m_pairs[port.ring[u].pair].shift;
        }
        port.pausedSince += shift;
        const PortStatistics& old = before.ports[i];
        PortStatistics& present = port.statistics;
        present.bytes += times * (present.bytes - old.bytes);
        present.units += times * (present.units - old.units);
        present.marks += times * (present.marks - old.marks);
        present.pauses += times * (present.pauses - old.pauses);
        present.pausedTime += periods * (present.pausedTime - old.pausedTime);
        port.freeAt += shift;
        port.startedEnd += shift;
        port.pullKey += keys;
        port.arriveKey += keys;
        port.wakeKey += keys;
    }
    for (Endpoint& endpoint : m_endpoints)
    {
        for (uint32_t u = 0; u < endpoint.control.GetSize(); ++u)
        {
            moveUnit(endpoint.control[u]);
            endpoint.control[u].sequence += m_pairs[endpoint.control[u].pair].shift;
        }
        move(endpoint.wake);
    }
    for (std::size_t i = 0; i < m_mark.pairs.size(); ++i)
    {
        FabricQueuePair& pair = m_pairs[m_mark.pairs[i].index];
        pair.next += pair.shift;
        pair.highest += pair.shift;
        pair.acked += pair.shift;
        pair.expected += pair.shift;
        pair.requested += pair.shift;
        pair.available += shift;
        pair.progress += shift;
        pair.shift = 0;
    }
    std::vector<FabricEvent> begins;
    for (const FabricEvent& event : m_events.Events())
    {
        if ((event.what & 7) == BEGIN)
        {
            begins.push_back(event);
        }
    }
    m_events.Events().clear();
    for (const FabricEvent& event : begins)
    {
        m_events.Push(event);
    }
    for (const FabricEvent& event : m_pending)
    {
        m_events.Push({event.time + shift, event.key + keys, event.what});
    }
    m_packetCount += times * (m_packetCount - before.packets);
    m_nextKey += keys;
    m_now += shift;
    m_skippedTime += shift;
    ++m_jumps;
}

} // namespace ns3
