/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_EVENT_SOURCE_H
#define FABRIC_EVENT_SOURCE_H

#include <cstdint>

namespace ns3
{

/// The last time that is carried out, in picoseconds: 100 days. What an event adds to the present
/// time (a packet on its wire, a timeout) is less than the week from here to the end of 64 bits.
inline constexpr int64_t FABRIC_LAST_TIME = INT64_MAX - (INT64_MAX >> 4);

/**
 * Something with an event queue and a clock of its own that FabricSimulatorImpl runs together with
 * the Simulator's events. Times are picoseconds; INT64_MAX means never.
 */
class FabricEventSource
{
  public:
    virtual ~FabricEventSource() = default;

    /** \return when its next event happens */
    virtual int64_t
    GetNextTime() const = 0;

    /** \return its clock; within RunUntil() this is Simulator::Now() */
    virtual int64_t
    GetCurrentTime() const = 0;

    /**
     * Carries out its events before `limit`; returns early after Simulator::Stop().
     * \param limit the first time not to be reached
     */
    virtual void
    RunUntil(int64_t limit) = 0;
};

} // namespace ns3

#endif /* FABRIC_EVENT_SOURCE_H */
