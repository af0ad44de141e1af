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
 * Wc becomes W once a round trip. The rate is the line rate's part that W is of the full window
 * (W / T where that is one bandwidth-delay product), and Wai what makes it AdditiveIncrease faster.
 * Telemetry is compared with the newest of the same port, so ways may differ from packet to packet.
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
        std::vector<FabricHopTelemetry> last; //!< the newest of each port, by its number
        double load;                          //!< U
        double reference;                     //!< Wc, bytes
        int64_t update;                       //!< offset whose ACK ends the present round trip
        uint32_t stage;                       //!< increases in a row
    };

    /** What became of a port since the newest telemetry of it before. */
    struct Load
    {
        double load{0}; //!< u
        double time{0}; //!< ps since; 0 if it was not known or has not moved on
    };

    /**
     * Compares a hop's telemetry with what is known of its port, and keeps it.
     * \param state of the queue pair
     * \param hop what the port wrote
     * \param base T, ps
     * \return its load
     */
    static Load
    Note(State& state, const FabricHopTelemetry& hop, double base);

    std::vector<State> m_states; //!< by queue pair
    double m_target;             //!< see above
    uint32_t m_stages;           //!< see above
    DataRate m_additive;         //!< see above
    DataRate m_minRate;          //!< lowest rate
};

} // namespace ns3

#endif /* HPCC_CONGESTION_CONTROL_H */
