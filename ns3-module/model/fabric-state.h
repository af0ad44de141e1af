/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_STATE_H
#define FABRIC_STATE_H

#include "fabric-endpoint.h"
#include "fabric-event-queue.h"
#include "fabric-node.h"
#include "fabric-parameters.h"
#include "fabric-pools.h"
#include "fabric-queue-pair.h"

#include "ns3/random-variable-stream.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ns3
{

/** Kinds of FabricEvent. */
enum FabricWhat : uint32_t
{
    FABRIC_ARRIVE, //!< port: its oldest unit reaches the other end
    FABRIC_PULL,   //!< port: may send the next unit
    FABRIC_WAKE,   //!< port: pacing lets a queue pair send
    FABRIC_BEGIN,  //!< message: its time has come
    FABRIC_PAUSE,  //!< port and class (Lane()): told to stop
    FABRIC_RESUME, //!< port and class: told to go on
    FABRIC_DEPART, //!< port: a unit starts (asked for only where a pause depends on it)
    FABRIC_EXPIRE, //!< queue pair: retransmission timer
    FABRIC_CREDIT  //!< port: credits for a packet have come back to it
};

/** What all parts of a Fabric share: tables, what has completed, and the parameters it runs by. */
struct FabricTables
{
    FabricParameters parameters;        //!< fixed by Finish()
    FabricCongestionControl* control{}; //!< of all queue pairs
    FabricTraces* traces{};             //!< who wants to know
    uint32_t needs{0};                  //!< of the congestion control
    bool controlled{false};             //!< it is more than the base class
    int64_t globalWindow{0};            //!< bytes, or 0

    std::vector<FabricNode> nodes;                     //!< by number
    std::vector<FabricPort> ports;                     //!< by number
    std::vector<uint32_t> partitionOf;                 //!< by port
    std::vector<FabricEndpoint> endpoints;             //!< of ports that send or receive
    std::vector<FabricQueuePair> pairs;                //!< by number
    std::vector<FabricMessage> messages;               //!< pool
    std::unordered_map<uint32_t, FabricSpray> sprays;  //!< by queue pair
    std::unordered_map<uint32_t, FabricJitter> jitter; //!< by queue pair, if there is any
    FabricRoutes routes;                               //!< ways
    FabricTelemetryPool telemetry;                     //!< of packets under way
    std::vector<FabricCompletion> completions;         //!< not yet fetched

    int64_t changesUntil{-1};          //!< ps, see Fabric::ExpectChangesUntil()
    int64_t done{-1};                  //!< ps: all events up to then have been carried out
    bool stopAtCompletion{false};      //!< see Fabric::SetStopAtCompletion()
    int64_t slack{0};                  //!< see Fabric::SetStopAtCompletion()
    int64_t nextSample{INT64_MAX};     //!< ps, if there are samples
    Ptr<UniformRandomVariable> random; //!< tie order
    int64_t stream{-1};                //!< the first of ns-3's streams of random numbers; -1: any
    std::optional<uint64_t> seed;      //!< of marks, losses and jitter, once it is asked for

    /**
     * \param number of a stream, from 0
     * \return its random numbers; the first stream of a process takes ns-3 10 ms
     */
    Ptr<UniformRandomVariable>
    MakeRandom(int64_t number) const
    {
        auto made = CreateObject<UniformRandomVariable>();
        if (stream >= 0)
        {
            made->SetStream(stream + number);
        }
        return made;
    }

    /** \return of marks, losses and jitter */
    uint64_t
    GetSeed()
    {
        if (!seed)
        {
            seed = 0;
            const Ptr<UniformRandomVariable> chance = MakeRandom(1);
            for (int half = 0; half < 2; ++half) // the stream's numbers have 32 bits
            {
                seed = *seed << 32 | static_cast<uint64_t>(chance->GetValue() * 0x1p32);
            }
        }
        return *seed;
    }

    /** \return when the simulation is to stop after a completion, ps; INT64_MAX: not yet */
    int64_t
    GetStop() const
    {
        return stopAtCompletion && !completions.empty()
                   ? completions.front().time + std::max<int64_t>(slack, 1)
                   : INT64_MAX;
    }
};

/** What changes while one partition of a Fabric runs (fabric-partitions.h), and the tables. Plain
 * data: what is done with it stands in the parts (fabric-parts.h). */
struct FabricState
{
    static constexpr uint32_t NONE = UINT32_MAX; //!< no index

    /**
     * \param shared by all partitions
     */
    explicit FabricState(FabricTables& shared)
        : tables(shared),
          parameters(shared.parameters),
          nodes(shared.nodes),
          ports(shared.ports),
          endpoints(shared.endpoints),
          pairs(shared.pairs),
          messages(shared.messages),
          sprays(shared.sprays),
          routes(shared.routes),
          telemetry(shared.telemetry)
    {
    }

    FabricTables& tables;                              //!< shared by all partitions
    const FabricParameters& parameters;                //!< one of them
    std::vector<FabricNode>& nodes;                    //!< one of them
    std::vector<FabricPort>& ports;                    //!< one of them
    std::vector<FabricEndpoint>& endpoints;            //!< one of them
    std::vector<FabricQueuePair>& pairs;               //!< one of them
    std::vector<FabricMessage>& messages;              //!< one of them
    std::unordered_map<uint32_t, FabricSpray>& sprays; //!< one of them
    FabricRoutes& routes;                              //!< one of them
    FabricTelemetryPool& telemetry;                    //!< one of them

    std::vector<uint32_t> ownPorts;     //!< of this partition
    std::vector<uint32_t> ownEndpoints; //!< of those ports
    bool looking{false};                //!< fast-forward is on and may succeed
    bool lossy{false};                  //!< units may be lost
    FabricEventQueue events;            //!< pending
    int64_t now{0};                     //!< ps
    uint64_t currentKey{0};             //!< of the event being carried out
    uint64_t nextKey{0};                //!< counter of events
    uint64_t eventCount{0};             //!< carried out
    uint64_t draws{0};                  //!< random numbers
    uint64_t packetCount{0};            //!< data packets sent
    uint64_t liveMessages{0};           //!< not through
    std::size_t pendingBegins{0};       //!< messages whose time has not come
    std::size_t silent{0};              //!< completions that have been told already
    int64_t skippedTime{0};             //!< ps
    uint64_t jumps{0};                  //!< how often

    /** \return whether nothing is under way */
    bool
    IsIdle() const
    {
        return events.GetSize() == pendingBegins && liveMessages == pendingBegins;
    }

    /**
     * Marks and losses: the nth draw at a port is a function of the seed, the port and n (Steele,
     * Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014), so that it does not
     * matter when what has long happened at a port is looked at, and what happens at others.
     * \param port where
     * \return a random number below 1
     */
    double
    Draw(FabricPort& port)
    {
        constexpr double UNIT = 0x1p-53;
        ++draws;
        const auto number = static_cast<uint64_t>(&port - ports.data());
        return static_cast<double>(Mix(tables.GetSeed() ^ Mix(number << 40 ^ ++port.draws)) >> 11) *
               UNIT;
    }

    /**
     * When a message begins: the nth draw of a series is a function of the seed, the series and n,
     * as those of ports are, so that it does not matter in which order messages are handed over.
     * \param pair its queue pair
     * \param when ps, without jitter
     * \return ps
     */
    int64_t
    WithJitter(uint32_t pair, int64_t when)
    {
        if (parameters.sendJitter.IsZero())
        {
            return when;
        }
        FabricJitter& jitter = tables.jitter.at(pair);
        const uint64_t drawn = Mix(~tables.GetSeed() ^ Mix(Mix(jitter.series) ^ jitter.drawn++));
        const auto most = static_cast<uint64_t>(parameters.sendJitter.GetPicoSeconds());
        __extension__ using Wide = unsigned __int128;
        const auto late = static_cast<int64_t>(static_cast<Wide>(drawn) * most >> 64);
        jitter.begins = std::max(jitter.begins, when + late);
        return jitter.begins;
    }

    /**
     * \param word any
     * \return another, of which each bit depends on all of them
     */
    static constexpr uint64_t
    Mix(uint64_t word)
    {
        word += 0x9e3779b97f4a7c15U;
        word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9U;
        word = (word ^ word >> 27) * 0x94d049bb133111ebU;
        return word ^ word >> 31;
    }

    /** \return the place of a new event among those of the same time */
    uint64_t
    NextKey()
    {
        ++nextKey;
        if (parameters.tieOrder == FABRIC_RANDOM)
        {
            ++draws;
            return static_cast<uint64_t>(tables.random->GetValue() * 0x1p62) << 1 | (nextKey & 1);
        }
        return nextKey;
    }

    /**
     * \param what happens
     * \param index of what it happens to
     * \param time ps
     * \param key order among equal times
     */
    void
    Schedule(FabricWhat what, uint32_t index, int64_t time, uint64_t key)
    {
        events.Push({time, key, FabricEvent::Pack(what, index)});
    }

    /**
     * \param port a port
     * \param trafficClass a class
     * \return both in one, as the index of an event
     */
    static constexpr uint32_t
    Lane(uint32_t port, uint32_t trafficClass)
    {
        return port * FabricPort::MAX_CLASSES + trafficClass;
    }

    /**
     * \param port a port with queue pairs
     * \param trafficClass a class
     * \return its sending side for that class
     */
    FabricEndpoint&
    EndpointOf(uint32_t port, uint32_t trafficClass)
    {
        if (ports[port].endpoint == NONE)
        {
            AddEndpoint(port);
        }
        return endpoints[ports[port].endpoint + trafficClass];
    }

    /**
     * \param port a port that gets its sending side
     */
    __attribute__((noinline)) void
    AddEndpoint(uint32_t port)
    {
        const auto place = static_cast<uint32_t>(endpoints.size());
        ports[port].endpoint = place;
        endpoints.resize(place + parameters.classes);
        for (uint32_t i = 0; i < parameters.classes; ++i)
        {
            ownEndpoints.push_back(place + i);
        }
    }

    /**
     * \param pair a queue pair
     * \return the sending side that it takes turns at
     */
    FabricEndpoint&
    EndpointOf(const FabricQueuePair& pair)
    {
        return EndpointOf(pair.port, pair.trafficClass);
    }

    /**
     * \param pair a queue pair
     * \return the port by which its (first) way comes to its receiver
     */
    FabricPort&
    LastPortOf(const FabricQueuePair& pair)
    {
        return ports[routes[pair.there + pair.thereHops - 1]];
    }
};

} // namespace ns3

#endif /* FABRIC_STATE_H */
