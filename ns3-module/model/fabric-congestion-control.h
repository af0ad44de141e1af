/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_CONGESTION_CONTROL_H
#define FABRIC_CONGESTION_CONTROL_H

#include "fabric-queue-pair.h"

#include "ns3/object.h"

namespace ns3
{

/**
 * Sets the rate and the window of queue pairs from what their ACKs tell. One object serves all
 * queue pairs of a Fabric; it keeps its state by FabricQueuePair::index. This base class controls
 * nothing: line rate and the full window always.
 */
class FabricCongestionControl : public Object
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId
    GetTypeId();

    /** What it needs the network to do. */
    enum Need : uint32_t
    {
        MARKS = 1,       //!< ECN marks echoed by ACKs
        TELEMETRY = 2,   //!< in-band telemetry
        SHARERS = 4,     //!< how many queue pairs send by the last port of this one
        MARKED_BYTES = 8 //!< how much of what an ACK confirms was marked
    };

    /** \return the sum of its needs */
    virtual uint32_t
    GetNeeds() const;

    /**
     * A queue pair begins, or begins anew under an index used before: sets rate, window and timer.
     * \param pair the queue pair
     * \param now ps
     */
    virtual void
    Start(FabricQueuePair& pair, int64_t now);

    /**
     * An ACK has come; `acked` is up to date.
     * \param pair the queue pair
     * \param feedback what it tells
     */
    virtual void
    Acknowledge(FabricQueuePair& pair, const FabricFeedback& feedback);

    /**
     * The time `pair.timer` has passed; asked before the next packet is sent or ACK evaluated, so
     * that timers cost no events. Sets the next timer.
     * \param pair the queue pair
     * \param now ps
     */
    virtual void
    Expire(FabricQueuePair& pair, int64_t now);

    /**
     * Whether ACKs without marks change nothing of a queue pair's rate, window and state, however
     * often and whenever they come, so that fast-forward may leave them out.
     * \param pair the queue pair
     * \return false where that is not known
     */
    virtual bool
    IsSteady(const FabricQueuePair& pair) const;

    static constexpr int64_t NEVER = INT64_MAX; //!< no timer

  protected:
    /**
     * Sets rate, and window in proportion to it.
     * \param pair the queue pair
     * \param rate bits per second
     */
    static void
    SetRateAndWindow(FabricQueuePair& pair, double rate);
};

} // namespace ns3

#endif /* FABRIC_CONGESTION_CONTROL_H */
