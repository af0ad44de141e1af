/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef PACKET_SERVER_H
#define PACKET_SERVER_H

#include "fabric-connections.h"
#include "topologies/topology.h"

#include "ns3/fabric.h"

#include <memory>
#include <string>

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
    void
    Report();
    void
    BuildFabric();
    void
    RecordMessage(const ns3::Fabric::MessageRecord& record);
    void
    RecordPause(int64_t now, uint32_t node, uint32_t port, bool pause);
    void
    WriteRecords();

    /**
     * \param type of the answer
     */
    void
    Answer(uint32_t type);

    int m_in;              //!< requests
    int m_out;             //!< answers
    std::string m_request; //!< the present one
    std::string m_answer;  //!< to it

    lockstep::Topology m_topology;                                            //!< the network
    ns3::Ptr<ns3::Fabric> m_fabric;                                           //!< its model
    std::unique_ptr<FabricConnections> m_connections;                         //!< of the job
    int64_t m_lookahead{0};                                                   //!< ps
    int64_t m_reached{0};                                                     //!< ps
    std::string m_fctFile;                                                    //!< or empty
    std::string m_pfcFile;                                                    //!< or empty
    std::string m_fct;                                                        //!< text so far
    std::string m_pfc;                                                        //!< text so far
    std::map<std::pair<int32_t, int32_t>, std::pair<int64_t, double>> m_rtts; //!< by node pair
};

#endif /* PACKET_SERVER_H */
