/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef DCTCP_CONGESTION_CONTROL_H
#define DCTCP_CONGESTION_CONTROL_H

#include "fabric-congestion-control.h"

#include "ns3/data-rate.h"
#include "ns3/nstime.h"

#include <vector>

namespace ns3
{

/**
 * DCTCP as a rate: Alizadeh et al., Data center TCP, SIGCOMM 2010, section 3. Once a round trip,
 * with F the share of its bytes that were marked:
 *
 *     a = (1 - g) a + g F
 *     some marked:  R = R (1 - a / 2);   none:  R = R + AdditiveIncrease
 */
class DctcpCongestionControl : public FabricCongestionControl
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
    Start(FabricQueuePair& pair, int64_t now) override;
    void
    Acknowledge(FabricQueuePair& pair, const FabricFeedback& feedback) override;

  private:
    /** Of one queue pair. */
    struct State
    {
        double alpha;   //!< estimate of congestion
        int64_t marked; //!< bytes of the present round trip
        int64_t all;    //!< bytes of the present round trip
        int64_t update; //!< offset whose ACK ends it
    };

    std::vector<State> m_states; //!< by queue pair
    double m_gain;               //!< g
    DataRate m_additive;         //!< see above
    DataRate m_minRate;          //!< lowest rate
    bool m_scaleWindow;          //!< the window follows the rate
};

} // namespace ns3

#endif /* DCTCP_CONGESTION_CONTROL_H */
