/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_SAMPLES_H
#define FABRIC_SAMPLES_H

#include "fabric-state.h"

#include <cstdint>
#include <vector>

namespace ns3
{

/**
 * Samples: every SampleInterval, what each port has begun to send and what waits there, and what
 * each queue pair had confirmed, its window and its rate. Ports and queue pairs that did nothing
 * are left out. It looks without touching anything: a run with samples goes as one without. Costs
 * O(ports + queue pairs + units that wait) a sample, and nothing while nothing is under way.
 */
class FabricSamples
{
  public:
    /**
     * \param tables of the Fabric
     */
    explicit FabricSamples(FabricTables& tables);

    /**
     * From now on samples are so far apart.
     * \param interval ps; 0: there are none
     * \param now ps
     */
    void
    SetInterval(int64_t interval, int64_t now);

    /**
     * Takes the samples that are due before the next event.
     * \param next ps, the time of the next event
     * \param idle whether nothing is under way
     */
    void
    TakeUntil(int64_t next, bool idle);

    /**
     * Takes one, of what has happened since the last.
     * \param now ps
     */
    void
    Take(int64_t now);

    /**
     * A queue pair is through, and its number will be another's.
     * \param pair the queue pair
     * \param now ps
     */
    void
    NoteRetired(const FabricQueuePair& pair, int64_t now);

  private:
    void
    SamplePort(uint32_t index);
    void
    SamplePair(const FabricQueuePair& pair);

    FabricTables& m_tables;         //!< of the Fabric
    int64_t m_now{0};               //!< ps, of the present one
    int64_t m_interval{0};          //!< ps
    std::vector<uint64_t> m_sent;   //!< by port: bytes at the last sample
    std::vector<int64_t> m_arrived; //!< by queue pair: offset at the last sample
};

} // namespace ns3

#endif /* FABRIC_SAMPLES_H */
