/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Queue pairs of a Fabric: messages, windows, pacing, ACKs, go-back-N. A port pulls from its queue
 * pairs, one packet (or train) each in turn; ACKs and forwarded units go before data.
 */
#include "fabric.h"

#include "ns3/abort.h"
#include "ns3/simulator.h"

#include <algorithm>

namespace ns3
{

uint32_t
Fabric::AddQueuePair(const std::vector<uint32_t>& there,
                     const std::vector<uint32_t>& back,
                     bool oneShot)
{
    NS_ABORT_MSG_IF(there.empty() || back.empty(), "a queue pair needs a way there and back");
    uint32_t index = 0;
    if (m_freePairs.empty())
    {
        index = static_cast<uint32_t>(m_pairs.size());
        m_pairs.emplace_back();
    }
    else
    {
        index = m_freePairs.back();
        m_freePairs.pop_back();
    }
    FabricQueuePair& pair = m_pairs[index];
    pair = FabricQueuePair{};
    pair.index = index;
    pair.port = there.front();
    pair.there = AllocateRoute(there);
    pair.thereHops = static_cast<uint32_t>(there.size());
    pair.back = AllocateRoute(back);
    pair.backHops = static_cast<uint32_t>(back.size());
    pair.lineRate = static_cast<double>(m_ports[pair.port].rate.GetBitRate());
    pair.bottleneck = pair.lineRate;
    for (const uint32_t port : there)
    {
        pair.bottleneck =
            std::min(pair.bottleneck, static_cast<double>(m_ports[port].rate.GetBitRate()));
    }
    pair.baseRtt = GetBaseRtt(there);
    pair.ways = 1;
    pair.oldest = pair.sending = pair.receiving = pair.newest = NONE;
    pair.slot = NONE;
    pair.oneShot = oneShot;
    pair.nackTime = -1;
    EndpointOf(pair.port);
    SetFullWindow(pair);
    return index;
}

void
Fabric::SetFullWindow(FabricQueuePair& pair)
{
    pair.fullWindow = m_window > 0 ? m_window : m_globalWindow;
    if (pair.fullWindow == 0)
    {
        const double rate = std::min(pair.lineRate, pair.bottleneck * pair.ways);
        const double product = static_cast<double>(pair.baseRtt) * rate / 8e12;
        pair.fullWindow = std::max<int64_t>(1, static_cast<int64_t>(m_windowFactor * product));
    }
    m_control->Start(pair, m_now);
}

void
Fabric::AddWay(uint32_t index, const std::vector<uint32_t>& there)
{
    FabricQueuePair& pair = m_pairs[index];
    NS_ABORT_MSG_IF(there.empty() || there.front() != pair.port || pair.oneShot,
                    "ways of a queue pair begin at one port");
    Spray& spray = m_sprays[index];
    if (spray.ways.empty())
    {
        spray.ways.push_back(pair.there);
    }
    spray.ways.push_back(AllocateRoute(there));
    pair.ways = static_cast<uint32_t>(spray.ways.size());
    pair.turn = index * 7 % pair.ways; // not all queue pairs begin with the same way
    SetFullWindow(pair);
}

Fabric::Endpoint&
Fabric::EndpointOf(uint32_t port)
{
    uint32_t& place = m_ports[port].endpoint;
    if (place == NONE)
    {
        place = static_cast<uint32_t>(m_endpoints.size());
        m_endpoints.emplace_back();
    }
    return m_endpoints[place];
}

void
Fabric::Send(uint32_t pair, int64_t bytes, Time when, uint64_t tag)
{
    uint32_t place = m_freeMessage;
    if (place == NONE)
    {
        place = static_cast<uint32_t>(m_messages.size());
        m_messages.emplace_back();
    }
    else
    {
        m_freeMessage = m_messages[place].next;
    }
    Message& message = m_messages[place];
    message = Message{};
    message.end = std::max<int64_t>(1, bytes);
    message.when = when.GetPicoSeconds();
    message.tag = tag;
    message.pair = pair;
    message.next = NONE;
    NS_ABORT_MSG_IF(message.when < m_now, "a message cannot begin in the past");
    ++m_liveMessages;
    ++m_pendingBegins;
    Schedule(BEGIN, place, message.when, NextKey());
    UpdatePump();
}

void
Fabric::Begin(uint32_t place)
{
    ForgetState();
    --m_pendingBegins;
    if (m_recording)
    {
        RecordBegin(place);
    }
    Message& message = m_messages[place];
    FabricQueuePair& pair = m_pairs[message.pair];
    message.begin = pair.written;
    message.end += pair.written;
    pair.written = message.end;
    if (pair.oldest == NONE)
    {
        pair.oldest = place;
        pair.progress = m_now;
    }
    else
    {
        m_messages[pair.newest].next = place;
    }
    pair.newest = place;
    if (pair.sending == NONE)
    {
        pair.sending = place;
    }
    if (pair.receiving == NONE)
    {
        pair.receiving = place;
        ++m_nodes[m_ports[m_routes[pair.there + pair.thereHops - 1]].to].receiving;
    }
    if (pair.slot == NONE)
    {
        Endpoint& endpoint = EndpointOf(pair.port);
        pair.slot = static_cast<uint32_t>(endpoint.pairs.size());
        endpoint.pairs.push_back(pair.index);
        endpoint.eligible.resize((endpoint.pairs.size() + 63) / 64, 0);
    }
    UpdateEligible(pair);
    Kick(pair.port);
}

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
            (!port.paused ||
             (m_ackPriority && (endpoint.control[0].flags & FabricUnit::ACK) != 0)))
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
    unit.telemetry = (m_needs & FabricCongestionControl::TELEMETRY) != 0
                         ? AllocateTelemetry()
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
    if (pair.ways > 1)
    {
        CatchUp(pair);
    }
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
    if (last || marked || requested || pair.unconfirmed >= m_ackInterval)
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

void
Fabric::CatchUp(FabricQueuePair& pair)
{
    std::map<int64_t, int64_t>& early = m_sprays[pair.index].early;
    while (!early.empty() && early.begin()->first <= pair.expected)
    {
        pair.expected = std::max(pair.expected, early.begin()->second);
        early.erase(early.begin());
    }
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
        feedback.sharers =
            m_nodes[m_ports[m_routes[pair.there + pair.thereHops - 1]].to].receiving;
        feedback.telemetry = unit.telemetry == FabricUnit::NO_TELEMETRY
                                 ? nullptr
                                 : &m_telemetry[unit.telemetry];
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
Fabric::Note(uint32_t place, bool delivered)
{
    if (m_recording)
    {
        m_recording->completions.push_back(
            {m_now - m_recording->start, m_messages[place].ordinal, delivered});
    }
}

void
Fabric::Deliver(uint32_t place)
{
    Note(place, true);
    Message& message = m_messages[place];
    Complete(message.tag, true);
    message.delivered = true;
    m_messageTrace({message.tag, message.pair, message.end - message.begin, message.when, m_now});
}

void
Fabric::FreeIfThrough(uint32_t place)
{
    Message& message = m_messages[place];
    if (message.sent && message.acked)
    {
        message.next = m_freeMessage;
        m_freeMessage = place;
        --m_liveMessages;
    }
}

void
Fabric::Retire(FabricQueuePair& pair)
{
    Endpoint& endpoint = m_endpoints[m_ports[pair.port].endpoint];
    SetEligible(endpoint, pair.slot, false);
    endpoint.pairs[pair.slot] = NONE;
    ++endpoint.finished;
    pair.slot = NONE;
    pair.retired = true;
    if (!m_scanOrder && endpoint.finished > 16 && endpoint.finished * 2 > endpoint.pairs.size())
    {
        uint32_t kept = endpoint.last;
        const auto turn = [&] { // the last one served, or the nearest before it that is still there
            while (kept > 0 && endpoint.pairs[kept] == NONE)
            {
                --kept;
            }
            return kept;
        };
        uint32_t chosen = kept < endpoint.pairs.size() ? turn() : NONE;
        if (chosen != NONE && endpoint.pairs[chosen] == NONE)
        {
            chosen = NONE;
        }
        DropFinished(endpoint, 0, chosen);
        endpoint.last = chosen == NONE ? 0 : chosen;
    }
}

void
Fabric::FreeIfIdle(FabricQueuePair& pair)
{
    if (pair.retired && pair.underWay == 0)
    {
        pair.retired = false;
        FreeRoute(pair.there, pair.thereHops);
        FreeRoute(pair.back, pair.backHops);
        m_freePairs.push_back(pair.index);
    }
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
