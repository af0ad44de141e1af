/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_CREDITS_H
#define FABRIC_CREDITS_H

#include "fabric-state.h"

#include <cstdint>

namespace ns3
{

struct FabricParts;

/**
 * Credit flow control of NVLinks: the sender of a link knows how much room its other end has kept
 * for it, and sends nothing that would not fit.
 *
 *     owed(i) = bytes that were given to port i to be sent, and have not left the buffer behind it
 *     a unit of w bytes may be sent when owed(i) + w <= NvLinkCredits, or nothing is owed
 *
 * (Kung, Blackwell, Chapman: Credit-based flow control for ATM networks, SIGCOMM 1994.) Nothing is
 * lost, no headroom is wanted, and who has no credits stops by itself. Credits are given out in the
 * order of the queue, as soon as a unit joins it; that is the same as when it starts, because they
 * only ever come back. A port that stands still goes on a link delay after there is room for its
 * next packet; to one that does not, credits count as back when the unit leaves.
 */
class FabricCredits
{
  public:
    /**
     * \param parts those it works with
     */
    explicit FabricCredits(FabricParts& parts);

    /** Gives each NVLink its credits. */
    void
    Divide();

    /**
     * \param index of a port with credits
     * \param bytes on the wire
     * \return whether they may be sent; then they are owed
     */
    bool
    Take(uint32_t index, int64_t bytes);

    /**
     * A port that pulls has sent something.
     * \param index of a port with credits
     * \param bytes on the wire
     */
    void
    Spend(uint32_t index, int64_t bytes);

    /**
     * \param index of a port with credits
     * \param bytes that have left the buffer behind it
     */
    void
    Return(uint32_t index, int64_t bytes);

    /**
     * A port has no credits for what is to be sent next.
     * \param index of the port
     */
    void
    Stall(uint32_t index);

    /**
     * Credits have come back to a port that stood still.
     * \param index of the port
     */
    void
    Come(uint32_t index);

  private:
    bool
    HasRoom(const FabricPort& port) const;

    FabricParts& m_parts; //!< those it works with
    FabricState& m_state; //!< of the Fabric
};

} // namespace ns3

#endif /* FABRIC_CREDITS_H */
