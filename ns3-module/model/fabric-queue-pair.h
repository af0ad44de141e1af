/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_QUEUE_PAIR_H
#define FABRIC_QUEUE_PAIR_H

#include <cstdint>

namespace ns3
{

/** What one hop writes into a packet's telemetry when the packet leaves (HPCC, section 3.1). */
struct FabricHopTelemetry
{
    int64_t time;    //!< ps
    uint64_t sent;   //!< bytes that the port has sent so far
    uint64_t queued; //!< bytes left in its queue
    double rate;     //!< its line rate, bits per second
    uint32_t port;   //!< its number
};

/** The telemetry of one packet. */
struct FabricTelemetry
{
    static constexpr uint32_t MAX_HOPS = 8; //!< later hops write nothing
    uint32_t hops;                          //!< how many wrote
    FabricHopTelemetry hop[MAX_HOPS];       //!< in path order
};

/** What an ACK tells the congestion control of its queue pair. */
struct FabricFeedback
{
    int64_t now;                      //!< ps
    int64_t roundTrip;                //!< ps, from the sending of the last data packet it covers
    int64_t newlyAcked;               //!< bytes
    int64_t newlyMarked;              //!< bytes of those that had marks, where it is asked for
    bool marked;                      //!< congestion experienced
    uint32_t sharers;                 //!< flows that the receiver is being sent at this time
    const FabricTelemetry* telemetry; //!< what the hops wrote, or nullptr
};

/** Of a queue pair, where messages begin with jitter. */
struct FabricJitter
{
    uint64_t series; //!< whose draws these are
    uint64_t drawn;  //!< how many so far
    int64_t begins;  //!< ps, when the latest message does
};

/**
 * Both ends of a reliable connection: the sender's messages, window and rate, and the receiver's
 * next expected byte. A RoCEv2 queue pair without opcodes. Plain data.
 */
struct FabricQueuePair
{
    static constexpr uint32_t NONE = UINT32_MAX; //!< no message, no place

    uint32_t index;        //!< its number in the Fabric
    uint32_t port;         //!< the first port of the way there
    uint32_t there;        //!< the way there: place in the table of routes
    uint32_t back;         //!< the way of its ACKs
    uint32_t thereHops;    //!< ports on the way there
    uint32_t backHops;     //!< and back
    uint32_t ways;         //!< ways there that its packets take in turn
    uint32_t trafficClass; //!< of its data
    uint32_t turn;         //!< which is next
    int64_t lastSent;      //!< ps, its last packet (flowlets)
    double lineRate;       //!< bits per second of the first port
    double bottleneck;     //!< of the slowest port on the way
    int64_t baseRtt;       //!< ps without queues: propagation and one full packet at each hop
    int64_t fullWindow;    //!< bytes, before congestion control

    int64_t written;    //!< offset behind the last message
    int64_t next;       //!< offset of the next byte to send
    int64_t highest;    //!< largest `next` so far
    int64_t acked;      //!< all before it has arrived
    int64_t repairNext; //!< offset of what is to be sent again
    int64_t repairEnd;  //!< and where that ends; nothing if not larger
    int64_t requested;  //!< offset behind the last packet that asked for an ACK
    int64_t window;     //!< bytes under way at which it stops
    double rate;        //!< pacing, bits per second
    int64_t available;  //!< ps, pacing lets it send again
    int64_t timer;      //!< ps, when congestion control wants to be asked

    int64_t expected;     //!< receiver: the next byte in order
    int64_t nackTime;     //!< receiver: ps, last NACK, or -1
    int64_t nackOffset;   //!< receiver: what it asked for
    uint32_t unconfirmed; //!< receiver: packets since the last ACK
    uint32_t markedBytes; //!< receiver: of those that were marked
    bool marked;          //!< receiver: one of those was marked

    uint32_t oldest;    //!< message: not yet acknowledged
    uint32_t sending;   //!< message: holds `next`
    uint32_t receiving; //!< message: holds `expected`
    uint32_t newest;    //!< message: the last one
    uint32_t slot;      //!< place in the round robin of its port, or NONE
    uint32_t underWay;  //!< units in the network
    int64_t progress;   //!< ps, last time that `acked` grew
    int64_t shift;      //!< bytes, while a jump is being made
    bool oneShot;       //!< freed when its messages are through
    bool retired;       //!< through; freed when nothing is under way
    uint32_t retries;   //!< timeouts since `acked` last grew
    bool gaveUp;        //!< too many of them
    bool expiryPending; //!< a retransmission timer is set
};

} // namespace ns3

#endif /* FABRIC_QUEUE_PAIR_H */
