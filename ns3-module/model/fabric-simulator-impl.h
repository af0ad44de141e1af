/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_SIMULATOR_IMPL_H
#define FABRIC_SIMULATOR_IMPL_H

#include "fabric-event-source.h"

#include "ns3/event-impl.h"
#include "ns3/ptr.h"
#include "ns3/simulator-impl.h"

#include <map>
#include <vector>

namespace ns3
{

/**
 * A SimulatorImpl that runs event sources with queues of their own (Fabric) beside the Simulator's
 * events, without one Simulator event for each of theirs. At equal times the Simulator's events
 * come first.
 *
 * Chosen by GlobalValue::Bind("SimulatorImplementationType", "ns3::FabricSimulatorImpl") before the
 * first use of the Simulator. One thread.
 */
class FabricSimulatorImpl : public SimulatorImpl
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId
    GetTypeId();

    /**
     * Runs a source with the Simulator's events.
     * \param source the source
     * \return false, and nothing happens, where another SimulatorImpl is at work
     */
    static bool
    Add(FabricEventSource* source);

    /**
     * Undoes Add().
     * \param source the source
     */
    static void
    Remove(FabricEventSource* source);

    // SimulatorImpl
    void
    Destroy() override;
    bool
    IsFinished() const override;
    void
    Stop() override;
    void
    Stop(const Time& delay) override;
    EventId
    Schedule(const Time& delay, EventImpl* event) override;
    void
    ScheduleWithContext(uint32_t context, const Time& delay, EventImpl* event) override;
    EventId
    ScheduleNow(EventImpl* event) override;
    EventId
    ScheduleDestroy(EventImpl* event) override;
    void
    Remove(const EventId& id) override;
    void
    Cancel(const EventId& id) override;
    bool
    IsExpired(const EventId& id) const override;
    void
    Run() override;
    Time
    Now() const override;
    Time
    GetDelayLeft(const EventId& id) const override;
    Time
    GetMaximumSimulationTime() const override;
    void
    SetScheduler(ObjectFactory schedulerFactory) override;
    uint32_t
    GetSystemId() const override;
    uint32_t
    GetContext() const override;
    uint64_t
    GetEventCount() const override;

  protected:
    void
    DoDispose() override;

  private:
    /** Time and number of an event: the order in which they happen. */
    using Key = std::pair<uint64_t, uint32_t>;

    /** An event and the context it runs in. */
    struct Entry
    {
        Ptr<EventImpl> event; //!< what to do
        uint32_t context;     //!< node, or NO_CONTEXT
    };

    /**
     * \param delay from now
     * \param event what to do
     * \param context node
     * \return its id
     */
    EventId
    Insert(const Time& delay, EventImpl* event, uint32_t context);

    /** \return the source whose next event is the earliest, or nullptr */
    FabricEventSource*
    FirstSource() const;

    std::map<Key, Entry> m_events;             //!< pending
    std::vector<EventId> m_destroy;            //!< to do at the end
    std::vector<FabricEventSource*> m_sources; //!< see Add()
    FabricEventSource* m_active{nullptr};      //!< the one that runs
    uint64_t m_now{0};                         //!< in units of the time resolution
    uint32_t m_context{0xffffffff};            //!< of the event that runs
    uint32_t m_nextUid{EventId::UID::VALID};   //!< of the next event
    uint64_t m_eventCount{0};                  //!< Simulator events carried out
    bool m_stop{false};                        //!< Stop() was called
};

} // namespace ns3

#endif /* FABRIC_SIMULATOR_IMPL_H */
