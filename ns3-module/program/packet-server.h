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
    void
    Change();
    void
    Report();
    void
    BuildFabric();
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
    std::map<uint32_t, Losses> m_losses;              //!< by link, of those that ever lost
    std::unique_ptr<PacketRecords> m_records;         //!< in SimAI's formats
    std::unique_ptr<PacketSamples> m_samples;         //!< over time
};

#endif /* PACKET_SERVER_H */
