/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_PARAMETERS_H
#define FABRIC_PARAMETERS_H

#include "fabric-congestion-control.h"
#include "fabric-unit.h"

#include "ns3/nstime.h"
#include "ns3/ptr.h"

#include <algorithm>
#include <cstdint>

namespace ns3
{

/**
 * \param bytes a number of bytes that a factor made
 * \return the whole ones, at most as many as sums can take: more is no bound for any queue
 */
inline int64_t
WholeBytes(double bytes)
{
    return static_cast<int64_t>(std::min(bytes, 1e18));
}

/** In which order simultaneous events happen. */
enum FabricTieOrder
{
    FABRIC_SCHEDULED, //!< first scheduled, first run, as ns-3 does
    FABRIC_RANDOM     //!< drawn from the random stream, for runs over tie orders
};

/** How the transmission time of a unit is made a number. */
enum FabricRounding
{
    FABRIC_UP_TO_PICOSECOND,  //!< exact
    FABRIC_DOWN_TO_NANOSECOND //!< as a simulation with ns-3's default resolution has it
};

/** What is sent again after a loss. */
enum FabricRecovery
{
    FABRIC_GO_BACK_N,       //!< all from the missing byte on
    FABRIC_GO_BACK_TO_ZERO, //!< all from the start of the chunk that misses one
    FABRIC_SELECTIVE_REPEAT //!< what is missing
};

/** How a queue pair with several ways chooses among them. */
enum FabricWayChoice
{
    FABRIC_SPRAY,   //!< each packet the next one
    FABRIC_FLOWLET, //!< the next one after a gap
    FABRIC_ADAPTIVE //!< each packet the one with the shortest queues
};

/** The attributes of a Fabric, as fabric-attributes.cc explains them. */
struct FabricParameters
{
    // Packets
    uint32_t payload{};        //!< data bytes of a full packet
    uint32_t header{};         //!< bytes a data packet adds
    uint32_t ackSize{};        //!< bytes of an ACK
    uint32_t train{};          //!< longest train
    bool cutThrough{};         //!< switches forward as soon as the header is there
    Time processing;           //!< of a switch
    FabricRounding rounding{}; //!< of transmission times
    FabricTieOrder tieOrder{}; //!< of simultaneous events

    // Queue pairs
    uint32_t ackInterval{};               //!< packets an ACK confirms
    bool waitForAck{};                    //!< delivered when the sender knows
    int64_t window{};                     //!< bytes, 0: automatic
    double windowFactor{};                //!< of the automatic window
    bool pacing{};                        //!< rates are kept to
    Time sendJitter;                      //!< messages begin later by a draw below it
    bool ackPriority{};                   //!< ACKs are not held up by PFC at hosts
    bool ackFirst{};                      //!< ACKs go before data of their class
    uint32_t classes{};                   //!< traffic classes
    uint32_t ackClass{};                  //!< of ACKs
    bool scanOrder{};                     //!< finished queue pairs leave the round robin when met
    FabricRecovery recovery{};            //!< after a loss
    uint64_t recoveryChunk{};             //!< bytes that go-back-to-zero confirms at once
    FabricWayChoice wayChoice{};          //!< of queue pairs with several ways
    Time flowletGap;                      //!< after which a flowlet may take another way
    Time stormTime;                       //!< a longer pause counts as a storm
    Time retransmit;                      //!< timeout
    uint32_t retryLimit{};                //!< timeouts in a row
    Time nackInterval;                    //!< between NACKs for one byte
    Ptr<FabricCongestionControl> control; //!< of all queue pairs

    // Buffers
    uint64_t buffer{};          //!< bytes of a switch
    uint64_t portReserve{};     //!< bytes of a switch port
    uint32_t headroomPackets{}; //!< of a switch port
    bool pfc{};                 //!< lossless
    bool nvswitchFlow{};        //!< NVSwitches hold their GPUs up too
    uint64_t nvlinkCredits{};   //!< bytes of an NVLink, 0: as ports of switches
    double pfcAlpha{};          //!< share of the free buffer at which a pause is sent
    bool pfcAlphaByRate{};      //!< fast ports have more of it
    bool dynamicThreshold{};    //!< it is a share; otherwise pfcThreshold
    uint64_t pfcThreshold{};    //!< bytes, 0: an equal part of the shared buffer
    uint64_t resumeOffset{};    //!< bytes below the threshold

    // Marks
    bool ecn{};                //!< switches mark
    bool deterministicMarks{}; //!< no dice
    double kminFactor{};       //!< bytes per Gbps where no table row fits
    double kmaxFactor{};       //!< bytes per Gbps
    double pmax{};             //!< probability

    double lossRate{};   //!< of every link
    bool fastForward{};  //!< jumps over what repeats
    Time sampleInterval; //!< 0: there are no samples

    /** \return whether some units go before others that were there first */
    bool
    OneMayOvertake() const
    {
        return classes > 1 || ackFirst;
    }

    /**
     * \param unit a unit
     * \return its place in the order of those that wait for a port; equal ones go as they came
     */
    uint32_t
    RankOf(const FabricUnit& unit) const
    {
        const bool first = ackFirst && (unit.flags & FabricUnit::ACK) != 0;
        return 2U * unit.trafficClass + (first ? 0 : 1);
    }

    /** \return the greatest RankOf(): what has it goes before nothing */
    uint32_t
    LastRank() const
    {
        return 2U * classes - 1;
    }
};

} // namespace ns3

#endif /* FABRIC_PARAMETERS_H */
