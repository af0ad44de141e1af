/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef TIMELY_CONGESTION_CONTROL_H
#define TIMELY_CONGESTION_CONTROL_H

#include "fabric-congestion-control.h"

#include "ns3/data-rate.h"
#include "ns3/nstime.h"

#include <vector>

namespace ns3
{

/**
 * TIMELY: Mittal et al., TIMELY: RTT-based congestion control for the datacenter, SIGCOMM 2015,
 * algorithm 1. Once a round trip, with r its time and g the smoothed gradient over MinRtt:
 *
 *     r > High:           R = R (1 - Beta (1 - High / r))
 *     r < Low or g <= 0:  R = R + AdditiveIncrease, from the fifth time in a row on
 *                         R = R + HyperIncrease
 *     else                R = R (1 - Beta min(g, 1))
 *
 * As in the simulator of Li et al. (HPCC) and in SimAI, increases below Low count and may be hyper;
 * in the paper's algorithm they are plain.
 */
class TimelyCongestionControl : public FabricCongestionControl
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
        int64_t roundTrip; //!< ps, the one before; 0 at first
        double difference; //!< ps, smoothed
        int64_t update;    //!< offset whose ACK ends the present round trip
        uint32_t falling;  //!< increases in a row
    };

    std::vector<State> m_states; //!< by queue pair
    double m_alpha;              //!< weight of the newest difference
    double m_beta;               //!< see above
    Time m_low;                  //!< see above
    Time m_high;                 //!< see above
    Time m_minRtt;               //!< see above
    DataRate m_additive;         //!< see above
    DataRate m_hyper;            //!< from the fifth increase in a row on
    DataRate m_minRate;          //!< lowest rate
    bool m_scaleWindow;          //!< the window follows the rate
};

} // namespace ns3

#endif /* TIMELY_CONGESTION_CONTROL_H */
