/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef PACKET_SAMPLES_H
#define PACKET_SAMPLES_H

#include "fabric-connections.h"
#include "topologies/topology.h"

#include "ns3/fabric.h"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

/**
 * Samples of a run over time, of ports and connections, as a table of at most MOST_ROWS rows
 * (docs/formats/samples.md). When there would be more, the interval doubles and rows of the same
 * thing are put together; where that is not enough, connections that are new are left out, and how
 * many of their bytes is told.
 */
class PacketSamples
{
  public:
    static constexpr std::size_t MOST_ROWS = 200000; //!< of the table

    /**
     * \param topology the network; must outlive this object
     * \param connections of the job; must outlive this object
     * \param fabric the model
     * \param file gets the table as CSV; empty: no samples
     * \param interval ps
     */
    PacketSamples(const lockstep::Topology& topology,
                  const FabricConnections& connections,
                  ns3::Ptr<ns3::Fabric> fabric,
                  std::string file,
                  int64_t interval);

    /** Writes the file, if there is one. */
    void
    Write();

  private:
    /** Of one port or connection in one interval. */
    struct Row
    {
        int64_t bin;    //!< how-manieth interval
        int64_t index;  //!< port, or the number of ports and that of the connection
        int64_t bytes;  //!< sent, or confirmed
        uint64_t queue; //!< bytes that waited, the most seen
        int64_t window; //!< bytes, at last
        double rate;    //!< bits per second, at last
        int64_t time;   //!< ps, of that last
    };

    void
    RecordPort(const ns3::Fabric::PortSample& sample);
    void
    RecordPair(const ns3::Fabric::PairSample& sample);
    void
    Add(const Row& row);
    void
    PutTogether();
    std::string
    ToCsv() const;

    /** What a connection is: nodes and channel. */
    using Ends = std::tuple<int32_t, int32_t, int32_t>;

    const lockstep::Topology& m_topology;   //!< the network
    const FabricConnections& m_connections; //!< of the job
    ns3::Ptr<ns3::Fabric> m_fabric;         //!< the model
    std::string m_file;                     //!< or empty
    int64_t m_interval;                     //!< ps, of a row
    int64_t m_ports;                        //!< number of ports
    std::vector<Row> m_rows;                //!< so far
    std::size_t m_most{MOST_ROWS};          //!< rows before they are put together
    std::map<Ends, int64_t> m_numbers;      //!< of connections
    std::vector<Ends> m_ends;               //!< by that number
    int64_t m_leftOut{0};                   //!< bytes of connections that have no rows
};

#endif /* PACKET_SAMPLES_H */
