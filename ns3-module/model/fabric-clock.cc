/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * The clock of a Fabric: its events, carried out directly or by Simulator events.
 */
#include "fabric-partitions.h"
#include "fabric.h"

#include "ns3/simulator.h"

#include <algorithm>

namespace ns3
{

int64_t
Fabric::GetNextTime() const
{
    // The stop is due even where nothing of the fabric happens before it.
    return std::min(m_partitions->GetNextTime(), m_partitions->GetStop());
}

int64_t
Fabric::GetCurrentTime() const
{
    return m_partitions->GetNow();
}

void
Fabric::RunUntil(int64_t limit)
{
    m_running = true;
    const bool stop = m_partitions->RunUntil(limit);
    m_running = false;
    if (stop)
    {
        Simulator::Stop();
    }
}

void
FabricParts::CarryOut()
{
    const FabricEvent event = state.events.Top();
    state.now = event.time;
    state.currentKey = event.key;
    ++state.eventCount;
    const uint32_t index = event.GetIndex();
    const auto what = static_cast<FabricWhat>(event.GetKind());
    if (what != FABRIC_BEGIN)
    {
        episodes.NoteEvent();
    }
    switch (what)
    {
    case FABRIC_ARRIVE:
        wires.Arrive(index, event.key); // replaces or pops the top itself
        break;
    case FABRIC_PULL:
        state.events.Pop();
        state.ports[index].pullPending = false;
        senders.Pull(index);
        break;
    case FABRIC_WAKE:
        state.events.Pop();
        if (state.ports[index].wakeKey == event.key)
        {
            senders.Wake(index);
        }
        break;
    case FABRIC_BEGIN:
        state.events.Pop();
        messages.Begin(index);
        break;
    case FABRIC_PAUSE:
    case FABRIC_RESUME:
    {
        state.events.Pop();
        const uint32_t port = index / FabricPort::MAX_CLASSES;
        const uint32_t trafficClass = index % FabricPort::MAX_CLASSES;
        const bool stop = what == FABRIC_PAUSE;
        state.tables.traces->pause(state.now, state.ports[port].to, port, trafficClass, stop);
        if (stop)
        {
            wires.Pause(port, trafficClass);
        }
        else
        {
            wires.Resume(port, trafficClass);
        }
        break;
    }
    case FABRIC_DEPART:
        state.events.Pop();
        wires.Depart(index);
        break;
    case FABRIC_EXPIRE:
        state.events.Pop();
        receivers.Expire(index);
        break;
    case FABRIC_CREDIT:
        state.events.Pop();
        credits.Come(index);
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
