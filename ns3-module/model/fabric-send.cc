/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Sending ends of a Fabric: a port pulls from its queue pairs, one packet (or train) each in turn,
 * as windows and pacing allow; ACKs and forwarded units go before data.
 */
#include "fabric.h"

#include <algorithm>

namespace ns3
{

void
Fabric::SetEligible(Endpoint& endpoint, uint32_t slot, bool eligible)
{
    uint64_t& word = endpoint.eligible[slot / 64];
    const uint64_t bit = uint64_t{1} << (slot % 64);
    if (((word & bit) != 0) != eligible)
    {
        word ^= bit;
        endpoint.eligibleCount += eligible ? 1U : UINT32_MAX;
    }
}

bool
Fabric::IsWindowSmall(const FabricQueuePair& pair) const
{
    return m_ackInterval > 1 && pair.window < 2 * int64_t{m_ackInterval} * m_payload;
}

void
Fabric::UpdateEligible(FabricQueuePair& pair)
{
    if (pair.slot == NONE)
    {
        return;
    }
    // A window that shrank below what a receiver confirms at once would wait forever: then one
    // packet that asks for its ACK may go.
    const bool probe = IsWindowSmall(pair) && pair.requested <= pair.acked;
    SetEligible(m_endpoints[m_ports[pair.port].endpoint],
                pair.slot,
                pair.sending != NONE && (pair.next - pair.acked < pair.window || probe));
}

void
Fabric::EnsurePull(uint32_t index)
{
    Port& port = m_ports[index];
    if (!port.pullPending)
    {
        port.pullPending = true;
        Schedule(PULL, index, std::max(port.freeAt, m_now), port.pullKey);
    }
}

void
Fabric::Kick(uint32_t index)
{
    const Port& port = m_ports[index];
    if (port.pullPending)
    {
        return;
    }
    // At the very end of a transmission the port is still busy for events that were scheduled
    // before that end was.
    if (port.freeAt < m_now || (port.freeAt == m_now && port.pullKey <= m_currentKey))
    {
        Pull(index);
    }
    else
    {
        EnsurePull(index);
    }
}

void
Fabric::Forward(uint32_t index, const FabricUnit& unit)
{
    if (m_nodes[m_ports[index].from].kind != HOST)
    {
        Enqueue(index, unit);
        return;
    }
    EndpointOf(index).control.Append() = unit;
    Kick(index);
}

void
Fabric::Pull(uint32_t index)
{
    Port& port = m_ports[index];
    if (port.finishing != NONE && m_now >= port.finishTime)
    {
        Note(port.finishing, false);
        Complete(m_messages[port.finishing].tag, false);
        const uint32_t done = port.finishing;
        port.finishing = NONE;
        m_messages[done].sent = true;
        FreeIfThrough(done);
    }
    Endpoint& endpoint = m_endpoints[port.endpoint];
    if (port.freeAt <= m_now)
    {
        if (endpoint.control.GetSize() > 0 &&
            (!port.paused || (m_ackPriority && (endpoint.control[0].flags & FabricUnit::ACK) != 0)))
        {
            const FabricUnit unit = endpoint.control[0];
            endpoint.control.RemoveFirst();
            Transmit(index, unit);
        }
        else if (!port.paused)
        {
            const uint32_t slot = Choose(index, endpoint);
            if (slot == NONE)
            {
                return;
            }
            SendData(index, m_pairs[endpoint.pairs[slot]]);
        }
        else
        {
            return; // Resume() or an ACK goes on
        }
    }
    if (port.finishing != NONE || endpoint.control.GetSize() > 0 || endpoint.eligibleCount > 0)
    {
        EnsurePull(index);
    }
}

void
Fabric::Wake(uint32_t index)
{
    m_endpoints[m_ports[index].endpoint].wake = INT64_MAX;
    Kick(index);
}

uint32_t
Fabric::Choose(uint32_t index, Endpoint& endpoint)
{
    const auto count = static_cast<uint32_t>(endpoint.pairs.size());
    if (count == 0)
    {
        return NONE;
    }
    uint32_t chosen = NONE;
    uint32_t firstFinished = NONE;
    int64_t earliest = INT64_MAX;
    uint32_t slot = (endpoint.last + 1) % count;
    const bool walk = m_scanOrder && endpoint.finished > 0;
    for (uint32_t looked = 0; looked < count;)
    {
        const uint64_t word = endpoint.eligible[slot / 64] >> (slot % 64);
        if (!walk && word == 0)
        {
            const uint32_t step = std::min(64 - slot % 64, count - slot);
            looked += step;
            slot = slot + step == count ? 0 : slot + step;
            continue;
        }
        if (!walk)
        {
            const auto step = static_cast<uint32_t>(__builtin_ctzll(word));
            looked += step;
            slot += step;
            if (looked >= count)
            {
                break;
            }
        }
        if ((endpoint.eligible[slot / 64] >> (slot % 64) & 1) != 0)
        {
            const FabricQueuePair& pair = m_pairs[endpoint.pairs[slot]];
            if (pair.available <= m_now)
            {
                chosen = slot;
                break;
            }
            earliest = std::min(earliest, pair.available);
        }
        else if (endpoint.pairs[slot] == NONE)
        {
            firstFinished = std::min(firstFinished, slot);
        }
        ++looked;
        slot = slot + 1 == count ? 0 : slot + 1;
    }
    if (walk && firstFinished != NONE)
    {
        DropFinished(endpoint, firstFinished, chosen);
    }
    if (chosen != NONE)
    {
        endpoint.last = chosen;
    }
    else if (earliest < endpoint.wake)
    {
        endpoint.wake = earliest;
        m_ports[index].wakeKey = NextKey();
        Schedule(WAKE, index, earliest, m_ports[index].wakeKey);
    }
    return chosen;
}

void
Fabric::DropFinished(Endpoint& endpoint, uint32_t from, uint32_t& chosen)
{
    uint32_t place = from;
    const auto count = static_cast<uint32_t>(endpoint.pairs.size());
    uint32_t moved = NONE;
    for (uint32_t slot = from; slot < count; ++slot)
    {
        const uint32_t pair = endpoint.pairs[slot];
        const bool eligible = (endpoint.eligible[slot / 64] >> (slot % 64) & 1) != 0;
        SetEligible(endpoint, slot, false);
        if (pair == NONE)
        {
            continue;
        }
        if (slot == chosen)
        {
            moved = place;
        }
        endpoint.pairs[place] = pair;
        m_pairs[pair].slot = place;
        SetEligible(endpoint, place, eligible);
        ++place;
    }
    if (chosen != NONE && chosen >= from)
    {
        chosen = moved;
    }
    endpoint.finished -= count - place;
    endpoint.pairs.resize(place);
}

uint32_t
Fabric::TrainLength(const FabricQueuePair& pair, int64_t left) const
{
    const auto payload = static_cast<int64_t>(m_payload);
    const int64_t room = (pair.window - (pair.next - pair.acked) + payload - 1) / payload;
    const int64_t packets = std::min({static_cast<int64_t>(m_train), left / payload, room});
    if (packets <= 1 || m_lossy)
    {
        return 1;
    }
    // One by one where a queue is near.
    for (const uint32_t* port = &m_routes[pair.there + 1]; *port != END_OF_ROUTE; ++port)
    {
        const Port& next = m_ports[*port];
        const double packet = (m_payload + m_header) * next.psPerByte;
        if (next.paused || static_cast<double>(next.freeAt - m_now) > 4 * packet)
        {
            return 1;
        }
    }
    return static_cast<uint32_t>(packets);
}

void
Fabric::SendData(uint32_t index, FabricQueuePair& pair)
{
    if (m_now >= pair.timer)
    {
        m_control->Expire(pair, m_now);
    }
    Port& port = m_ports[index];
    Message& message = m_messages[pair.sending];
    const int64_t left = message.end - pair.next;
    const uint32_t packets = m_train > 1 ? TrainLength(pair, left) : 1;
    const auto payload = std::min(left, static_cast<int64_t>(m_payload) * packets);
    FabricUnit unit{};
    unit.sequence = pair.next;
    unit.sent = m_now;
    unit.tail = m_now;
    unit.pair = pair.index;
    unit.route = pair.there + 1;
    if (pair.ways > 1)
    {
        unit.route = m_sprays[pair.index].ways[pair.turn] + 1;
        pair.turn = (pair.turn + 1) % pair.ways;
    }
    unit.payload = static_cast<uint32_t>(payload);
    unit.wire = unit.payload + m_header * packets;
    unit.packets = static_cast<uint16_t>(packets);
    unit.ingress = FabricUnit::NO_PORT;
    unit.telemetry = (m_needs & FabricCongestionControl::TELEMETRY) != 0 ? AllocateTelemetry()
                                                                         : FabricUnit::NO_TELEMETRY;
    ++pair.underWay;
    m_packetCount += packets;
    pair.next += payload;
    if (IsWindowSmall(pair) && pair.next - pair.acked >= pair.window)
    {
        unit.flags = FabricUnit::REQUEST;
        pair.requested = pair.next;
    }
    Transmit(index, unit);
    // A message with few packets left ends before anything can be seen to repeat.
    constexpr int64_t FEW = 12;
    if (m_looking && m_eventCount >= m_looks.nextEvent && left > FEW * m_payload)
    {
        m_looks.reference = m_looks.reference == NONE ? pair.index : m_looks.reference;
        m_looks.due = m_looks.due || m_looks.reference == pair.index;
    }
    if (m_pacing && pair.rate < pair.lineRate)
    {
        pair.available =
            m_now + static_cast<int64_t>(static_cast<double>(unit.wire) * 8e12 / pair.rate);
    }
    if (pair.next == message.end)
    {
        if (pair.next > pair.highest)
        {
            port.finishing = pair.sending;
            port.finishTime = port.freeAt;
        }
        pair.sending = message.next;
    }
    pair.highest = std::max(pair.highest, pair.next);
    UpdateEligible(pair);
    if (m_lossy)
    {
        ArmExpiry(pair);
    }
}

uint32_t
Fabric::AllocateTelemetry()
{
    uint32_t place = 0;
    if (m_freeTelemetry.empty())
    {
        place = static_cast<uint32_t>(m_telemetry.size());
        m_telemetry.emplace_back();
    }
    else
    {
        place = m_freeTelemetry.back();
        m_freeTelemetry.pop_back();
    }
    m_telemetry[place].hops = 0;
    return place;
}

} // namespace ns3
