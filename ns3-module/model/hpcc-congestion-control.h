/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef HPCC_CONGESTION_CONTROL_H
#define HPCC_CONGESTION_CONTROL_H

#include "fabric-congestion-control.h"

#include "ns3/data-rate.h"
#include "ns3/nstime.h"

#include <vector>

namespace ns3
{

/**
 * HPCC: Li et al., HPCC: High precision congestion control, SIGCOMM 2019, algorithm 1. From the
 * telemetry of an ACK, for the hop of largest load, with T the base round trip and B its rate:
 *
 *     u = min(queue now, queue before) / (B T) + (bytes sent since) / (B (time since))
 *     U = (1 - t / T) U + (t / T) u,   t = min(time since, T)
 *     W = Wc / (U / Target) + Wai  if U >= Target or Stages increases in a row;  else Wc + Wai
 *
 * Wc becomes W once a round trip. The rate is W / T. Wai is AdditiveIncrease times T.
 */
class HpccCongestionControl : public FabricCongestionControl
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
        FabricTelemetry last; //!< of the ACK before
        double load;          //!< U
        double reference;     //!< Wc, bytes
        int64_t update;       //!< offset whose ACK ends the present round trip
        uint32_t stage;       //!< increases in a row
        bool seen;            //!< `last` is filled
    };

    std::vector<State> m_states; //!< by queue pair
    double m_target;             //!< see above
    uint32_t m_stages;           //!< see above
    DataRate m_additive;         //!< see above
    DataRate m_minRate;          //!< lowest rate
};

} // namespace ns3

#endif /* HPCC_CONGESTION_CONTROL_H */
