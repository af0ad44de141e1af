/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_H
#define FABRIC_H

#include "fabric-event-source.h"
#include "fabric-node.h"
#include "fabric-parameters.h"
#include "fabric-records.h"

#include "ns3/data-rate.h"
#include "ns3/event-id.h"
#include "ns3/nstime.h"
#include "ns3/object.h"
#include "ns3/random-variable-stream.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace ns3
{

class FabricPartitions;
struct FabricParts;

/**
 * A data-centre fabric: hosts, NVSwitches, Ethernet switches, the links between them, and the queue
 * pairs that run over them. One object instead of a device, a channel and a stack a port, and its
 * own event queue instead of a Simulator event a packet (doc/fabric.rst says what it models).
 *
 * It runs under any SimulatorImpl: the earliest of its events is one Simulator event. Under
 * FabricSimulatorImpl its events are carried out directly. Both give the same result.
 *
 * Simulator time must be in picoseconds. Ports are numbered 2 l and 2 l + 1 for link l, from its
 * first end and from its second.
 */
class Fabric
    : public Object
    , public FabricEventSource
    , private FabricParameters
    , private FabricTraces
{
  public:
    using NodeKind = FabricNodeKind;             //!< what a node is
    using Completion = FabricCompletion;         //!< what happened to a message
    using PortStatistics = FabricPortStatistics; //!< what one port did
    using MessageRecord = FabricMessageRecord;   //!< a finished message
    using PortSample = FabricPortSample;         //!< what a port did for a while
    using PairSample = FabricPairSample;         //!< what a queue pair did for a while

    static constexpr NodeKind HOST = FABRIC_HOST;         //!< a GPU with its NICs
    static constexpr NodeKind NVSWITCH = FABRIC_NVSWITCH; //!< switches within a server
    static constexpr NodeKind SWITCH = FABRIC_SWITCH;     //!< Ethernet switch

    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId
    GetTypeId();
    Fabric();
    ~Fabric() override;

    /**
     * \param kind what it is
     * \return the number of the new node
     */
    uint32_t
    AddNode(NodeKind kind);

    /**
     * Adds a full-duplex link.
     * \param a one end
     * \param b other end
     * \param rate bandwidth of each direction
     * \param delay propagation
     * \param lossRate probability that the link damages a packet
     * \return its number
     */
    uint32_t
    AddLink(uint32_t a, uint32_t b, DataRate rate, Time delay, double lossRate);

    /**
     * A row of the ECN table: ports of this rate mark between kmin and kmax.
     * \param rate bits per second
     * \param kmin bytes
     * \param kmax bytes
     * \param most probability at kmax
     */
    void
    AddEcnRow(double rate, double kmin, double kmax, double most);

    /**
     * Call once, after the last AddLink() and before the first AddQueuePair(): divides buffers.
     */
    void
    Finish();

    /**
     * \param there ports of the way of the data, in order
     * \param back ports of the way of the ACKs
     * \param oneShot whether it is freed (its number used again) once all its messages are through
     * \param trafficClass of its data, 0 goes first; the last one of Classes if there are fewer
     * \return the number of the new queue pair
     */
    uint32_t
    AddQueuePair(const std::vector<uint32_t>& there,
                 const std::vector<uint32_t>& back,
                 bool oneShot,
                 uint32_t trafficClass = UINT32_MAX);

    /**
     * Another way for the data of a queue pair, before its first message: packets take its ways in
     * turn (spraying), and its receiver puts them in order.
     * \param pair the queue pair; not a one-shot one
     * \param there ports of the way, from the same first port
     */
    void
    AddWay(uint32_t pair, const std::vector<uint32_t>& there);

    /**
     * Whose draws of jitter a queue pair's messages take (SendJitter); by default its number's,
     * from the first on. A name of its own makes them independent of the order in which queue pairs
     * are added. \param pair the queue pair \param series any number \param first which of its
     * draws comes first
     */
    void
    SetJitterSeries(uint32_t pair, uint64_t series, uint64_t first);

    /**
     * Hands a message to a queue pair. Messages of a queue pair are sent one after the other.
     * \param pair the queue pair
     * \param bytes size; 0 counts as 1
     * \param when not before now, and not before an earlier message of the pair
     * \param tag comes back in the completions
     */
    void
    Send(uint32_t pair, int64_t bytes, Time when, uint64_t tag);

    /** \return what has completed since it was last cleared, in order of time */
    std::vector<Completion>&
    GetCompletions();

    /**
     * From now on the link damages packets with this probability; 1: it is down. What is on the
     * wire counts. Until Reroute() senders know nothing of it.
     * \param link its number
     * \param probability of each packet to be lost, beside its own
     */
    void
    SetLinkLoss(uint32_t link, double probability);

    /**
     * Links are known to change until then, so that no queue pair gives up before.
     * \param when the last change of those that are known
     */
    void
    ExpectChangesUntil(Time when);

    /**
     * From now on a port has another bandwidth. What it is sending ends as it began; windows stay.
     * \param port its number
     * \param rate bandwidth
     */
    void
    SetPortRate(uint32_t port, DataRate rate);

    /**
     * From now on a queue pair's packets go another way; those under way stay on the old one.
     * \param pair the queue pair; one of one way
     * \param there ports of the way of the data, from the same node
     * \param back ports of the way of the ACKs
     */
    void
    Reroute(uint32_t pair, const std::vector<uint32_t>& there, const std::vector<uint32_t>& back);

    /**
     * The same for packets that take several ways: from now on these. Who has had several keeps
     * putting packets in order, even if there is only one way left.
     * \param pair the queue pair; not a one-shot one
     * \param there ports of each way of the data, from the same node and with the same first port
     * \param back ports of the way of the ACKs
     */
    void
    RerouteWays(uint32_t pair,
                const std::vector<std::vector<uint32_t>>& there,
                const std::vector<uint32_t>& back);

    /** \return queue pairs that have given up (RetryLimit) */
    std::vector<uint32_t>
    GetGivenUp() const;

    /**
     * Looks for a circle of ports each of which is paused because its node's packets wait for the
     * next: a PFC deadlock. Costs O(units that wait).
     * \return its ports in order, or nothing
     */
    std::vector<uint32_t>
    FindDeadlock() const;

    /**
     * The largest bandwidth-delay product a queue pair may need: sets the window of all queue pairs
     * where the attribute Window is 0 and GlobalWindow is true.
     * \param bytes the product
     */
    void
    SetGlobalWindow(int64_t bytes);

    /**
     * \param ports a way
     * \param back the way back
     * \return the round-trip time in ps without queues: twice the propagation there and one full
     * data packet (without headers if IdealRttWithoutHeaders) at each hop
     */
    int64_t
    GetBaseRtt(const std::vector<uint32_t>& ports) const;

    /**
     * \param port a port
     * \return what it did so far
     */
    PortStatistics
    GetPortStatistics(uint32_t port) const;

    /**
     * \param port a port of a switch
     * \return bytes that wait there now
     */
    int64_t
    GetQueue(uint32_t port);

    /**
     * From now on samples are so far apart (attribute SampleInterval).
     * \param interval between them; not 0
     */
    void
    SetSampleInterval(Time interval);

    /** Takes a sample of what has happened since the last. */
    void
    TakeSample();

    /** \return the number of ports */
    uint32_t
    GetNPorts() const;

    /** \return events carried out so far */
    uint64_t
    GetEventCount() const;

    /** \return data packets that have left their senders so far */
    uint64_t
    GetPacketCount() const;

    /**
     * \return messages that are not through. After a run that ended by itself there are none,
     * unless what they wait for was lost.
     */
    uint64_t
    GetLiveMessages() const;

    /** \return how often it jumped over what repeats */
    uint64_t
    GetJumps() const;

    /** \return ps of simulated time that it jumped over, the sum over partitions */
    int64_t
    GetSkippedTime() const;

    /**
     * Fixes the random streams; before Finish().
     * \param stream first stream index
     * \return number of streams used
     */
    int64_t
    AssignStreams(int64_t stream);

    // FabricEventSource
    int64_t
    GetNextTime() const override;
    int64_t
    GetCurrentTime() const override;
    void
    RunUntil(int64_t limit) override;

    /**
     * Whether RunUntil() returns after the first time stamp that completed something, and calls
     * Simulator::Stop(). Otherwise it runs on for `slack` beyond that stamp.
     * \param stop whether
     * \param slack ps to run on; no event at or after stamp + slack is carried out, unless 0
     */
    void
    SetStopAtCompletion(bool stop, int64_t slack);

  protected:
    void
    DoDispose() override;

  private:
    /**
     * ns-3 looks for a member's owner by the type in the member pointer.
     * \param member of a base
     * \return the same of Fabric
     */
    template <class T, class Base>
    static constexpr T Fabric::*
    Own(T Base::*member)
    {
        return member;
    }

    /**
     * Something comes from outside.
     * \param port where
     * \return its partition, brought to the present
     */
    FabricParts&
    Touch(uint32_t port);
    void
    NoteTime() const;
    void
    Pump();
    void
    UpdatePump();

    std::unique_ptr<FabricPartitions> m_partitions; //!< state, and what works on it
    EventId m_pump;                                 //!< under another SimulatorImpl
    bool m_direct{false};                           //!< runs under FabricSimulatorImpl
    bool m_running{false};                          //!< within RunUntil()
};

} // namespace ns3

#endif /* FABRIC_H */
