/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_SENDERS_H
#define FABRIC_SENDERS_H

#include "fabric-state.h"

#include <cstdint>

namespace ns3
{

struct FabricParts;

/**
 * Sending ends: a port pulls from its queue pairs, one packet (or train) each in turn, as windows
 * and pacing allow; ACKs and forwarded units go before data. Traffic classes have turns of their
 * own, and one goes only when those before it have nothing that may go.
 */
class FabricSenders
{
  public:
    /**
     * \param parts those it works with
     */
    explicit FabricSenders(FabricParts& parts);

    /**
     * \param index of the port by which a unit goes on
     * \param unit that has come to the port's node, or was made there
     */
    void
    Forward(uint32_t index, const FabricUnit& unit);

    /**
     * A port may send the next unit.
     * \param index of the port
     */
    void
    Pull(uint32_t index);

    /**
     * Pacing lets a queue pair of a port send.
     * \param index of the port
     */
    void
    Wake(uint32_t index);

    /**
     * There is something new to send: sends it if the port is idle.
     * \param index of the port
     */
    void
    Kick(uint32_t index);

    /**
     * \param pair a queue pair whose window, offsets or messages have changed
     */
    void
    UpdateEligible(FabricQueuePair& pair);

    //! A train is at most one in so many of the packets that its message has left.
    static constexpr int64_t TRAIN_PART = 8;

  private:
    void
    EnsurePull(uint32_t index);
    /** Sends what goes first. \return whether there was something that may go */
    bool
    SendNext(uint32_t index);
    bool
    HasToSend(const FabricPort& port) const;
    uint32_t
    TrainLength(const FabricQueuePair& pair, int64_t left) const;
    uint32_t
    ChooseWay(FabricQueuePair& pair);
    int64_t
    LongestQueue(uint32_t way, uint32_t trafficClass) const;
    FabricUnit
    MakeData(FabricQueuePair& pair, int64_t sequence, int64_t payload, uint32_t packets);
    void
    Put(uint32_t index, FabricQueuePair& pair, const FabricUnit& unit);
    void
    SendAgain(uint32_t index, FabricQueuePair& pair);
    void
    SendData(uint32_t index, FabricQueuePair& pair);
    bool
    IsWindowSmall(const FabricQueuePair& pair) const;

    FabricParts& m_parts; //!< those it works with
    FabricState& m_state; //!< of the Fabric
};

} // namespace ns3

#endif /* FABRIC_SENDERS_H */
