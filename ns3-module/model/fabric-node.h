/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_NODE_H
#define FABRIC_NODE_H

#include "fabric-records.h"
#include "fabric-unit.h"

#include <array>
#include <cstdint>
#include <vector>

namespace ns3
{

/** What a node is. */
enum FabricNodeKind : uint8_t
{
    FABRIC_HOST,     //!< a GPU with its NICs: sends and receives, and forwards for others
    FABRIC_NVSWITCH, //!< switches within a server; may also send and receive (NVLS)
    FABRIC_SWITCH    //!< Ethernet switch: shared buffer, ECN, PFC
};

/** What a port keeps for each traffic class: its queue here, and what came by the port and is still
 * in the node that it leads to. */
struct FabricLane
{
    int64_t queued{0};      //!< bytes that wait here
    int64_t held{0};        //!< bytes in the buffer of `to` that came by this port
    int64_t heldAtPause{0}; //!< `held` when the pause was sent
    int64_t pausedSince{0}; //!< ps
    double markDebt{0};     //!< deterministic marking
};

/** Buffer and marking of a node. */
struct FabricNode
{
    FabricNodeKind kind;         //!< what it is
    bool finite;                 //!< has a buffer that is accounted for
    bool marks;                  //!< marks packets
    bool pauses;                 //!< sends PFC frames
    bool accounts;               //!< knows its queues, for any of these or for telemetry
    uint32_t pausing;            //!< classes of ingress ports that it holds up
    int64_t granule;             //!< bytes of a unit that must be there before it is sent on
    int64_t shared;              //!< bytes of the shared buffer
    int64_t sharedUsed;          //!< bytes of it in use
    int64_t held;                //!< bytes in all of the buffer
    std::vector<uint32_t> ports; //!< that leave it
};

/** One direction of a link: the queue before it, what is on the wire, and its share of the buffer
 * of the node that it leads to. */
struct FabricPort
{
    static constexpr uint32_t MAX_CLASSES = 8; //!< as PFC has them (IEEE 802.1Qbb)

    FabricRing ring;       //!< on the wire, then in the queue, in the order in which they go
    int64_t freeAt{0};     //!< ps, all that is timed has been sent
    int64_t sourceFree{0}; //!< ps, its node may send the next unit of its own
    int64_t delay{0};      //!< ps
    double psPerByte{0};   //!< transmission
    int64_t startedEnd{0}; //!< ps, end of the last one that has started
    uint32_t started{0};   //!< units of the ring whose first bit has left, as far as looked at
    uint32_t timed{0};     //!< units of the ring with times; others start at their `start` or later
    uint32_t ahead{0};     //!< units of the ring up to the last one that is not of the last rank
    uint32_t from{0};      //!< node
    uint32_t to{0};        //!< node
    uint32_t receiving{0}; //!< queue pairs whose data are on their way, by it last
    uint32_t endpoint{UINT32_MAX};       //!< its FabricEndpoint
    uint64_t arriveKey{0};               //!< key of the pending ARRIVE
    uint64_t pullKey{0};                 //!< reserved for PULL
    uint64_t wakeKey{0};                 //!< key of the pending WAKE
    std::array<uint32_t, 3> knownSize{}; //!< sizes whose transmission time is known
    std::array<int64_t, 3> knownTime{};  //!< those times
    uint8_t paused{0};                   //!< bit by class: told to stop
    uint8_t holding{0};                  //!< bit by class: `to` has sent a pause for this port
    bool arrivePending{false};
    bool pullPending{false};
    bool departPending{false};
    // NVLinks: credits.
    int64_t credits{0};             //!< bytes; 0: it has none and needs none
    int64_t owed{0};                //!< bytes that are to be sent or lie in the buffer of `to`
    bool stalled{false};            //!< it waits for credits
    bool creditPending{false};      //!< they are on their way
    double ownLoss{0};              //!< of the link
    double lossRate{0};             //!< the same and that of a failure
    uint32_t finishing{UINT32_MAX}; //!< message whose last bit leaves at finishTime
    int64_t finishTime{0};          //!< ps
    uint64_t rate{0};               //!< bandwidth, bits per second
    FabricPortStatistics statistics{};
    // Switches with a buffer: the queue here, and what came by this port and is still in `to`.
    int64_t queued{0};        //!< bytes that wait here
    int64_t headroom{0};      //!< bytes of `to` that are kept for what comes after a pause
    int64_t reserve{0};       //!< bytes of `to` that are this port's own, by class
    int64_t kmin{0};          //!< bytes
    int64_t kmax{0};          //!< bytes
    double pmax{0};           //!< probability at kmax
    uint64_t draws{0};        //!< random numbers of its marks and losses
    double thresholdShare{0}; //!< of the free shared buffer, at which `to` sends a pause
    std::array<FabricLane, MAX_CLASSES> lanes{}; //!< by class

    /**
     * \param trafficClass a class
     * \return whether it was told to stop
     */
    bool
    IsPaused(uint32_t trafficClass) const
    {
        return (paused >> trafficClass & 1) != 0;
    }
};

} // namespace ns3

#endif /* FABRIC_NODE_H */
