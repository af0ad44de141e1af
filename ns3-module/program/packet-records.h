/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef PACKET_RECORDS_H
#define PACKET_RECORDS_H

#include "fabric-connections.h"
#include "topologies/topology.h"

#include "ns3/fabric.h"

#include <cstdint>
#include <map>
#include <string>
#include <utility>

/** SimAI's records of a run: one line a transfer (fct), one line a pause or resume (pfc). */
class PacketRecords
{
  public:
    /**
     * \param topology the network; must outlive this object
     * \param connections of the job; must outlive this object
     * \param fabric the model
     * \param fctFile gets a line a transfer, if named
     * \param pfcFile gets a line a pause or resume, if named
     */
    PacketRecords(const lockstep::Topology& topology,
                  FabricConnections& connections,
                  ns3::Ptr<ns3::Fabric> fabric,
                  std::string fctFile,
                  std::string pfcFile);

    /** Writes the files that are named. */
    void
    Write() const;

  private:
    void
    RecordMessage(const ns3::Fabric::MessageRecord& record);
    void
    RecordPause(int64_t now, uint32_t node, uint32_t port, uint32_t trafficClass, bool pause);

    const lockstep::Topology& m_topology;                                     //!< the network
    FabricConnections& m_connections;                                         //!< of the job
    ns3::Ptr<ns3::Fabric> m_fabric;                                           //!< the model
    std::string m_fctFile;                                                    //!< or empty
    std::string m_pfcFile;                                                    //!< or empty
    std::string m_fct;                                                        //!< text so far
    std::string m_pfc;                                                        //!< text so far
    std::map<std::pair<int32_t, int32_t>, std::pair<int64_t, double>> m_rtts; //!< by node pair
};

#endif /* PACKET_RECORDS_H */
