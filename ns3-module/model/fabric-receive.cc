/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * What comes to the ends of a Fabric: data and the ACKs for it, ACKs, go-back-N, timeouts.
 */
#include "fabric.h"

#include <algorithm>

namespace ns3
{

void
Fabric::Discard(const FabricUnit& unit)
{
    if (unit.telemetry != FabricUnit::NO_TELEMETRY)
    {
        m_freeTelemetry.push_back(unit.telemetry);
    }
    FabricQueuePair& pair = m_pairs[unit.pair];
    --pair.underWay;
    FreeIfIdle(pair);
}

void
Fabric::Receive(const FabricUnit& unit)
{
    FabricQueuePair& pair = m_pairs[unit.pair];
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
Fabric::ReceiveData(FabricQueuePair& pair, const FabricUnit& unit)
{
    if (unit.sequence > pair.expected && pair.ways > 1)
    {
        return ReceiveEarly(pair, unit);
    }
    if (unit.sequence > pair.expected)
    {
        const bool again = m_now - pair.nackTime < m_nackInterval.GetPicoSeconds();
        if (pair.nackTime >= 0 && pair.nackOffset == pair.expected && again)
        {
            return false;
        }
        pair.nackTime = m_now;
        pair.nackOffset = pair.expected;
        return SendAck(pair, unit, FabricUnit::NACK);
    }
    if (unit.sequence + unit.payload <= pair.expected)
    {
        return SendAck(pair, unit, 0); // seen before
    }
    pair.expected = unit.sequence + unit.payload;
    // Closing a gap is confirmed at once (RFC 5681, section 4.2): the sender may have no window
    // left to send the packets that would make the interval full.
    const bool closed = pair.ways > 1 && CatchUp(pair);
    pair.unconfirmed += unit.packets;
    const bool marked = (unit.flags & FabricUnit::CE) != 0;
    pair.marked = pair.marked || marked;
    bool last = false;
    while (pair.receiving != NONE && m_messages[pair.receiving].end <= pair.expected)
    {
        const uint32_t place = pair.receiving;
        pair.receiving = m_messages[place].next;
        last = true;
        if (pair.receiving == NONE)
        {
            --m_nodes[m_ports[unit.ingress].to].receiving;
        }
        if (!m_waitForAck)
        {
            Deliver(place);
        }
    }
    const bool requested = (unit.flags & FabricUnit::REQUEST) != 0;
    if (last || marked || requested || closed || pair.unconfirmed >= m_ackInterval)
    {
        return SendAck(pair, unit, 0);
    }
    return false;
}

bool
Fabric::ReceiveEarly(FabricQueuePair& pair, const FabricUnit& unit)
{
    m_sprays[pair.index].early.emplace(unit.sequence, unit.sequence + unit.payload);
    pair.unconfirmed += unit.packets;
    const bool marked = (unit.flags & FabricUnit::CE) != 0;
    pair.marked = pair.marked || marked;
    if (marked || pair.unconfirmed >= m_ackInterval)
    {
        return SendAck(pair, unit, 0);
    }
    return false;
}

bool
Fabric::CatchUp(FabricQueuePair& pair)
{
    std::map<int64_t, int64_t>& early = m_sprays[pair.index].early;
    const bool closes = !early.empty() && early.begin()->first <= pair.expected;
    while (!early.empty() && early.begin()->first <= pair.expected)
    {
        pair.expected = std::max(pair.expected, early.begin()->second);
        early.erase(early.begin());
    }
    return closes;
}

bool
Fabric::SendAck(FabricQueuePair& pair, const FabricUnit& cause, uint8_t flags)
{
    FabricUnit unit{};
    unit.flags = static_cast<uint8_t>(FabricUnit::ACK | flags | (pair.marked ? FabricUnit::CE : 0));
    unit.sequence = pair.expected;
    unit.sent = cause.sent;
    unit.tail = m_now;
    unit.pair = pair.index;
    unit.route = pair.back + 1;
    unit.wire = m_ackSize;
    unit.packets = 1;
    unit.ingress = FabricUnit::NO_PORT;
    unit.telemetry = cause.telemetry;
    pair.unconfirmed = 0;
    pair.marked = false;
    ++pair.underWay;
    Forward(m_routes[pair.back], unit);
    return true;
}

void
Fabric::ReceiveAck(FabricQueuePair& pair, const FabricUnit& unit)
{
    const int64_t newly = unit.sequence - pair.acked;
    if (newly > 0)
    {
        pair.acked = unit.sequence;
        pair.progress = m_now;
    }
    if (m_controlled)
    {
        if (m_now >= pair.timer)
        {
            m_control->Expire(pair, m_now);
        }
        FabricFeedback feedback{};
        feedback.now = m_now;
        feedback.roundTrip = m_now - unit.sent;
        feedback.newlyAcked = std::max<int64_t>(0, newly);
        feedback.marked = (unit.flags & FabricUnit::CE) != 0;
        feedback.sharers = m_nodes[m_ports[m_routes[pair.there + pair.thereHops - 1]].to].receiving;
        feedback.telemetry =
            unit.telemetry == FabricUnit::NO_TELEMETRY ? nullptr : &m_telemetry[unit.telemetry];
        m_control->Acknowledge(pair, feedback);
    }
    if (pair.next < pair.acked)
    {
        GoBack(pair, pair.acked); // it had gone back further than needed
    }
    while (pair.oldest != NONE && m_messages[pair.oldest].end <= pair.acked)
    {
        const uint32_t place = pair.oldest;
        pair.oldest = m_messages[place].next;
        if (m_waitForAck)
        {
            Deliver(place);
        }
        m_messages[place].acked = true;
        FreeIfThrough(place);
    }
    if ((unit.flags & FabricUnit::NACK) != 0 && unit.sequence == pair.acked &&
        pair.next > pair.acked)
    {
        GoBack(pair, pair.acked);
    }
    if (pair.oldest == NONE && pair.oneShot)
    {
        Retire(pair);
        return;
    }
    UpdateEligible(pair);
    if (m_endpoints[m_ports[pair.port].endpoint].eligibleCount > 0)
    {
        Kick(pair.port);
    }
}

void
Fabric::GoBack(FabricQueuePair& pair, int64_t offset)
{
    pair.next = offset;
    pair.sending = pair.oldest;
    while (pair.sending != NONE && m_messages[pair.sending].end <= offset)
    {
        pair.sending = m_messages[pair.sending].next;
    }
    pair.available = m_now;
    UpdateEligible(pair);
}

void
Fabric::ArmExpiry(FabricQueuePair& pair)
{
    if (!pair.expiryPending)
    {
        pair.expiryPending = true;
        Schedule(EXPIRE, pair.index, m_now + m_retransmit.GetPicoSeconds(), NextKey());
    }
}

void
Fabric::Expire(uint32_t index)
{
    FabricQueuePair& pair = m_pairs[index];
    pair.expiryPending = false;
    if (pair.oldest == NONE || pair.acked == pair.highest)
    {
        return;
    }
    if (m_now - pair.progress >= m_retransmit.GetPicoSeconds())
    {
        pair.progress = m_now;
        GoBack(pair, pair.acked);
        Kick(pair.port);
    }
    ArmExpiry(pair);
}

} // namespace ns3
