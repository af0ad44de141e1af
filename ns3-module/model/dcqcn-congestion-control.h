/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef DCQCN_CONGESTION_CONTROL_H
#define DCQCN_CONGESTION_CONTROL_H

#include "fabric-congestion-control.h"

#include "ns3/data-rate.h"
#include "ns3/nstime.h"

#include <vector>

namespace ns3
{

/**
 * DCQCN: Zhu et al., Congestion control for large-scale RDMA deployments, SIGCOMM 2015, section 5.
 * A mark that an ACK echoes is a CNP. With R the rate, T the target and a the estimate of
 * congestion:
 *
 *     a CNP came within DecreaseInterval:  T = R;  R = R (1 - a / 2)
 *     every AlphaInterval:                 a = (1 - g) a + g [a CNP came]
 *     every IncreaseInterval since the last decrease:
 *         the first FastRecovery times     R = (R + T) / 2
 *         then                             T = T + AdditiveIncrease, later HyperIncrease; the same
 * R
 *
 * There is no byte counter. Where marks are far apart the target stays at a decrease that comes
 * before any increase, unless ClampTargetRate.
 */
class DcqcnCongestionControl : public FabricCongestionControl
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
    bool
    IsSteady(const FabricQueuePair& pair) const override;
    void
    Expire(FabricQueuePair& pair, int64_t now) override;

  private:
    /** Of one queue pair. */
    struct State
    {
        double alpha;      //!< estimate of congestion
        double target;     //!< bits per second
        int64_t alphaTime; //!< ps, up to which alpha is worked out
        int64_t decrease;  //!< ps, next look whether a CNP came, or NEVER
        int64_t increase;  //!< ps, next increase, or NEVER
        uint32_t stage;    //!< increases since the last decrease
        bool begun;        //!< a CNP has come
        bool alphaMarked;  //!< a CNP came since alphaTime
        bool marked;       //!< a CNP came since the last look
    };

    /**
     * \param state of a queue pair
     * \param now ps
     */
    void
    AdvanceAlpha(State& state, int64_t now) const;

    /**
     * Sets rate and window.
     * \param pair the queue pair
     * \param rate bits per second
     */
    void
    Apply(FabricQueuePair& pair, double rate) const;

    std::vector<State> m_states; //!< by queue pair
    double m_gain;               //!< g
    Time m_alphaInterval;        //!< see above
    Time m_decreaseInterval;     //!< see above
    Time m_increaseInterval;     //!< see above
    uint32_t m_fastRecovery;     //!< see above
    DataRate m_additive;         //!< see above
    DataRate m_hyper;            //!< see above
    DataRate m_minRate;          //!< lowest rate
    bool m_clamp;                //!< see above
    bool m_scaleWindow;          //!< the window follows the rate
};

} // namespace ns3

#endif /* DCQCN_CONGESTION_CONTROL_H */
