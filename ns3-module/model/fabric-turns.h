/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_TURNS_H
#define FABRIC_TURNS_H

#include "fabric-state.h"

#include <cstdint>

namespace ns3
{

struct FabricParts;

/**
 * Whose turn it is: the queue pairs of a port that may send take turns, one packet each.
 */
class FabricTurns
{
  public:
    /**
     * \param parts those it works with
     */
    explicit FabricTurns(FabricParts& parts);

    /**
     * The next queue pair that may send; if pacing holds all back, the port is woken in time.
     * \param index of the port
     * \param endpoint of the port
     * \return its place in the round robin, or NONE
     */
    uint32_t
    Choose(uint32_t index, FabricEndpoint& endpoint);

    /**
     * A queue pair that gets something to send while another one's train is being sent would have
     * taken turns with the rest of it. So that one lets it go first as often as it has packets
     * left. \param pair the one that may send from now on
     */
    void
    OweTurns(const FabricQueuePair& pair);

    /**
     * Drops finished queue pairs from a round robin.
     * \param endpoint whose
     * \param from first place that is empty
     * \param chosen a place, or NONE: gets the new place of the queue pair there
     */
    void
    DropFinished(FabricEndpoint& endpoint, uint32_t from, uint32_t& chosen);

  private:
    FabricState& m_state; //!< of the Fabric
};

} // namespace ns3

#endif /* FABRIC_TURNS_H */
