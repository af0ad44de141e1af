/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "fabric-simulator-impl.h"

#include "ns3/assert.h"
#include "ns3/log.h"
#include "ns3/nstime.h"
#include "ns3/object-factory.h"
#include "ns3/simulator.h"

#include <algorithm>

namespace ns3
{

NS_LOG_COMPONENT_DEFINE("FabricSimulatorImpl");
NS_OBJECT_ENSURE_REGISTERED(FabricSimulatorImpl);

TypeId
FabricSimulatorImpl::GetTypeId()
{
    static TypeId tid = TypeId("ns3::FabricSimulatorImpl")
                            .SetParent<SimulatorImpl>()
                            .SetGroupName("Lockstep")
                            .AddConstructor<FabricSimulatorImpl>();
    return tid;
}

bool
FabricSimulatorImpl::Add(FabricEventSource* source)
{
    const auto self = DynamicCast<FabricSimulatorImpl>(Simulator::GetImplementation());
    if (self)
    {
        self->m_sources.push_back(source);
    }
    return self != nullptr;
}

void
FabricSimulatorImpl::Remove(FabricEventSource* source)
{
    const auto self = DynamicCast<FabricSimulatorImpl>(Simulator::GetImplementation());
    if (self)
    {
        auto& sources = self->m_sources;
        sources.erase(std::remove(sources.begin(), sources.end(), source), sources.end());
    }
}

void
FabricSimulatorImpl::DoDispose()
{
    m_events.clear();
    SimulatorImpl::DoDispose();
}

void
FabricSimulatorImpl::Destroy()
{
    while (!m_destroy.empty())
    {
        const Ptr<EventImpl> event = m_destroy.front().PeekEventImpl();
        m_destroy.erase(m_destroy.begin());
        event->Invoke();
    }
}

FabricEventSource*
FabricSimulatorImpl::FirstSource() const
{
    FabricEventSource* first = nullptr;
    for (FabricEventSource* source : m_sources)
    {
        const int64_t time = source->GetNextTime();
        if (time != INT64_MAX && (first == nullptr || time < first->GetNextTime()))
        {
            first = source;
        }
    }
    return first;
}

bool
FabricSimulatorImpl::IsFinished() const
{
    return m_stop || (m_events.empty() && FirstSource() == nullptr);
}

void
FabricSimulatorImpl::Run()
{
    m_stop = false;
    while (!m_stop)
    {
        FabricEventSource* source = FirstSource();
        const int64_t earliest =
            m_events.empty() ? INT64_MAX : static_cast<int64_t>(m_events.begin()->first.first);
        if (std::min(earliest, source != nullptr ? source->GetNextTime() : INT64_MAX) >=
            FABRIC_LAST_TIME)
        {
            break;
        }
        if (source != nullptr && source->GetNextTime() < earliest)
        {
            int64_t limit = std::min(earliest, FABRIC_LAST_TIME);
            for (const FabricEventSource* other : m_sources)
            {
                if (other != source)
                {
                    limit =
                        std::min(limit, std::max(other->GetNextTime(), source->GetNextTime() + 1));
                }
            }
            m_active = source;
            source->RunUntil(limit);
            m_active = nullptr;
            m_now = std::max(m_now, static_cast<uint64_t>(source->GetCurrentTime()));
            continue;
        }
        const auto first = m_events.begin();
        const Entry entry = first->second;
        m_now = first->first.first;
        m_context = entry.context;
        m_events.erase(first);
        ++m_eventCount;
        entry.event->Invoke();
    }
}

Time
FabricSimulatorImpl::Now() const
{
    return TimeStep(m_active != nullptr ? static_cast<uint64_t>(m_active->GetCurrentTime())
                                        : m_now);
}

void
FabricSimulatorImpl::Stop()
{
    m_stop = true;
}

void
FabricSimulatorImpl::Stop(const Time& delay)
{
    Simulator::Schedule(delay, &Simulator::Stop);
}

EventId
FabricSimulatorImpl::Insert(const Time& delay, EventImpl* event, uint32_t context)
{
    NS_ASSERT_MSG(!delay.IsStrictlyNegative(), "an event cannot lie in the past");
    const auto time = static_cast<uint64_t>((Now() + delay).GetTimeStep());
    const uint32_t uid = m_nextUid++;
    m_events.emplace(Key(time, uid), Entry{Ptr<EventImpl>(event, false), context});
    return EventId(Ptr<EventImpl>(event), time, context, uid);
}

EventId
FabricSimulatorImpl::Schedule(const Time& delay, EventImpl* event)
{
    return Insert(delay, event, GetContext());
}

void
FabricSimulatorImpl::ScheduleWithContext(uint32_t context, const Time& delay, EventImpl* event)
{
    Insert(delay, event, context);
}

EventId
FabricSimulatorImpl::ScheduleNow(EventImpl* event)
{
    return Insert(TimeStep(0), event, GetContext());
}

EventId
FabricSimulatorImpl::ScheduleDestroy(EventImpl* event)
{
    const EventId id(Ptr<EventImpl>(event, false),
                     static_cast<uint64_t>(Now().GetTimeStep()),
                     0xffffffff,
                     EventId::UID::DESTROY);
    m_destroy.push_back(id);
    return id;
}

void
FabricSimulatorImpl::Remove(const EventId& id)
{
    if (id.GetUid() == EventId::UID::DESTROY)
    {
        m_destroy.erase(std::remove(m_destroy.begin(), m_destroy.end(), id), m_destroy.end());
    }
    else if (!IsExpired(id))
    {
        id.PeekEventImpl()->Cancel();
        m_events.erase(Key(id.GetTs(), id.GetUid()));
    }
}

void
FabricSimulatorImpl::Cancel(const EventId& id)
{
    if (!IsExpired(id))
    {
        id.PeekEventImpl()->Cancel();
    }
}

bool
FabricSimulatorImpl::IsExpired(const EventId& id) const
{
    if (id.PeekEventImpl() == nullptr || id.PeekEventImpl()->IsCancelled())
    {
        return true;
    }
    if (id.GetUid() == EventId::UID::DESTROY)
    {
        return std::find(m_destroy.begin(), m_destroy.end(), id) == m_destroy.end();
    }
    return m_events.count(Key(id.GetTs(), id.GetUid())) == 0;
}

Time
FabricSimulatorImpl::GetDelayLeft(const EventId& id) const
{
    return IsExpired(id) ? TimeStep(0)
                         : TimeStep(id.GetTs() - static_cast<uint64_t>(Now().GetTimeStep()));
}

Time
FabricSimulatorImpl::GetMaximumSimulationTime() const
{
    return TimeStep(INT64_MAX);
}

void
FabricSimulatorImpl::SetScheduler(ObjectFactory /* schedulerFactory */)
{
    // Its few events need no other order than the map's.
}

uint32_t
FabricSimulatorImpl::GetSystemId() const
{
    return 0;
}

uint32_t
FabricSimulatorImpl::GetContext() const
{
    return m_context;
}

uint64_t
FabricSimulatorImpl::GetEventCount() const
{
    return m_eventCount;
}

} // namespace ns3
