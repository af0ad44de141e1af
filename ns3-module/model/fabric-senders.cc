/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-parts.h"

#include <algorithm>

namespace ns3
{

FabricSenders::FabricSenders(FabricParts& parts)
    : m_parts(parts),
      m_state(parts.state)
{
}

bool
FabricSenders::IsWindowSmall(const FabricQueuePair& pair) const
{
    return m_state.parameters.ackInterval > 1 &&
           pair.window < 2 * int64_t{m_state.parameters.ackInterval} * m_state.parameters.payload;
}

void
FabricSenders::UpdateEligible(FabricQueuePair& pair)
{
    if (pair.slot == FabricState::NONE)
    {
        return;
    }
    // A window that shrank below what a receiver confirms at once would wait forever: then one
    // packet that asks for its ACK may go.
    const bool probe = IsWindowSmall(pair) && pair.requested <= pair.acked;
    const bool mayGoOn =
        pair.sending != FabricState::NONE && (pair.next - pair.acked < pair.window || probe);
    const bool eligible = mayGoOn || pair.repairNext < pair.repairEnd;
    FabricEndpoint& endpoint = m_state.EndpointOf(pair);
    if (m_state.parameters.train > 1 && eligible && !endpoint.IsEligible(pair.slot))
    {
        m_parts.turns.OweTurns(pair);
    }
    endpoint.SetEligible(pair.slot, eligible);
}

void
FabricSenders::EnsurePull(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    if (!port.pullPending)
    {
        port.pullPending = true;
        m_state.Schedule(FABRIC_PULL, index, std::max(port.sourceFree, m_state.now), port.pullKey);
    }
}

void
FabricSenders::Kick(uint32_t index)
{
    const FabricPort& port = m_state.ports[index];
    if (port.pullPending)
    {
        return;
    }
    // At the very end of a transmission the port is still busy for events that were scheduled
    // before that end was.
    if (port.sourceFree < m_state.now ||
        (port.sourceFree == m_state.now && port.pullKey <= m_state.currentKey))
    {
        Pull(index);
    }
    else
    {
        EnsurePull(index);
    }
}

void
FabricSenders::Forward(uint32_t index, const FabricUnit& unit)
{
    if (m_state.nodes[m_state.ports[index].from].kind != FABRIC_HOST)
    {
        m_parts.wires.Enqueue(index, unit);
        return;
    }
    FabricRing& control = m_state.EndpointOf(index, unit.trafficClass).control;
    uint32_t place = control.GetSize();
    while (place > 0 &&
           m_state.parameters.RankOf(unit) < m_state.parameters.RankOf(control[place - 1]))
    {
        --place;
    }
    control.Insert(place) = unit;
    Kick(index);
}

void
FabricSenders::Pull(uint32_t index)
{
    FabricPort& port = m_state.ports[index];
    if (port.finishing != FabricState::NONE && m_state.now >= port.finishTime)
    {
        const uint32_t done = port.finishing;
        port.finishing = FabricState::NONE;
        m_parts.messages.ReportSent(done);
    }
    if (port.stalled && m_state.nodes[port.from].kind == FABRIC_HOST)
    {
        if (port.finishing != FabricState::NONE)
        {
            EnsurePull(index);
        }
        return; // credits go on
    }
    if (port.sourceFree <= m_state.now && !SendNext(index))
    {
        return; // a wake, m_parts.wires.Resume() or an ACK goes on
    }
    if (port.finishing != FabricState::NONE || HasToSend(port))
    {
        EnsurePull(index);
    }
}

bool
FabricSenders::SendNext(uint32_t index)
{
    const FabricPort& port = m_state.ports[index];
    for (uint32_t i = 0; i < m_state.parameters.classes; ++i)
    {
        FabricEndpoint& endpoint = m_state.endpoints[port.endpoint + i];
        const bool paused = port.IsPaused(i);
        if (endpoint.control.GetSize() > 0 &&
            (!paused || (m_state.parameters.ackPriority &&
                         (endpoint.control[0].flags & FabricUnit::ACK) != 0)))
        {
            const FabricUnit unit = endpoint.control[0];
            endpoint.control.RemoveFirst();
            m_parts.wires.Transmit(index, unit);
            return true;
        }
        if (paused)
        {
            continue;
        }
        const uint32_t slot = m_parts.turns.Choose(index, endpoint);
        if (slot != FabricState::NONE)
        {
            SendData(index, m_state.pairs[endpoint.pairs[slot]]);
            return true;
        }
    }
    return false;
}

bool
FabricSenders::HasToSend(const FabricPort& port) const
{
    for (uint32_t i = 0; i < m_state.parameters.classes; ++i)
    {
        const FabricEndpoint& endpoint = m_state.endpoints[port.endpoint + i];
        if (endpoint.control.GetSize() > 0 || endpoint.eligibleCount > 0)
        {
            return true;
        }
    }
    return false;
}

void
FabricSenders::Wake(uint32_t index)
{
    m_state.endpoints[m_state.ports[index].endpoint].wake = INT64_MAX;
    Kick(index);
}

FabricUnit
FabricSenders::MakeData(FabricQueuePair& pair, int64_t sequence, int64_t payload, uint32_t packets)
{
    FabricUnit unit{};
    unit.sequence = sequence;
    unit.sent = m_state.now;
    unit.tail = m_state.now;
    unit.pair = pair.index;
    unit.route = ChooseWay(pair) + 1;
    unit.payload = static_cast<uint32_t>(payload);
    unit.wire = unit.payload + m_state.parameters.header * packets;
    unit.packets = static_cast<uint16_t>(packets);
    unit.trafficClass = static_cast<uint8_t>(pair.trafficClass);
    unit.ingress = FabricUnit::NO_PORT;
    unit.telemetry = (m_state.tables.needs & FabricCongestionControl::TELEMETRY) != 0
                         ? m_state.telemetry.Allocate()
                         : FabricUnit::NO_TELEMETRY;
    ++pair.underWay;
    m_state.packetCount += packets;
    return unit;
}

void
FabricSenders::Put(uint32_t index, FabricQueuePair& pair, const FabricUnit& unit)
{
    FabricPort& port = m_state.ports[index];
    if (m_state.nodes[port.from].kind == FABRIC_HOST)
    {
        m_parts.wires.Transmit(index, unit);
    }
    else
    {
        // A switch that sends is one more input of the port's queue, at the port's rate.
        port.sourceFree = m_state.now + m_parts.wires.TransmissionTime(port, unit.wire);
        port.pullKey = m_state.NextKey();
        m_parts.wires.Enqueue(index, unit);
    }
    if (m_state.parameters.pacing && pair.rate < pair.lineRate)
    {
        pair.available =
            m_state.now + static_cast<int64_t>(static_cast<double>(unit.wire) * 8e12 / pair.rate);
    }
}

void
FabricSenders::SendAgain(uint32_t index, FabricQueuePair& pair)
{
    const int64_t payload =
        std::min(pair.repairEnd - pair.repairNext, int64_t{m_state.parameters.payload});
    const FabricUnit unit = MakeData(pair, pair.repairNext, payload, 1);
    pair.repairNext += payload;
    Put(index, pair, unit);
    UpdateEligible(pair);
    m_parts.receivers.ArmExpiry(pair, m_state.now);
}

void
FabricSenders::SendData(uint32_t index, FabricQueuePair& pair)
{
    if (m_state.now >= pair.timer)
    {
        m_state.tables.control->Expire(pair, m_state.now);
    }
    if (pair.repairNext < pair.repairEnd)
    {
        SendAgain(index, pair);
        return;
    }
    FabricPort& port = m_state.ports[index];
    FabricMessage& message = m_state.messages[pair.sending];
    const int64_t left = message.end - pair.next;
    const uint32_t packets = m_state.parameters.train > 1 ? TrainLength(pair, left) : 1;
    const auto payload = std::min(left, static_cast<int64_t>(m_state.parameters.payload) * packets);
    FabricUnit unit = MakeData(pair, pair.next, payload, packets);
    pair.next += payload;
    if (IsWindowSmall(pair) && pair.next - pair.acked >= pair.window)
    {
        unit.flags = FabricUnit::REQUEST;
        pair.requested = pair.next;
    }
    Put(index, pair, unit);
    // A message with few packets left ends before anything can be seen to repeat.
    constexpr int64_t FEW = 12;
    if (m_state.looking && left > FEW * m_state.parameters.payload)
    {
        m_parts.jumps.NoteSent(pair.index);
    }
    if (pair.next == message.end)
    {
        if (pair.next > pair.highest)
        {
            port.finishing = pair.sending;
            port.finishTime = port.sourceFree;
        }
        pair.sending = message.next;
    }
    pair.highest = std::max(pair.highest, pair.next);
    FabricEndpoint& endpoint = m_state.EndpointOf(pair);
    // A train never ends its message, so whoever owes turns has something to send.
    if (packets > 1 || endpoint.ahead == pair.index)
    {
        endpoint.ahead = packets > 1 ? pair.index : FabricState::NONE;
        endpoint.owed = 0;
    }
    UpdateEligible(pair);
    if (m_state.lossy)
    {
        m_parts.receivers.ArmExpiry(pair, m_state.now);
    }
}

} // namespace ns3
