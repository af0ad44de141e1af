/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef SWIFT_CONGESTION_CONTROL_H
#define SWIFT_CONGESTION_CONTROL_H

#include "fabric-congestion-control.h"

#include "ns3/data-rate.h"
#include "ns3/nstime.h"

#include <vector>

namespace ns3
{

/**
 * Swift: Kumar et al., Swift: Delay is simple and effective for congestion control in the
 * datacenter, SIGCOMM 2020, algorithm 1, fabric window. With d the round trip and w the window in
 * packets of 4 KiB:
 *
 *     target = base round trip + TargetDelay + clamp(ScaleRange (w^-1/2 - Most^-1/2) / (Least^-1/2
 * - Most^-1/2), 0, ScaleRange),  Least = 0.1, Most = 100 d < target:  w = w + AdditiveIncrease
 * acked / w else, once a round trip:  w = w max(1 - Beta (d - target) / d, 1 - MaxDecrease)
 *
 * The rate is the window a round trip, so windows below a packet pace.
 */
class SwiftCongestionControl : public FabricCongestionControl
{
  public:
    /**
     * \brief Get the type ID.
     * \return the object TypeId
     */
    static TypeId
    GetTypeId();

    void
    Start(FabricQueuePair& pair, int64_t now) override;
    void
    Acknowledge(FabricQueuePair& pair, const FabricFeedback& feedback) override;

  private:
    /** Of one queue pair. */
    struct State
    {
        double window;    //!< bytes
        int64_t decrease; //!< ps, of the last one
    };

    std::vector<State> m_states; //!< by queue pair
    Time m_targetDelay;          //!< see above
    Time m_scaleRange;           //!< see above
    double m_additive;           //!< see above
    double m_beta;               //!< see above
    double m_maxDecrease;        //!< see above
    double m_minWindow;          //!< packets
};

} // namespace ns3

#endif /* SWIFT_CONGESTION_CONTROL_H */
