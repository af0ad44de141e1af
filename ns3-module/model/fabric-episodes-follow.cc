/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Episodes: what is followed.
 */
#include "fabric-parts.h"

#include "ns3/abort.h"

#include <algorithm>

namespace ns3
{

int64_t
FabricEpisodes::GetNextTime() const
{
    const int64_t told = m_reported < m_script->outcomes.size()
                             ? m_script->outcomes[m_reported].time
                             : m_script->end;
    const int64_t next = m_state.events.IsEmpty() ? INT64_MAX : m_state.events.Top().time;
    // If the next message does not come in its time, all that follows may come earlier.
    const int64_t opening = m_begun.size() < m_script->openings.size()
                                ? m_script->openings[m_begun.size()].time
                                : INT64_MAX - m_start;
    return std::min({m_start + told, m_start + opening, next});
}

bool
FabricEpisodes::IsExpected(const Episode& episode, const FabricEvent& event)
{
    const std::size_t number = m_script == nullptr ? 0 : m_begun.size();
    const FabricQueuePair& pair = m_state.pairs[m_state.messages[event.GetIndex()].pair];
    DescribeBegin(event.GetIndex(), m_script == nullptr ? event.time : m_start, m_opening);
    return number < episode.openings.size() && episode.openings[number].IsLike(m_opening) &&
           pair.available <= event.time && m_state.tables.control->IsSteady(pair);
}

void
FabricEpisodes::Follow(int64_t time)
{
    for (;;)
    {
        const bool starts = !m_state.events.IsEmpty() && m_state.events.Top().time == time;
        const std::size_t number = m_begun.size();
        const bool missing = !starts && number < m_script->openings.size() &&
                             m_start + m_script->openings[number].time <= time;
        if (missing || (starts && !IsExpected(*m_script, m_state.events.Top())))
        {
            if (!FindAnother(time))
            {
                CarryOut(time - 1);
            }
            return;
        }
        if (!starts)
        {
            break;
        }
        m_begun.push_back(m_state.events.Top());
        m_state.events.Pop();
        --m_state.pendingBegins;
        ++m_followed;
    }
    Report(time);
    if (m_reported == m_script->outcomes.size() && m_start + m_script->end <= time)
    {
        Finish();
    }
}

bool
FabricEpisodes::BeganAs(const Episode& episode)
{
    for (std::size_t i = 0; i < m_begun.size(); ++i)
    {
        DescribeBegin(m_begun[i].GetIndex(), m_start, m_opening);
        if (!episode.openings[i].IsLike(m_opening))
        {
            return false;
        }
    }
    return true;
}

bool
FabricEpisodes::FindAnother(int64_t time)
{
    const bool starts = !m_state.events.IsEmpty() && m_state.events.Top().time == time;
    const Episode* old = m_script;
    for (const auto& episode : *m_bucket)
    {
        const std::vector<Opening>& openings = episode->openings;
        const std::size_t number = m_begun.size();
        if (episode.get() == old || episode->before != old->before || openings.size() < number ||
            !BeganAs(*episode))
        {
            continue;
        }
        const bool next = starts
                              ? IsExpected(*episode, m_state.events.Top())
                              : openings.size() == number || m_start + openings[number].time > time;
        const auto same = [](const Outcome& a, const Outcome& b)
        { return a.time == b.time && a.ordinal == b.ordinal && a.delivered == b.delivered; };
        const auto told = static_cast<std::ptrdiff_t>(m_reported);
        // Where it would have reported more by now, it is over, or goes another way.
        if (next && episode->outcomes.size() >= m_reported && m_start + episode->end >= time &&
            (episode->outcomes.size() == m_reported ||
             m_start + episode->outcomes[m_reported].time >= time) &&
            std::equal(old->outcomes.begin(),
                       old->outcomes.begin() + told,
                       episode->outcomes.begin(),
                       same))
        {
            m_script = episode.get();
            return true;
        }
    }
    return false;
}

void
FabricEpisodes::Report(int64_t time)
{
    const std::vector<Outcome>& outcomes = m_script->outcomes;
    while (m_reported < outcomes.size() && m_start + outcomes[m_reported].time == time)
    {
        const Outcome& done = outcomes[m_reported];
        ++m_reported;
        m_state.now = time;
        const uint32_t place = m_begun[done.ordinal].GetIndex();
        if (done.delivered)
        {
            m_parts.messages.Deliver(place);
        }
        else
        {
            m_parts.messages.Complete(place, false);
        }
    }
}

void
FabricEpisodes::Finish()
{
    const Episode& episode = *m_script;
    m_script = nullptr;
    for (const FabricEvent& event : m_begun)
    {
        FabricMessage& message = m_state.messages[event.GetIndex()];
        FabricQueuePair& pair = m_state.pairs[message.pair];
        pair.written += message.end - message.begin;
        pair.next = pair.highest = pair.acked = pair.expected = pair.written;
        if (pair.oneShot)
        {
            pair.retired = true;
            m_parts.queuePairs.FreeIfIdle(pair);
        }
        message.sent = message.acked = true;
        m_parts.messages.FreeIfThrough(event.GetIndex());
    }
    for (const Place& turn : episode.after)
    {
        FabricEndpoint& endpoint = m_state.endpoints[turn.endpoint];
        endpoint.last = turn.last;
        endpoint.finished = turn.finished;
        endpoint.pairs.resize(turn.size, FabricState::NONE);
        endpoint.eligible.resize((turn.size + 63) / 64, 0);
    }
    for (const Carried& carried : episode.carried)
    {
        m_state.ports[carried.port].statistics.bytes += carried.bytes;
        m_state.ports[carried.port].statistics.units += carried.units;
    }
    m_state.packetCount += episode.packets;
    m_state.nextKey += episode.key;
    m_state.now = m_start + episode.end;
    m_lastEvent = m_state.now;
    m_state.skippedTime += episode.end;
    ++m_state.jumps;
    m_parts.jumps.Forget();
}

void
FabricEpisodes::Interrupt(int64_t now)
{
    if (m_script != nullptr)
    {
        CarryOut(now);
    }
}

void
FabricEpisodes::CarryOut(int64_t last)
{
    // In the order in which they were handed over, each when all before that has happened.
    std::vector<FabricEvent> begins = m_begun;
    begins.insert(begins.end(), m_state.events.Events().begin(), m_state.events.Events().end());
    std::sort(begins.begin(),
              begins.end(),
              [](const FabricEvent& a, const FabricEvent& b) { return a.key < b.key; });
    m_state.events.Events().clear();
    m_state.pendingBegins += m_begun.size();
    m_followed -= std::min(m_followed, m_begun.size());
    m_state.silent = m_reported;
    m_places = m_script->before;
    Record(m_start, m_script->hash);
    m_script = nullptr;
    std::size_t next = 0;
    for (;;)
    {
        while (next < begins.size() &&
               (m_state.events.IsEmpty() ||
                m_state.messages[begins[next].GetIndex()].after < m_state.events.Top().time))
        {
            m_state.events.Push({begins[next].time, m_state.NextKey(), begins[next].what});
            ++next;
        }
        // What had happened when the next one was handed over is over before it comes.
        const int64_t until = next < begins.size()
                                  ? std::max(last, m_state.messages[begins[next].GetIndex()].after)
                                  : last;
        if (m_state.events.IsEmpty() || m_state.events.Top().time > until)
        {
            break;
        }
        m_parts.CarryOut();
    }
    NS_ABORT_MSG_IF(m_state.silent != 0, "what was told has not happened");
    m_parts.jumps.Forget();
}

} // namespace ns3
