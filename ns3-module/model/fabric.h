/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_H
#define FABRIC_H

#include "fabric-congestion-control.h"
#include "fabric-event-queue.h"
#include "fabric-event-source.h"
#include "fabric-queue-pair.h"
#include "fabric-unit.h"

#include "ns3/data-rate.h"
#include "ns3/event-id.h"
#include "ns3/nstime.h"
#include "ns3/object.h"
#include "ns3/random-variable-stream.h"
#include "ns3/traced-callback.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ns3
{

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
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId
    GetTypeId();
    Fabric();
    ~Fabric() override;

    /** What a node is. */
    enum NodeKind : uint8_t
    {
        HOST,     //!< a GPU with its NICs: sends and receives, and forwards for others
        NVSWITCH, //!< switches within a server; may also send and receive (NVLS)
        SWITCH    //!< Ethernet switch: shared buffer, ECN, PFC
    };

    /** In which order simultaneous events happen. */
    enum TieOrder
    {
        SCHEDULED, //!< first scheduled, first run, as ns-3 does
        RANDOM     //!< drawn from the random stream, for runs over tie orders
    };

    /** How the transmission time of a unit is made a number. */
    enum Rounding
    {
        UP_TO_PICOSECOND,  //!< exact
        DOWN_TO_NANOSECOND //!< as a simulation with ns-3's default resolution has it
    };

    /** What happened to a message. */
    struct Completion
    {
        int64_t time;   //!< ps
        uint64_t tag;   //!< of Send()
        bool delivered; //!< otherwise: its last bit has left the sender
    };

    /** What one port did. */
    struct PortStatistics
    {
        uint64_t bytes;     //!< sent, headers included
        uint64_t units;     //!< sent
        uint64_t maxQueue;  //!< bytes, largest queue seen (switches with a buffer)
        uint64_t marks;     //!< packets marked
        uint64_t drops;     //!< units dropped in front of it, or damaged on its link
        uint64_t pauses;    //!< how often it was paused
        int64_t pausedTime; //!< ps, time it was paused
    };

    /** A finished message of a queue pair, for the trace source. */
    struct MessageRecord
    {
        uint64_t tag;  //!< of Send()
        uint32_t pair; //!< queue pair
        int64_t bytes; //!< data
        int64_t start; //!< ps, when it could first be sent
        int64_t end;   //!< ps, delivered
    };

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
     * Call once, after the last AddLink() and before the first AddQueuePair(): divides buffers.
     */
    void
    Finish();

    /**
     * \param there ports of the way of the data, in order
     * \param back ports of the way of the ACKs
     * \param oneShot whether it is freed (its number used again) once all its messages are through
     * \return the number of the new queue pair
     */
    uint32_t
    AddQueuePair(const std::vector<uint32_t>& there,
                 const std::vector<uint32_t>& back,
                 bool oneShot);

    /**
     * Another way for the data of a queue pair, before its first message: packets take its ways in
     * turn (spraying), and its receiver puts them in order.
     * \param pair the queue pair; not a one-shot one
     * \param there ports of the way, from the same first port
     */
    void
    AddWay(uint32_t pair, const std::vector<uint32_t>& there);

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
    GetCompletions()
    {
        return m_completions;
    }

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

    /** \return the number of ports */
    uint32_t
    GetNPorts() const;

    /** \return events carried out so far */
    uint64_t
    GetEventCount() const
    {
        return m_eventCount;
    }

    /** \return data packets that have left their senders so far */
    uint64_t
    GetPacketCount() const
    {
        return m_packetCount;
    }

    /**
     * \return messages that are not through. After a run that ended by itself there are none,
     * unless what they wait for was lost.
     */
    uint64_t
    GetLiveMessages() const
    {
        return m_liveMessages;
    }

    /** \return how often it jumped over what repeats */
    uint64_t
    GetJumps() const
    {
        return m_jumps;
    }

    /** \return ps of simulated time that it jumped over */
    int64_t
    GetSkippedTime() const
    {
        return m_skippedTime;
    }

    /**
     * Fixes the random streams.
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
    static constexpr uint32_t NONE = UINT32_MAX; //!< no index

    /** Kinds of FabricEvent. */
    enum What : uint32_t
    {
        ARRIVE, //!< port: its oldest unit reaches the other end
        PULL,   //!< port: may send the next unit
        WAKE,   //!< port: pacing lets a queue pair send
        BEGIN,  //!< message: its time has come
        PAUSE,  //!< port: told to stop
        RESUME, //!< port: told to go on
        DEPART, //!< port: a unit starts (asked for only where a pause depends on it)
        EXPIRE  //!< queue pair: retransmission timer
    };

    /** Buffer and marking of a node. */
    struct Node
    {
        NodeKind kind;               //!< what it is
        bool finite;                 //!< has a buffer that is accounted for
        bool marks;                  //!< marks packets
        bool pauses;                 //!< sends PFC frames
        uint32_t pausing;            //!< ingress ports that it holds up
        int64_t granule;             //!< bytes of a unit that must be there before it is sent on
        int64_t shared;              //!< bytes of the shared buffer
        int64_t sharedUsed;          //!< bytes of it in use
        uint32_t receiving;          //!< queue pairs with data on its way to it
        std::vector<uint32_t> ports; //!< that leave it
    };

    /** The sending side of a port that has queue pairs. */
    struct Endpoint
    {
        FabricRing control;             //!< ACKs and forwarded units: they go first
        std::vector<uint32_t> pairs;    //!< round robin, NONE where one has left
        std::vector<uint64_t> eligible; //!< bit by place in `pairs`
        uint32_t eligibleCount{0};      //!< bits set
        uint32_t finished{0};           //!< pairs to be dropped from the list
        uint32_t last{0};               //!< place served last
        int64_t wake{INT64_MAX};        //!< ps, pending WAKE
    };

    /** One direction of a link. */
    struct Port
    {
        FabricRing ring;       //!< in the queue and on the wire
        int64_t freeAt{0};     //!< ps, all that is in the ring has been sent
        int64_t delay{0};      //!< ps
        double psPerByte{0};   //!< transmission
        int64_t startedEnd{0}; //!< ps, end of the last one that has started
        uint32_t started{0};   //!< units of the ring whose first bit has left, as far as looked at
        uint32_t from{0};      //!< node
        uint32_t to{0};        //!< node
        uint32_t endpoint{UINT32_MAX};       //!< its Endpoint
        uint64_t arriveKey{0};               //!< key of the pending ARRIVE
        uint64_t pullKey{0};                 //!< reserved for PULL
        uint64_t wakeKey{0};                 //!< key of the pending WAKE
        std::array<uint32_t, 2> knownSize{}; //!< sizes whose transmission time is known
        std::array<int64_t, 2> knownTime{};  //!< those times
        bool paused{false};
        bool arrivePending{false};
        bool pullPending{false};
        bool departPending{false};
        // Switches with a buffer: the queue here, and what came by this port and is still in `to`.
        bool holding{false};      //!< `to` has sent a pause for this port
        int64_t queued{0};        //!< bytes that wait here
        int64_t held{0};          //!< bytes in the buffer of `to` that came by this port
        int64_t heldAtPause{0};   //!< `held` when the pause was sent
        int64_t headroom{0};      //!< bytes of `to` that are kept for what comes after the pause
        int64_t reserve{0};       //!< bytes of `to` that are this port's own
        int64_t kmin{0};          //!< bytes
        int64_t kmax{0};          //!< bytes
        double pmax{0};           //!< probability at kmax
        double markDebt{0};       //!< deterministic marking
        double thresholdShare{0}; //!< of the free shared buffer, at which `to` sends a pause
        double lossRate{0};       //!< of the link
        int64_t pausedSince{0};   //!< ps
        uint32_t finishing{UINT32_MAX}; //!< message whose last bit leaves at finishTime
        int64_t finishTime{0};          //!< ps
        DataRate rate;                  //!< bandwidth
        PortStatistics statistics{};
    };

    /** A message under way. */
    struct Message
    {
        int64_t begin;    //!< offset of its first byte
        int64_t end;      //!< offset behind its last byte
        int64_t when;     //!< ps, start
        uint64_t tag;     //!< of Send()
        uint32_t pair;    //!< queue pair
        uint32_t next;    //!< of the queue pair, or of the free list
        uint32_t ordinal; //!< in the episode that is recorded
        bool sent;        //!< reported
        bool delivered;   //!< reported
        bool acked;       //!< the sender knows that all has arrived
    };

    // fabric.cc: clock and construction
    double
    Draw();
    void
    Schedule(What what, uint32_t index, int64_t time, uint64_t key);
    uint64_t
    NextKey();
    void
    Dispatch(const FabricEvent& event);
    void
    Pump();
    void
    UpdatePump();
    uint32_t
    AllocateRoute(const std::vector<uint32_t>& ports);
    void
    FreeRoute(uint32_t route, uint32_t hops);
    void
    Complete(uint64_t tag, bool delivered);

    // fabric-port.cc: transmission
    int64_t
    TransmissionTime(Port& port, uint32_t bytes) const;
    int64_t
    HeadTime(Port& port, const FabricUnit& unit) const;
    void
    Arrive(uint32_t index, uint64_t key);
    void
    Enqueue(uint32_t index, const FabricUnit& unit);
    void
    Transmit(uint32_t index, const FabricUnit& unit);
    void
    ArmArrival(uint32_t index);
    void
    Settle(uint32_t index);
    void
    StartNext(uint32_t index);
    void
    Pause(uint32_t index);
    void
    Resume(uint32_t index);
    void
    Depart(uint32_t index);
    void
    Drop(uint32_t index, const FabricUnit& unit);
    void
    Watch(uint32_t node);

    // fabric-buffer.cc: shared buffers, PFC, ECN
    bool
    Admit(uint32_t egress, const FabricUnit& unit);
    void
    Release(uint32_t egress, FabricUnit& unit);
    void
    Mark(Port& port, FabricUnit& unit);
    void
    SettleNode(uint32_t node);
    void
    SendPause(uint32_t port, bool pause);
    int64_t
    Threshold(const Port& port) const;
    void
    Hold(Port& port, int64_t bytes);

    // fabric-queue-pair.cc, fabric-send.cc, fabric-receive.cc: transport
    Endpoint&
    EndpointOf(uint32_t port);
    void
    SetFullWindow(FabricQueuePair& pair);
    void
    Begin(uint32_t message);
    void
    Pull(uint32_t index);
    void
    Wake(uint32_t index);
    void
    Kick(uint32_t index);
    void
    EnsurePull(uint32_t index);
    void
    Forward(uint32_t index, const FabricUnit& unit);
    uint32_t
    Choose(uint32_t index, Endpoint& endpoint);
    void
    DropFinished(Endpoint& endpoint, uint32_t from, uint32_t& chosen);
    uint32_t
    TrainLength(const FabricQueuePair& pair, int64_t left) const;
    void
    SendData(uint32_t index, FabricQueuePair& pair);
    bool
    IsWindowSmall(const FabricQueuePair& pair) const;
    void
    UpdateEligible(FabricQueuePair& pair);
    static void
    SetEligible(Endpoint& endpoint, uint32_t slot, bool eligible);
    uint32_t
    AllocateTelemetry();
    void
    Discard(const FabricUnit& unit);
    void
    Receive(const FabricUnit& unit);
    bool
    ReceiveData(FabricQueuePair& pair, const FabricUnit& unit);
    bool
    ReceiveEarly(FabricQueuePair& pair, const FabricUnit& unit);
    bool
    CatchUp(FabricQueuePair& pair);
    bool
    SendAck(FabricQueuePair& pair, const FabricUnit& cause, uint8_t flags);
    void
    ReceiveAck(FabricQueuePair& pair, const FabricUnit& unit);
    void
    GoBack(FabricQueuePair& pair, int64_t offset);
    void
    Note(uint32_t place, bool delivered);
    void
    Deliver(uint32_t place);
    void
    FreeIfThrough(uint32_t place);
    void
    Retire(FabricQueuePair& pair);
    void
    FreeIfIdle(FabricQueuePair& pair);
    void
    ArmExpiry(FabricQueuePair& pair);
    void
    Expire(uint32_t index);

    // fabric-fast-forward.cc
    void
    ForgetState();
    bool
    SaveUnit(const FabricUnit& unit);
    bool
    SavePair(const FabricQueuePair& pair);
    bool
    SaveState();
    bool
    IsArrivalPending(const FabricEvent& event) const;
    void
    Look(int64_t limit);
    int64_t
    LargestJump(int64_t limit) const;
    void
    Jump(int64_t periods);

    // fabric-episode.cc
    /** Whose turn it is at an endpoint when nothing is under way. */
    struct Turn
    {
        uint32_t size;     //!< of the round robin
        uint32_t last;     //!< place served last
        uint32_t finished; //!< places of queue pairs that have left

        /** \return whether both are the same */
        bool
        operator==(const Turn& other) const
        {
            return size == other.size && last == other.last && finished == other.finished;
        }
    };

    /** A message that starts in an episode. */
    struct Opening
    {
        int64_t time;               //!< ps, after the first
        int64_t bytes;              //!< size
        int64_t window;             //!< of its queue pair
        double rate;                //!< of its queue pair
        uint32_t pair;              //!< its queue pair, NONE if that is its own
        uint32_t slot;              //!< of that in the round robin
        std::vector<uint32_t> ways; //!< there and back, if the queue pair is its own

        /** \return whether both are the same */
        bool
        operator==(const Opening& other) const
        {
            return time == other.time && bytes == other.bytes && window == other.window &&
                   rate == other.rate && pair == other.pair && slot == other.slot &&
                   ways == other.ways;
        }
    };

    /** What happened to a message of an episode. */
    struct EpisodeCompletion
    {
        int64_t time;     //!< ps, after the start
        uint32_t ordinal; //!< which message
        bool delivered;   //!< otherwise: sent
    };

    /** What a port carried in an episode. */
    struct EpisodeCarried
    {
        uint32_t port;  //!< number
        uint64_t bytes; //!< sent
        uint64_t units; //!< sent
    };

    /** From one idle moment to the next. */
    struct Episode
    {
        std::vector<Turn> before;                   //!< at its start
        std::vector<Turn> after;                    //!< at its end
        std::vector<Opening> openings;              //!< in order
        std::vector<EpisodeCompletion> completions; //!< in order
        std::vector<EpisodeCarried> carried;        //!< ports that carried something
        uint64_t hash{0};                           //!< of `before` and the first opening
        uint64_t key{0};                            //!< keys drawn
        uint64_t draws{0};                          //!< m_draws at its start
        uint64_t packets{0};                        //!< sent
        int64_t start{0};                           //!< ps
        int64_t end{0};                             //!< ps, last event after the start
    };

    bool
    IsIdle() const;
    void
    DescribeBegin(const Message& message, int64_t time, Opening& opening) const;
    uint64_t
    SaveTurns(std::vector<Turn>& turns) const;
    void
    OpenEpisode(int64_t limit);
    void
    RecordBegin(uint32_t place);
    void
    CloseEpisode();
    bool
    Repeat(const Episode& episode, int64_t limit);

    static constexpr std::size_t MOST_OPENINGS = 1 << 20; //!< kept of all episodes

    /** Offsets of a queue pair at a look. */
    struct PairState
    {
        uint32_t index;   //!< queue pair
        int64_t next;     //!< bytes
        int64_t acked;    //!< bytes
        int64_t expected; //!< bytes
    };

    /** What grows from one look to the next. */
    struct State
    {
        int64_t time{0};                   //!< ps
        uint64_t key{0};                   //!< m_nextKey
        uint64_t draws{0};                 //!< random numbers drawn
        uint64_t packets{0};               //!< m_packetCount
        int64_t nextBegin{0};              //!< ps, earliest start of a message
        std::vector<PairState> pairs;      //!< with messages under way
        std::vector<PortStatistics> ports; //!< of all; of an earlier look only
    };

    /** Brent's search: the state to compare with, and when to take another. */
    struct Looks
    {
        bool have{false};           //!< there is one
        uint64_t since{0};          //!< looks since it was taken
        uint64_t distance{1};       //!< after so many another is taken
        uint64_t nextEvent{0};      //!< no look before this event
        uint64_t patience{1};       //!< looks in vain since the last jump, at most 16
        uint32_t reference{NONE};   //!< looks follow a packet of this queue pair
        bool due{false};            //!< it has just sent one
        std::vector<int64_t> state; //!< relative to its time
        State mark;                 //!< the rest
    };

    std::vector<Node> m_nodes;            //!< by number
    std::vector<Port> m_ports;            //!< by number
    std::vector<Endpoint> m_endpoints;    //!< of ports that send or receive
    std::vector<FabricQueuePair> m_pairs; //!< by number
    std::vector<uint32_t> m_freePairs;    //!< numbers to use again
    std::vector<Message> m_messages;      //!< pool
    /** Of a queue pair whose packets take several ways. */
    struct Spray
    {
        std::vector<uint32_t> ways;       //!< places in the table of routes
        std::map<int64_t, int64_t> early; //!< begin and end of what came out of order
    };

    std::unordered_map<uint32_t, Spray> m_sprays;    //!< by queue pair
    uint32_t m_freeMessage{UINT32_MAX};              //!< first of the free list
    std::vector<uint32_t> m_routes;                  //!< ports; each way ends with END_OF_ROUTE
    std::vector<std::vector<uint32_t>> m_freeRoutes; //!< places by number of hops
    std::vector<FabricTelemetry> m_telemetry;        //!< pool
    std::vector<uint32_t> m_freeTelemetry;           //!< places to use again
    std::vector<Completion> m_completions;           //!< not yet fetched

    FabricEventQueue m_events;              //!< pending
    int64_t m_now{0};                       //!< ps
    uint64_t m_currentKey{0};               //!< of the event being carried out
    uint64_t m_nextKey{0};                  //!< counter of SCHEDULED
    uint64_t m_eventCount{0};               //!< carried out
    uint64_t m_draws{0};                    //!< random numbers
    std::vector<int64_t> m_state;           //!< of the present look
    State m_mark;                           //!< of the present look
    std::vector<FabricEvent> m_pending;     //!< of the present look, but for starts of messages
    Looks m_looks;                          //!< earlier looks
    std::unique_ptr<Episode> m_recording;   //!< the present one, if it is to be kept
    std::vector<PortStatistics> m_recorded; //!< at its start
    std::unordered_map<uint64_t, std::vector<std::unique_ptr<Episode>>> m_episodes; //!< by hash
    std::size_t m_episodeOpenings{0}; //!< of all of them
    std::vector<Turn> m_turns;        //!< reused
    Opening m_opening;                //!< reused
    std::size_t m_pendingBegins{0};   //!< messages whose time has not come
    int64_t m_skippedTime{0};         //!< ps
    uint64_t m_jumps{0};              //!< how often
    uint64_t m_packetCount{0};        //!< data packets sent
    uint64_t m_liveMessages{0};       //!< not through
    EventId m_pump;                   //!< under another SimulatorImpl
    bool m_direct{false};             //!< runs under FabricSimulatorImpl
    bool m_running{false};            //!< within RunUntil()
    bool m_stopAtCompletion{false};   //!< see SetStopAtCompletion()
    int64_t m_slack{0};               //!< see SetStopAtCompletion()

    // Attributes
    uint32_t m_payload;                     //!< data bytes of a full packet
    uint32_t m_header;                      //!< bytes a data packet adds
    uint32_t m_ackSize;                     //!< bytes of an ACK
    uint32_t m_ackInterval;                 //!< packets an ACK confirms
    bool m_waitForAck;                      //!< delivered when the sender knows
    int64_t m_window;                       //!< bytes, 0: automatic
    double m_windowFactor;                  //!< of the automatic window
    int64_t m_globalWindow{0};              //!< bytes, see SetGlobalWindow()
    uint32_t m_train;                       //!< longest train
    bool m_cutThrough;                      //!< switches forward as soon as the header is there
    Time m_processing;                      //!< of a switch
    Rounding m_rounding;                    //!< of transmission times
    TieOrder m_tieOrder;                    //!< see TieOrder
    bool m_ackPriority;                     //!< ACKs are not held up by PFC at hosts
    bool m_scanOrder;                       //!< finished queue pairs leave the round robin when met
    uint64_t m_buffer;                      //!< bytes of a switch
    uint64_t m_portReserve;                 //!< bytes of a switch port
    uint32_t m_headroomPackets;             //!< of a switch port
    bool m_pfc;                             //!< lossless
    bool m_nvswitchFlow;                    //!< NVSwitches hold their GPUs up too
    double m_pfcAlpha;                      //!< share of the free buffer at which a pause is sent
    uint64_t m_resumeOffset;                //!< bytes below the threshold
    bool m_fastForward;                     //!< jumps over what repeats
    bool m_ecn;                             //!< switches mark
    bool m_deterministicMarks;              //!< no dice
    double m_kminFactor;                    //!< kB per 25 Gbps where no table row fits
    double m_kmaxFactor;                    //!< kB per 25 Gbps
    double m_pmax;                          //!< probability
    bool m_pacing;                          //!< rates are kept to
    double m_lossRate;                      //!< of every link
    Time m_retransmit;                      //!< timeout
    Time m_nackInterval;                    //!< between NACKs for one byte
    Ptr<FabricCongestionControl> m_control; //!< of all queue pairs
    uint32_t m_needs{0};                    //!< of m_control
    bool m_controlled{false};               //!< m_control is more than the base class
    bool m_looking{false};                  //!< fast-forward is on and may succeed
    bool m_lossy{false};                    //!< units may be lost
    Ptr<UniformRandomVariable> m_random;    //!< marks, losses and tie order

    TracedCallback<const MessageRecord&> m_messageTrace;            //!< delivered
    TracedCallback<int64_t, uint32_t, uint32_t, bool> m_pauseTrace; //!< PFC
    TracedCallback<int64_t, uint32_t, uint32_t> m_dropTrace;        //!< losses

    std::vector<std::array<double, 4>> m_ecnTable; //!< rate, kmin, kmax, pmax

  public:
    /**
     * A row of the ECN table: ports of this rate mark between kmin and kmax.
     * \param rate bits per second
     * \param kmin bytes
     * \param kmax bytes
     * \param pmax probability at kmax
     */
    void
    AddEcnRow(double rate, double kmin, double kmax, double pmax);
    static constexpr uint32_t END_OF_ROUTE = UINT32_MAX; //!< the unit is where it goes
};

} // namespace ns3

#endif /* FABRIC_H */
