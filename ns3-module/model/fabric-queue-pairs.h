/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_QUEUE_PAIRS_H
#define FABRIC_QUEUE_PAIRS_H

#include "fabric-state.h"

#include <cstdint>
#include <vector>

namespace ns3
{

struct FabricParts;

/**
 * Queue pairs: made, given ways and windows, through, used again.
 */
class FabricQueuePairs
{
  public:
    /**
     * \param parts those it works with
     */
    explicit FabricQueuePairs(FabricParts& parts);

    /**
     * \param there ports of the way of the data, in order
     * \param back ports of the way of the ACKs
     * \param oneShot whether it is freed once all its messages are through
     * \param trafficClass of its data; the last one if there are fewer
     * \return the number of the new queue pair
     */
    uint32_t
    Add(const std::vector<uint32_t>& there,
        const std::vector<uint32_t>& back,
        bool oneShot,
        uint32_t trafficClass);

    /**
     * \param index of a queue pair
     * \param there ports of another way for its data
     */
    void
    AddWay(uint32_t index, const std::vector<uint32_t>& there);

    /**
     * \param index of a queue pair
     * \param there ports of the way of its data from now on
     * \param back ports of the way of its ACKs from now on
     */
    void
    Reroute(uint32_t index, const std::vector<uint32_t>& there, const std::vector<uint32_t>& back);

    /**
     * \param index of a queue pair that has just been rerouted
     * \param there ports of all ways of its data from now on, of which the first is known
     */
    void
    SetWays(uint32_t index, const std::vector<std::vector<uint32_t>>& there);

    /**
     * \param ports a way
     * \return ps, see Fabric::GetBaseRtt()
     */
    int64_t
    GetBaseRtt(const std::vector<uint32_t>& ports) const;

    /**
     * A one-shot queue pair leaves the round robin of its port.
     * \param pair the queue pair
     */
    void
    Retire(FabricQueuePair& pair);

    /**
     * Frees a queue pair that is through, if nothing of it is under way.
     * \param pair the queue pair
     */
    void
    FreeIfIdle(FabricQueuePair& pair);

    /**
     * \param other gives its unused numbers away
     */
    void
    TakeOver(FabricQueuePairs& other);

  private:
    void
    SetFullWindow(FabricQueuePair& pair);

    FabricParts& m_parts;         //!< those it works with
    FabricState& m_state;         //!< of the Fabric
    std::vector<uint32_t> m_free; //!< numbers to use again
};

} // namespace ns3

#endif /* FABRIC_QUEUE_PAIRS_H */
