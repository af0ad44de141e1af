/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_RECEIVERS_H
#define FABRIC_RECEIVERS_H

#include "fabric-state.h"

#include <cstdint>

namespace ns3
{

struct FabricParts;

/**
 * What comes to the ends: data and the ACKs for it, ACKs, go-back-N, timeouts.
 */
class FabricReceivers
{
  public:
    /**
     * \param parts those it works with
     */
    explicit FabricReceivers(FabricParts& parts);

    /**
     * \param unit that has come where it goes
     */
    void
    Receive(const FabricUnit& unit);

    /**
     * \param unit that is no more
     */
    void
    Discard(const FabricUnit& unit);

    /**
     * Makes sure that a queue pair is looked at after a timeout.
     * \param pair the queue pair
     * \param since ps, from when the timeout counts
     */
    void
    ArmExpiry(FabricQueuePair& pair, int64_t since);

    /** The same for all queue pairs of the partition with messages under way. */
    void
    WatchAll();

    /**
     * The retransmission timer of a queue pair.
     * \param index of the queue pair
     */
    void
    Expire(uint32_t index);

  private:
    bool
    ReceiveData(FabricQueuePair& pair, const FabricUnit& unit);
    bool
    ReceiveEarly(FabricQueuePair& pair, const FabricUnit& unit);
    bool
    NoteReceived(FabricQueuePair& pair, const FabricUnit& unit);
    bool
    CatchUp(FabricQueuePair& pair);
    int64_t
    ChunkStart(const FabricQueuePair& pair) const;
    bool
    SendNack(FabricQueuePair& pair, const FabricUnit& cause);
    bool
    SendAck(FabricQueuePair& pair, const FabricUnit& cause, uint8_t flags);
    void
    ReceiveAck(FabricQueuePair& pair, const FabricUnit& unit);
    void
    GoBack(FabricQueuePair& pair, int64_t offset);

    FabricParts& m_parts; //!< those it works with
    FabricState& m_state; //!< of the Fabric
};

} // namespace ns3

#endif /* FABRIC_RECEIVERS_H */
