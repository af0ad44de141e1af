/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_WIRES_H
#define FABRIC_WIRES_H

#include "fabric-state.h"

#include "ns3/data-rate.h"

#include <cstdint>
#include <vector>

namespace ns3
{

struct FabricParts;

/**
 * Ports: queues, transmission, propagation.
 *
 * A switch port serves its traffic classes in strict priority, class 0 first, each first in first
 * out, and breaks off nothing that has started. What waits lies in the ring in the order in which
 * it will go; so when a unit comes, the moment it leaves is known, and that of those before which
 * it goes:
 *
 *     start = max(the port is free, head + processing)
 *     end   = max(start + wire / C, tail + processing + granule / C)
 *
 * where head and tail are the arrivals of its first granule (a full packet when storing and
 * forwarding, 64 bytes when cutting through) and of its last bit. One event a unit and hop is left:
 * the arrival at the other end; and one pending event a port, for its oldest unit. What happens at
 * a unit's start (marks, buffer) is made up for when somebody looks. A pause of a class takes back
 * the times of those of it that have not started; they lie behind the others until it ends.
 *
 * When a unit goes before others, these get their times when the one before them starts, or when
 * somebody looks (TimeQueue()): each once, however many go before it. Which of them it goes before
 * needs no look at those that have no times and are of the last rank: they start late enough. So a
 * unit costs O(1), whatever the length of the queue.
 */
class FabricWires
{
  public:
    /**
     * \param parts those it works with
     */
    explicit FabricWires(FabricParts& parts);

    /**
     * \param port a port
     * \param bytes on the wire
     * \return ps
     */
    int64_t
    TransmissionTime(FabricPort& port, uint32_t bytes) const;

    /**
     * The oldest unit of a port reaches the other end.
     * \param index of the port
     * \param key of the event
     */
    void
    Arrive(uint32_t index, uint64_t key);

    /**
     * \param index of a switch's port
     * \param unit what is to leave by it
     */
    void
    Enqueue(uint32_t index, const FabricUnit& unit);

    /**
     * \param index of an idle port of a host
     * \param unit what leaves by it now
     */
    void
    Transmit(uint32_t index, const FabricUnit& unit);

    /**
     * Makes up for what has started at a port.
     * \param index of the port
     */
    void
    Settle(uint32_t index);

    /**
     * What waits at a port and has no times gets them.
     * \param port a port
     */
    void
    TimeQueue(FabricPort& port);

    /**
     * \param index of the port that is told to stop
     * \param trafficClass what stops
     */
    void
    Pause(uint32_t index, uint32_t trafficClass);

    /**
     * \param index of the port that is told to go on
     * \param trafficClass what goes on
     */
    void
    Resume(uint32_t index, uint32_t trafficClass);

    /**
     * From now on a port has this bandwidth. What it is sending ends as it began.
     * \param index of the port
     * \param rate its bandwidth
     */
    void
    SetRate(uint32_t index, DataRate rate);

    /**
     * Credits have come: what waits for them at a switch's port gets its times.
     * \param index of the port
     * \return whether that was all of it
     */
    bool
    StartWaiting(uint32_t index);

    /**
     * A unit starts at a port that is watched.
     * \param index of the port
     */
    void
    Depart(uint32_t index);

    /**
     * Asks for the starts of units at a node that holds somebody up.
     * \param node its number
     */
    void
    Watch(uint32_t node);

    /**
     * \param index of the port in front of which a unit is lost
     * \param unit what is lost
     */
    void
    Drop(uint32_t index, const FabricUnit& unit);

  private:
    int64_t
    HeadTime(FabricPort& port, const FabricUnit& unit) const;
    void
    ArmArrival(uint32_t index);
    void
    StartNext(uint32_t index);
    /** Where one that comes goes in a port's ring. */
    uint32_t
    PlaceOf(FabricPort& port, const FabricUnit& unit, bool mayStart, int64_t ready);
    /** Whether one that comes goes before the one at a place in the ring, which waits. */
    bool
    GoesBefore(const FabricPort& port,
               const FabricUnit& unit,
               uint32_t place,
               bool mayStart,
               int64_t ready) const;
    /** Finds anew what FabricPort::ahead says. */
    void
    CountAhead(FabricPort& port) const;
    /** The first unit without times gets them. */
    void
    TimeNext(FabricPort& port);
    /** Other classes may go than before: orders what waits, and gives it times. */
    void
    Reorder(uint32_t index);
    /** Gives what has not started at a port times anew. */
    void
    Retime(FabricPort& port, int64_t from);
    /** Gives a unit that has not started its times. One that has all come by `there` ends wire / C
     * after its start. */
    void
    SetTimes(FabricPort& port, FabricUnit& unit, int64_t start, int64_t there);
    /** Forgets the arrival of a unit that has not started after all. */
    void
    TakeBackArrival(FabricPort& port);

    FabricParts& m_parts;              //!< those it works with
    FabricState& m_state;              //!< of the Fabric
    std::vector<FabricUnit> m_waiting; //!< reused
};

} // namespace ns3

#endif /* FABRIC_WIRES_H */
