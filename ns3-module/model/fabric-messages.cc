/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-parts.h"

#include "ns3/abort.h"

#include <algorithm>

namespace ns3
{

FabricMessages::FabricMessages(FabricParts& parts)
    : m_parts(parts),
      m_state(parts.state)
{
}

void
FabricMessages::Send(uint32_t pair, int64_t bytes, int64_t when, uint64_t tag)
{
    uint32_t place = m_free;
    if (place == FabricState::NONE)
    {
        place = static_cast<uint32_t>(m_state.messages.size());
        m_state.messages.emplace_back();
    }
    else
    {
        m_free = m_state.messages[place].next;
    }
    FabricMessage& message = m_state.messages[place];
    message = FabricMessage{};
    message.end = std::max<int64_t>(1, bytes);
    message.when = m_state.WithJitter(pair, when);
    message.after = m_state.tables.done;
    message.tag = tag;
    message.pair = pair;
    message.next = FabricState::NONE;
    NS_ABORT_MSG_IF(message.when < m_state.now, "a message cannot begin in the past");
    ++m_state.liveMessages;
    ++m_state.pendingBegins;
    m_state.Schedule(FABRIC_BEGIN, place, message.when, m_state.NextKey());
}

void
FabricMessages::Begin(uint32_t place)
{
    m_parts.jumps.Forget();
    --m_state.pendingBegins;
    if (m_parts.episodes.IsRecording())
    {
        m_parts.episodes.RecordBegin(place);
    }
    FabricMessage& message = m_state.messages[place];
    FabricQueuePair& pair = m_state.pairs[message.pair];
    message.begin = pair.written;
    message.end += pair.written;
    pair.written = message.end;
    if (pair.oldest == FabricState::NONE)
    {
        pair.oldest = place;
        pair.progress = m_state.now;
    }
    else
    {
        m_state.messages[pair.newest].next = place;
    }
    pair.newest = place;
    if (pair.sending == FabricState::NONE)
    {
        pair.sending = place;
    }
    if (pair.receiving == FabricState::NONE)
    {
        pair.receiving = place;
        ++m_state.LastPortOf(pair).receiving;
    }
    if (pair.slot == FabricState::NONE)
    {
        FabricEndpoint& endpoint = m_state.EndpointOf(pair);
        endpoint.Join(pair);
    }
    m_parts.senders.UpdateEligible(pair);
    m_parts.senders.Kick(pair.port);
}

void
FabricMessages::Deliver(uint32_t place)
{
    FabricMessage& message = m_state.messages[place];
    const bool told = m_state.silent > 0;
    Complete(place, true);
    message.delivered = true;
    if (!told)
    {
        m_state.tables.traces->message(
            {message.tag, message.pair, message.end - message.begin, message.when, m_state.now});
    }
}

void
FabricMessages::ReportSent(uint32_t place)
{
    Complete(place, false);
    m_state.messages[place].sent = true;
    FreeIfThrough(place);
}

void
FabricMessages::Complete(uint32_t place, bool delivered)
{
    if (m_parts.episodes.IsRecording())
    {
        m_parts.episodes.RecordCompletion(place, delivered);
    }
    if (m_state.silent > 0)
    {
        --m_state.silent;
        return;
    }
    m_state.tables.completions.push_back({m_state.now, m_state.messages[place].tag, delivered});
}

void
FabricMessages::FreeIfThrough(uint32_t place)
{
    FabricMessage& message = m_state.messages[place];
    if (message.sent && message.acked)
    {
        message.next = m_free;
        m_free = place;
        --m_state.liveMessages;
    }
}

void
FabricMessages::TakeOver(FabricMessages& other)
{
    while (other.m_free != FabricState::NONE)
    {
        const uint32_t place = other.m_free;
        other.m_free = m_state.messages[place].next;
        m_state.messages[place].next = m_free;
        m_free = place;
    }
}

} // namespace ns3
