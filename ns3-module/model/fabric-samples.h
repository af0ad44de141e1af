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

struct FabricParts;

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
     * \param parts those it works with
     */
    explicit FabricSamples(FabricParts& parts);

    /**
     * From now on samples are so far apart.
     * \param interval ps; 0: there are none
     */
    void
    SetInterval(int64_t interval);

    /**
     * Takes the samples that are due before the next event.
     * \param next ps, the time of the next event
     */
    void
    TakeUntil(int64_t next);

    /** Takes one now, of what has happened since the last. */
    void
    Take();

    /**
     * A queue pair is through, and its number will be another's.
     * \param pair the queue pair
     */
    void
    NoteRetired(const FabricQueuePair& pair);

  private:
    void
    SamplePort(uint32_t index);
    void
    SamplePair(const FabricQueuePair& pair);

    FabricState& m_state;           //!< of the Fabric
    int64_t m_interval{0};          //!< ps
    std::vector<uint64_t> m_sent;   //!< by port: bytes at the last sample
    std::vector<int64_t> m_arrived; //!< by queue pair: offset at the last sample
};

} // namespace ns3

#endif /* FABRIC_SAMPLES_H */
