/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef RECEIVER_CONGESTION_CONTROL_H
#define RECEIVER_CONGESTION_CONTROL_H

#include "fabric-congestion-control.h"

#include "ns3/data-rate.h"
#include "ns3/nstime.h"

namespace ns3
{

/**
 * Receiver-driven: the receiver knows how many senders it has and grants each its share, as credit
 * schemes do (Montazeri et al., Homa, SIGCOMM 2018; Handley et al., NDP, SIGCOMM 2017), here by a
 * number in every ACK instead of packets of credit. With n the senders that the receiver has data
 * to come from by the same port and C the slowest rate of the way:
 *
 *     R = Load C / n,   W = full window / n, at least one byte (so one packet)
 *
 * Until the first ACK a sender goes blindly at line rate with the full window. Congestion inside
 * the fabric is not seen.
 */
class ReceiverCongestionControl : public FabricCongestionControl
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId
    GetTypeId();

    uint32_t
    GetNeeds() const override;
    void
    Acknowledge(FabricQueuePair& pair, const FabricFeedback& feedback) override;
    bool
    IsSteady(const FabricQueuePair& pair) const override;

  private:
    double m_load; //!< see above
};

} // namespace ns3

#endif /* RECEIVER_CONGESTION_CONTROL_H */
