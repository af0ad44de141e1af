/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_BUFFERS_H
#define FABRIC_BUFFERS_H

#include "fabric-state.h"

#include <array>
#include <cstdint>
#include <vector>

namespace ns3
{

struct FabricParts;

/**
 * Shared buffers of switches: dynamic thresholds, PFC, drops, ECN.
 *
 *     used(i)   = max(0, bytes that came by ingress port i and are still here - reserve)
 *     threshold = PfcAlpha * (shared buffer - sum of used)
 *     pause i   when used(i) > threshold;  go on when used(i) + ResumeOffset <= threshold
 *
 * (Choudhury and Hahne: Dynamic queue length thresholds for shared-memory packet switches, 1998.)
 * by traffic class: (i) is a class of a port. With DynamicThreshold off the threshold is
 * PfcThreshold, or an equal part of the shared buffer for each (i) (Irland: Buffer management in a
 * packet switch, IEEE Transactions on Communications 26(3), 1978). What comes after a pause goes to
 * the port's headroom. What would be more than the whole buffer is dropped, whatever thresholds
 * say. Counts fall when units leave, and that is made up for lazily, so a count may only be too
 * large: before it leads to anything all ports of the node are settled.
 */
class FabricBuffers
{
  public:
    /**
     * \param parts those it works with
     */
    explicit FabricBuffers(FabricParts& parts);

    /**
     * A row of the ECN table: ports of this rate mark between kmin and kmax.
     * \param rate bits per second
     * \param kmin bytes
     * \param kmax bytes
     * \param pmax probability at kmax
     */
    void
    AddEcnRow(double rate, double kmin, double kmax, double pmax);

    /** Divides the buffers of all nodes among their ports, and sets where ports mark. */
    void
    Divide();

    /**
     * \param egress port that a unit is to leave by
     * \param unit what has come
     * \return false if there is no room for it
     */
    bool
    Admit(uint32_t egress, const FabricUnit& unit);

    /**
     * \param egress port
     * \param unit what starts to leave by it
     */
    void
    Release(uint32_t egress, FabricUnit& unit);

    /**
     * Makes up for all that has started at the ports of a node.
     * \param node its number
     */
    void
    SettleNode(uint32_t node);

    /** \return ports of a circle of pauses, see Fabric::FindDeadlock() */
    std::vector<uint32_t>
    FindDeadlock() const;

  private:
    std::vector<uint32_t>
    FindDeadlock(uint32_t trafficClass) const;
    bool
    WaitsFor(uint32_t ingress, uint32_t egress, uint32_t trafficClass) const;
    void
    SetMarks(FabricPort& port) const;
    void
    DivideNode(FabricNode& node);
    /** \return share of the free shared buffer that a port of a rate may use */
    double
    ThresholdShare(uint64_t rate) const;
    /** \return rate of the first port of the first host, or 0 */
    uint64_t
    FirstRate() const;
    void
    Mark(FabricPort& port, FabricUnit& unit);
    void
    SendPause(uint32_t port, uint32_t trafficClass, bool pause);
    int64_t
    Threshold(const FabricPort& port) const;
    void
    Hold(FabricPort& port, uint32_t trafficClass, int64_t bytes);
    /** Lets a held-up class go on if there is room again. */
    void
    LetGo(uint32_t ingress, uint32_t trafficClass);

    FabricParts& m_parts;                          //!< those it works with
    FabricState& m_state;                          //!< of the Fabric
    std::vector<std::array<double, 4>> m_ecnTable; //!< rate, kmin, kmax, pmax
};

} // namespace ns3

#endif /* FABRIC_BUFFERS_H */
