/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-parts.h"

#include <algorithm>

namespace ns3
{

FabricReceivers::FabricReceivers(FabricParts& parts)
    : m_parts(parts),
      m_state(parts.state)
{
}

void
FabricReceivers::Discard(const FabricUnit& unit)
{
    if (unit.telemetry != FabricUnit::NO_TELEMETRY)
    {
        m_state.telemetry.Free(unit.telemetry);
    }
    FabricQueuePair& pair = m_state.pairs[unit.pair];
    --pair.underWay;
    m_parts.queuePairs.FreeIfIdle(pair);
}

void
FabricReceivers::Receive(const FabricUnit& unit)
{
    FabricQueuePair& pair = m_state.pairs[unit.pair];
    if ((unit.flags & FabricUnit::ACK) != 0)
    {
        ReceiveAck(pair, unit);
        Discard(unit);
        return;
    }
    if (!ReceiveData(pair, unit))
    {
        Discard(unit);
        return;
    }
    FabricUnit kept = unit;
    kept.telemetry = FabricUnit::NO_TELEMETRY; // the ACK has it now
    Discard(kept);
}

bool
FabricReceivers::ReceiveData(FabricQueuePair& pair, const FabricUnit& unit)
{
    if (unit.sequence > pair.expected && pair.ways > 1)
    {
        return ReceiveEarly(pair, unit);
    }
    const bool repeats = m_state.parameters.recovery == FABRIC_SELECTIVE_REPEAT;
    if (unit.sequence > pair.expected)
    {
        if (repeats)
        {
            m_state.sprays[pair.index].early.emplace(unit.sequence, unit.sequence + unit.payload);
        }
        const bool again =
            m_state.now - pair.nackTime < m_state.parameters.nackInterval.GetPicoSeconds();
        if (pair.nackTime >= 0 && pair.nackOffset == pair.expected && again)
        {
            return false;
        }
        if (m_state.parameters.recovery == FABRIC_GO_BACK_TO_ZERO)
        {
            pair.expected = ChunkStart(pair);
        }
        return SendNack(pair, unit);
    }
    if (unit.sequence + unit.payload <= pair.expected)
    {
        return SendAck(pair, unit, 0); // seen before
    }
    pair.expected = unit.sequence + unit.payload;
    // Closing a gap is confirmed at once (RFC 5681, section 4.2): the sender may have no window
    // left to send the packets that would make the interval full.
    const bool closed = (pair.ways > 1 || (repeats && m_state.lossy)) && CatchUp(pair);
    const bool marked = NoteReceived(pair, unit);
    bool last = false;
    while (pair.receiving != FabricState::NONE &&
           m_state.messages[pair.receiving].end <= pair.expected)
    {
        const uint32_t place = pair.receiving;
        pair.receiving = m_state.messages[place].next;
        last = true;
        if (pair.receiving == FabricState::NONE)
        {
            --m_state.LastPortOf(pair).receiving;
        }
        if (!m_state.parameters.waitForAck)
        {
            m_parts.messages.Deliver(place);
        }
    }
    const bool requested = (unit.flags & FabricUnit::REQUEST) != 0;
    if (closed && pair.ways == 1 && !m_state.sprays[pair.index].early.empty())
    {
        return SendNack(pair, unit); // of the next gap, which nothing else might show any more
    }
    if (last || marked || requested || closed || pair.unconfirmed >= m_state.parameters.ackInterval)
    {
        return SendAck(pair, unit, 0);
    }
    return false;
}

bool
FabricReceivers::NoteReceived(FabricQueuePair& pair, const FabricUnit& unit)
{
    const bool marked = (unit.flags & FabricUnit::CE) != 0;
    pair.unconfirmed += unit.packets;
    if (marked && (m_state.tables.needs & FabricCongestionControl::MARKED_BYTES) != 0)
    {
        pair.markedBytes += unit.payload;
    }
    pair.marked = pair.marked || marked;
    return marked;
}

bool
FabricReceivers::ReceiveEarly(FabricQueuePair& pair, const FabricUnit& unit)
{
    m_state.sprays[pair.index].early.emplace(unit.sequence, unit.sequence + unit.payload);
    const bool marked = NoteReceived(pair, unit);
    if (marked || pair.unconfirmed >= m_state.parameters.ackInterval)
    {
        return SendAck(pair, unit, 0);
    }
    return false;
}

bool
FabricReceivers::CatchUp(FabricQueuePair& pair)
{
    std::map<int64_t, int64_t>& early = m_state.sprays[pair.index].early;
    const bool closes = !early.empty() && early.begin()->first <= pair.expected;
    while (!early.empty() && early.begin()->first <= pair.expected)
    {
        pair.expected = std::max(pair.expected, early.begin()->second);
        early.erase(early.begin());
    }
    return closes;
}

int64_t
FabricReceivers::ChunkStart(const FabricQueuePair& pair) const
{
    // Guo et al., RDMA over commodity Ethernet at scale, SIGCOMM 2016, section 4.1: go-back-0.
    const int64_t begin = m_state.messages[pair.receiving].begin;
    const auto chunk = static_cast<int64_t>(m_state.parameters.recoveryChunk);
    return chunk == 0 ? begin : pair.expected - (pair.expected - begin) % chunk;
}

bool
FabricReceivers::SendNack(FabricQueuePair& pair, const FabricUnit& cause)
{
    pair.nackTime = m_state.now;
    pair.nackOffset = pair.expected;
    return SendAck(pair, cause, FabricUnit::NACK);
}

bool
FabricReceivers::SendAck(FabricQueuePair& pair, const FabricUnit& cause, uint8_t flags)
{
    FabricUnit unit{};
    unit.flags = static_cast<uint8_t>(FabricUnit::ACK | flags | (pair.marked ? FabricUnit::CE : 0));
    unit.sequence = pair.expected;
    unit.sent = cause.sent;
    unit.tail = m_state.now;
    unit.pair = pair.index;
    unit.route = pair.back + 1;
    // The ACK of a train weighs as much as those of its packets.
    unit.wire = m_state.parameters.ackSize *
                std::max(1U, pair.unconfirmed / m_state.parameters.ackInterval);
    unit.packets = 1;
    unit.ingress = FabricUnit::NO_PORT;
    unit.trafficClass =
        static_cast<uint8_t>(std::min(m_state.parameters.ackClass, m_state.parameters.classes - 1));
    unit.telemetry = cause.telemetry;
    // An ACK carries no data, so its payload field is free.
    unit.payload = (flags & FabricUnit::NACK) != 0 ? 0 : pair.markedBytes;
    if ((flags & FabricUnit::NACK) != 0 && m_state.parameters.recovery == FABRIC_SELECTIVE_REPEAT)
    {
        // How much is missing.
        const int64_t gap = m_state.sprays[pair.index].early.begin()->first - pair.expected;
        unit.payload = static_cast<uint32_t>(std::min<int64_t>(gap, INT32_MAX));
    }
    pair.unconfirmed = 0;
    pair.markedBytes = 0;
    pair.marked = false;
    ++pair.underWay;
    m_parts.senders.Forward(m_state.routes[pair.back], unit);
    return true;
}

void
FabricReceivers::ReceiveAck(FabricQueuePair& pair, const FabricUnit& unit)
{
    if ((unit.flags & FabricUnit::NACK) != 0 && pair.oldest != FabricState::NONE &&
        m_state.parameters.recovery == FABRIC_GO_BACK_TO_ZERO &&
        unit.sequence >= m_state.messages[pair.oldest].begin)
    {
        pair.acked = std::min(pair.acked, unit.sequence); // the receiver has thrown the rest away
    }
    const int64_t newly = unit.sequence - pair.acked;
    if (newly > 0)
    {
        pair.acked = unit.sequence;
        pair.progress = m_state.now;
        pair.retries = 0;
    }
    if (m_state.tables.controlled)
    {
        if (m_state.now >= pair.timer)
        {
            m_state.tables.control->Expire(pair, m_state.now);
        }
        FabricFeedback feedback{};
        feedback.now = m_state.now;
        feedback.roundTrip = m_state.now - unit.sent;
        feedback.newlyAcked = std::max<int64_t>(0, newly);
        feedback.marked = (unit.flags & FabricUnit::CE) != 0;
        const bool told = (unit.flags & FabricUnit::NACK) == 0;
        feedback.newlyMarked = told              ? int64_t{unit.payload}
                               : feedback.marked ? feedback.newlyAcked
                                                 : 0;
        feedback.sharers = m_state.LastPortOf(pair).receiving;
        feedback.telemetry = unit.telemetry == FabricUnit::NO_TELEMETRY
                                 ? nullptr
                                 : &m_state.telemetry[unit.telemetry];
        m_state.tables.control->Acknowledge(pair, feedback);
    }
    if (pair.next < pair.acked)
    {
        GoBack(pair, pair.acked); // it had gone back further than needed
    }
    while (pair.oldest != FabricState::NONE && m_state.messages[pair.oldest].end <= pair.acked)
    {
        const uint32_t place = pair.oldest;
        pair.oldest = m_state.messages[place].next;
        if (m_state.parameters.waitForAck)
        {
            m_parts.messages.Deliver(place);
        }
        m_state.messages[place].acked = true;
        m_parts.messages.FreeIfThrough(place);
    }
    pair.repairNext = std::max(pair.repairNext, pair.acked);
    if ((unit.flags & FabricUnit::NACK) != 0 && unit.sequence == pair.acked &&
        pair.next > pair.acked)
    {
        if (unit.payload > 0)
        {
            pair.repairNext = pair.acked;
            pair.repairEnd = pair.acked + unit.payload;
        }
        else
        {
            GoBack(pair, pair.acked);
        }
    }
    if (pair.oldest == FabricState::NONE && pair.oneShot)
    {
        if (pair.slot != FabricState::NONE) // else an ACK of what came twice, after a loss
        {
            m_parts.queuePairs.Retire(pair);
        }
        return;
    }
    m_parts.senders.UpdateEligible(pair);
    if (m_state.EndpointOf(pair).eligibleCount > 0)
    {
        m_parts.senders.Kick(pair.port);
    }
}

void
FabricReceivers::GoBack(FabricQueuePair& pair, int64_t offset)
{
    pair.next = offset;
    pair.sending = pair.oldest;
    while (pair.sending != FabricState::NONE && m_state.messages[pair.sending].end <= offset)
    {
        pair.sending = m_state.messages[pair.sending].next;
    }
    pair.available = m_state.now;
    pair.repairEnd = 0;
    m_parts.senders.UpdateEligible(pair);
}

void
FabricReceivers::ArmExpiry(FabricQueuePair& pair, int64_t since)
{
    if (!pair.expiryPending)
    {
        pair.expiryPending = true;
        m_state.Schedule(FABRIC_EXPIRE,
                         pair.index,
                         since + m_state.parameters.retransmit.GetPicoSeconds(),
                         m_state.NextKey());
    }
}

void
FabricReceivers::WatchAll()
{
    for (FabricQueuePair& pair : m_state.pairs)
    {
        if (pair.oldest != FabricState::NONE &&
            m_state.tables.partitionOf[pair.port] == m_parts.number)
        {
            ArmExpiry(pair, m_state.now);
        }
    }
}

void
FabricReceivers::Expire(uint32_t index)
{
    FabricQueuePair& pair = m_state.pairs[index];
    pair.expiryPending = false;
    if (pair.oldest == FabricState::NONE || pair.acked == pair.highest)
    {
        return;
    }
    if (m_state.now - pair.progress >= m_state.parameters.retransmit.GetPicoSeconds())
    {
        const bool mayMend = m_state.now <= m_state.tables.changesUntil;
        if (!mayMend && ++pair.retries > m_state.parameters.retryLimit)
        {
            pair.gaveUp = true;
            return; // its messages stay, which whoever runs this finds out
        }
        pair.progress = m_state.now;
        GoBack(pair, pair.acked);
        m_parts.senders.Kick(pair.port);
    }
    ArmExpiry(pair, pair.progress);
}

} // namespace ns3
