/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef PACKET_SERVER_H
#define PACKET_SERVER_H

#include "base/json.h"
#include "fabric-connections.h"
#include "packet-pipe.h"
#include "packet-records.h"
#include "packet-samples.h"
#include "topologies/topology.h"

#include "ns3/fabric.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

/**
 * Serves one PacketEngine over two file descriptors: docs/formats/packet-protocol.md.
 */
class PacketServer
{
  public:
    /**
     * \param in where requests come from
     * \param out where answers go
     */
    PacketServer(int in, int out);
    ~PacketServer();

    /**
     * Answers requests until there are no more.
     * \return the program's exit code
     */
    int
    Serve();

  private:
    /** \return whether there was a request */
    bool
    ServeOne();
    void
    Open();
    void
    Run();
    /** \param starts what starts, in the order in which ports are taken */
    void
    Start(const std::vector<lockstep::packet::StartRecord>& starts);
    /**
     * \param connection a connection of several queue pairs
     * \param tag of its next message
     * \param parts of it
     * \return the place of the message in m_inParts
     */
    uint64_t
    TrackParts(uint32_t connection, uint64_t tag, std::size_t parts);
    /**
     * Puts the parts of messages together: a message is sent, or delivered, when the last of its
     * parts is and all before it on its connection are.
     * \param completions what happened to parts; left are those of messages
     */
    void
    MergeParts(std::vector<ns3::Fabric::Completion>& completions);
    void
    Change();
    void
    Report();
    void
    BuildFabric();
    void
    RefuseTooSmallBuffer() const;
    void
    ScheduleFaults(const lockstep::JsonView& faults, int64_t rerouting);
    /**
     * A fault begins or ends; others of the same link may go on.
     * \param link its number
     * \param loss the part of the packets that the fault loses
     * \param begins otherwise: ends
     */
    void
    ChangeFault(uint32_t link, double loss, bool begins);
    /** \param link its number; m_losses has it */
    void
    ApplyLosses(uint32_t link);
    std::string
    DescribeStandstill() const;

    PacketPipe m_pipe;     //!< to the other side
    std::string m_request; //!< the present one
    std::string m_answer;  //!< to it

    /** A message of a connection of several queue pairs. */
    struct InParts
    {
        uint64_t tag;        //!< of the message
        uint32_t connection; //!< its number
        std::size_t left[2]; //!< parts that have not left, and that have not arrived
        uint32_t told;       //!< of its two completions
        uint64_t next;       //!< place of the one after it
    };

    static constexpr uint64_t IN_PARTS = uint64_t{1} << 63; //!< tags from here on are of parts
    static constexpr uint64_t NONE = UINT64_MAX;            //!< no message

    /** The messages under way of such a connection, in order: places in m_inParts. */
    struct Order
    {
        uint64_t next[2] = {NONE, NONE}; //!< the next to be sent, and to be delivered
        uint64_t last = NONE;            //!< the last one, if any is under way
    };

    /** The parts of a link's packets that are lost at present. */
    struct Losses
    {
        std::vector<double> faults; //!< by each of its faults
        double change{0};           //!< by what a request made of the link
    };

    lockstep::Topology m_topology;                    //!< the network
    ns3::Ptr<ns3::Fabric> m_fabric;                   //!< its model
    std::unique_ptr<FabricConnections> m_connections; //!< of the job
    int64_t m_lookahead{0};                           //!< ps
    bool m_firstOrder{false};                         //!< the next start is SimAI's first
    int64_t m_reached{0};                             //!< ps
    std::vector<FabricConnections::Part> m_parts;     //!< of what starts; reused
    std::vector<std::size_t> m_firstPart;             //!< of each start there, and the end
    std::vector<InParts> m_inParts;                   //!< by tag of the parts
    std::vector<ns3::Fabric::Completion> m_merged;    //!< reused
    std::vector<uint64_t> m_freeInParts;              //!< places there
    std::vector<Order> m_orders;                      //!< by connection
    std::map<uint32_t, Losses> m_losses;              //!< by link, of those that ever lost
    std::unique_ptr<PacketRecords> m_records;         //!< in SimAI's formats
    std::unique_ptr<PacketSamples> m_samples;         //!< over time
};

#endif /* PACKET_SERVER_H */
