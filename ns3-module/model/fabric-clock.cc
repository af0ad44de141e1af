/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * The clock of a Fabric: its events, carried out directly or by Simulator events.
 */
#include "fabric-parts.h"
#include "fabric.h"

#include "ns3/simulator.h"

#include <algorithm>

namespace ns3
{

int64_t
Fabric::GetNextTime() const
{
    FabricState& state = m_parts->state;
    const int64_t next = state.events.IsEmpty() ? INT64_MAX : state.events.Top().time;
    // The stop is due even where nothing of the fabric happens before it.
    return std::min(next, state.GetStop());
}

int64_t
Fabric::GetCurrentTime() const
{
    FabricState& state = m_parts->state;
    return state.now;
}

void
Fabric::RunUntil(int64_t limit)
{
    FabricState& state = m_parts->state;
    m_running = true;
    // A stop holds from the first completion on: then the rest of that stamp, or `slack` more.
    const auto stopping = [&state, &limit]
    {
        const bool due = state.GetStop() <= limit && state.GetStop() != INT64_MAX;
        limit = std::min(limit, state.GetStop());
        return due;
    };
    bool stop = stopping();
    std::size_t seen = state.completions.size();
    while (!state.events.IsEmpty())
    {
        if (state.looking && m_parts->episodes.IsIdle() && state.events.Top().time < limit &&
            m_parts->episodes.Turn(limit))
        {
            stop = stopping();
            seen = state.completions.size();
            continue;
        }
        const FabricEvent event = state.events.Top();
        if (event.time >= limit)
        {
            break;
        }
        if (event.time >= state.nextSample)
        {
            m_parts->samples.TakeUntil(event.time);
        }
        state.now = event.time;
        state.currentKey = event.key;
        ++state.eventCount;
        Dispatch(event);
        if (state.completions.size() != seen)
        {
            seen = state.completions.size();
            stop = stopping();
            m_parts->jumps.Forget();
        }
        else if (m_parts->jumps.IsDue() && !state.events.IsEmpty() &&
                 state.events.Top().time > state.now)
        {
            m_parts->jumps.Look(limit);
        }
    }
    m_running = false;
    if (stop)
    {
        Simulator::Stop();
    }
}

void
Fabric::Dispatch(const FabricEvent& event)
{
    FabricState& state = m_parts->state;
    const uint32_t index = event.GetIndex();
    switch (static_cast<FabricWhat>(event.GetKind()))
    {
    case FABRIC_ARRIVE:
        m_parts->wires.Arrive(index, event.key); // replaces or pops the top itself
        break;
    case FABRIC_PULL:
        state.events.Pop();
        state.ports[index].pullPending = false;
        m_parts->senders.Pull(index);
        break;
    case FABRIC_WAKE:
        state.events.Pop();
        if (state.ports[index].wakeKey == event.key)
        {
            m_parts->senders.Wake(index);
        }
        break;
    case FABRIC_BEGIN:
        state.events.Pop();
        m_parts->messages.Begin(index);
        break;
    case FABRIC_PAUSE:
        state.events.Pop();
        m_parts->wires.Pause(index / FabricPort::MAX_CLASSES, index % FabricPort::MAX_CLASSES);
        break;
    case FABRIC_RESUME:
        state.events.Pop();
        m_parts->wires.Resume(index / FabricPort::MAX_CLASSES, index % FabricPort::MAX_CLASSES);
        break;
    case FABRIC_DEPART:
        state.events.Pop();
        m_parts->wires.Depart(index);
        break;
    case FABRIC_EXPIRE:
        state.events.Pop();
        m_parts->receivers.Expire(index);
        break;
    case FABRIC_CREDIT:
        state.events.Pop();
        m_parts->credits.Come(index);
        break;
    }
}

void
Fabric::UpdatePump()
{
    if (m_direct || m_running)
    {
        return;
    }
    const int64_t next = GetNextTime();
    if (m_pump.IsRunning() && m_pump.GetTs() == static_cast<uint64_t>(next))
    {
        return;
    }
    m_pump.Cancel();
    if (next != INT64_MAX)
    {
        const Time when = PicoSeconds(static_cast<uint64_t>(next));
        m_pump = Simulator::Schedule(when - Simulator::Now(), &Fabric::Pump, this);
    }
}

void
Fabric::Pump()
{
    const int64_t now = Simulator::Now().GetPicoSeconds();
    RunUntil(now + 1);
    UpdatePump();
}

} // namespace ns3
