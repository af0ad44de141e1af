/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_CONNECTIONS_H
#define FABRIC_CONNECTIONS_H

#include "topologies/routing.h"

#include "ns3/fabric.h"

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

/**
 * The connections of a job: between which nodes, over which ports, by which queue pairs. Ways are
 * those of lockstep::Router, so the same ECMP draws as in the flow engine.
 */
class FabricConnections
{
  public:
    /** Who a message is from and to, as SimAI's records name it. */
    struct Endpoints
    {
        int32_t source;      //!< node
        int32_t destination; //!< node
        uint16_t sourcePort; //!< UDP
        int32_t channel;     //!< of the collective
        uint32_t lane;       //!< which of the connection's queue pairs
        uint32_t port;       //!< the first one of its way in the whole network
    };

    /** What one queue pair gets of a message. */
    struct Part
    {
        uint32_t pair; //!< the queue pair
        int64_t bytes; //!< how much
    };

    /**
     * \param topology the network; must outlive this object
     * \param options how ways are chosen
     * \param fabric where the queue pairs are made
     * \param freshPorts a source port and a queue pair a message instead of one a connection
     */
    FabricConnections(const lockstep::Topology& topology,
                      const lockstep::RouteOptions& options,
                      ns3::Ptr<ns3::Fabric> fabric,
                      bool freshPorts);

    /**
     * Makes the next connection.
     * \param source node
     * \param destination node
     * \param channel of the collective
     * \param trafficClass of its data, or -1: that of those that are given none
     */
    void
    Connect(int32_t source, int32_t destination, int32_t channel, int32_t trafficClass);

    /**
     * Cuts the next message of a connection into parts for its queue pairs: with fresh ports a new
     * one, otherwise one for each port at which its ways begin. Parts are of equal size, as many as
     * the message has packets but at most one a queue pair, which take turns where there are fewer.
     * \param connection its number, in the order of Connect()
     * \param bytes of the message
     * \return the parts, until the next call
     */
    const std::vector<Part>&
    TakeParts(uint32_t connection, int64_t bytes);

    /**
     * \param connection its number, after its first TakeParts()
     * \return whether it has several queue pairs
     */
    bool
    HasLanes(uint32_t connection) const;

    /**
     * \param connection its number
     * \return node
     */
    int32_t
    SourceOf(uint32_t connection) const;

    /**
     * \param pair a queue pair
     * \return whose it is
     */
    const Endpoints&
    EndpointsOf(uint32_t pair) const;

    /**
     * Links are down or up again, each as often as it went down: from now on connections go other
     * ways, those under way too. Who has no other way waits on the one of before, or, if the
     * connection is new, that of the whole network. \param links their numbers \param down
     * otherwise: up
     */
    void
    SetDown(const std::vector<uint32_t>& links, bool down);

    /**
     * The largest bandwidth-delay product between two GPUs.
     * \return bytes
     */
    int64_t
    LargestProduct();

    /**
     * \param source node
     * \param destination node
     * \return ps: propagation there and back and one full packet at each hop; and the bandwidth of
     * the slowest port, bits per second
     */
    std::pair<int64_t, double>
    RttAndBandwidth(int32_t source, int32_t destination);

  private:
    /** A connection that has been made. */
    struct Connection
    {
        int32_t source;        //!< node
        int32_t destination;   //!< node
        int32_t channel;       //!< of the collective
        uint32_t trafficClass; //!< of its data
        uint32_t messages{0};  //!< so far, where each has a queue pair of its own
    };

    /** The queue pairs of a connection, where they are not new ones for each message. */
    struct Lanes
    {
        std::vector<uint32_t> pairs; //!< none until the first message
        uint32_t turn{0};            //!< which of them is next
    };

    using Way = std::vector<uint32_t>; //!< its ports

    static constexpr std::size_t MOST_WAYS = 256; //!< of one queue pair
    static constexpr uint16_t FIRST_PORT = 10000; //!< UDP source ports count from here
    static constexpr uint16_t LISTEN_PORT = 100;  //!< UDP port of receivers

    /**
     * \param connection a connection
     * \param sourcePort UDP
     * \return its new queue pairs
     */
    std::vector<uint32_t>
    MakePairs(const Connection& connection, uint16_t sourcePort);

    /**
     * The same where each message has a queue pair and a way of its own, and all links are up.
     * \param connection a connection
     * \param sourcePort UDP
     * \return its new queue pair
     */
    uint32_t
    MakeOneShot(const Connection& connection, uint16_t sourcePort);

    /** Remembers whose a new queue pair is. */
    void
    NoteEndpoints(uint32_t pair, const Endpoints& ends);

    /** Finds ways in the network or in what is left of it. */
    struct Map
    {
        /**
         * \param topology in which ways are found; must outlive this object
         * \param options how ways are chosen
         */
        Map(const lockstep::Topology& topology, const lockstep::RouteOptions& options);

        lockstep::Router single;     //!< finds one way, hashed everywhere
        lockstep::Router all;        //!< finds all ways at once that packets may take
        std::vector<uint32_t> links; //!< their numbers in the network; empty: all of them
    };

    /** \return the map of all links, those that are down included */
    Map&
    Whole();

    /**
     * \param map where
     * \param port there
     * \return the same port in the network
     */
    static uint32_t
    PortOf(const Map& map, const lockstep::PortId& port);

    /**
     * \param map where
     * \param key a flow
     * \param ports gets its way
     */
    void
    FindWay(Map& map, const lockstep::FlowKey& key, Way& ports);

    /**
     * Finds m_lanes: the ways that the packets of a connection take in turn, by the port at which
     * they begin, from the hashed one on; and m_back, the hashed way of ACKs.
     * \param map where
     * \param ends of a connection
     */
    void
    FindWays(Map& map, const Endpoints& ends);

    /**
     * The ways from one port on: each node gives what comes to it to its next hops in turn, from
     * the one that the hash of ECMP names on. So at every node the split is even, to within a
     * packet, however unequal the numbers of hops behind are. They end where they would repeat, or
     * with MOST_WAYS.
     * \param map where; m_route has all hops
     * \param key a flow
     * \param first the port
     * \param hashed the hashed way
     * \return the ways, in turn
     */
    std::vector<Way>
    WaysFrom(Map& map, const lockstep::FlowKey& key, uint32_t first, const Way& hashed);

    /**
     * \param ends of a queue pair
     * \return its ways, of those of m_lanes; m_back gets that of its ACKs
     */
    const std::vector<Way>&
    LaneOf(const Endpoints& ends);

    /**
     * \param port a port
     * \param behind otherwise: before
     * \return the node there
     */
    lockstep::NodeId
    EndOf(uint32_t port, bool behind) const;

    const lockstep::Topology& m_topology;          //!< the network
    lockstep::RouteOptions m_options;              //!< how ways are chosen
    std::map<uint32_t, uint32_t> m_down;           //!< links, and how often each is down
    lockstep::Topology m_left;                     //!< without those
    Map m_map;                                     //!< of what is left
    std::optional<Map> m_whole;                    //!< of the network, once links are down
    ns3::Ptr<ns3::Fabric> m_fabric;                //!< has the queue pairs
    uint64_t m_classes{1};                         //!< traffic classes
    int64_t m_payload{1};                          //!< bytes of a full packet
    bool m_oneShot;                                //!< a queue pair and a way a message
    std::vector<Connection> m_connections;         //!< by number
    std::vector<Lanes> m_lanesOf;                  //!< by connection, unless m_oneShot
    std::unordered_map<uint64_t, uint32_t> m_used; //!< source ports used, by node pair
    std::vector<Endpoints> m_endpoints;            //!< by queue pair
    lockstep::Route m_route;                       //!< reused
    Way m_there;                                   //!< reused
    Way m_back;                                    //!< reused
    std::vector<std::vector<Way>> m_lanes;         //!< reused
    std::vector<Part> m_parts;                     //!< reused
};

#endif /* FABRIC_CONNECTIONS_H */
