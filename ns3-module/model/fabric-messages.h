/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_MESSAGES_H
#define FABRIC_MESSAGES_H

#include "fabric-state.h"

#include <cstdint>

namespace ns3
{

struct FabricParts;

/**
 * Messages: handed over, begun, sent, delivered, freed.
 */
class FabricMessages
{
  public:
    /**
     * \param parts those it works with
     */
    explicit FabricMessages(FabricParts& parts);

    /**
     * \param pair the queue pair
     * \param bytes size; 0 counts as 1
     * \param when ps
     * \param tag comes back in the completions
     */
    void
    Send(uint32_t pair, int64_t bytes, int64_t when, uint64_t tag);

    /**
     * Its time has come: it joins its queue pair.
     * \param place of the message
     */
    void
    Begin(uint32_t place);

    /**
     * Its last bit has left the sender.
     * \param place of the message
     */
    void
    ReportSent(uint32_t place);

    /**
     * \param place of the message
     */
    void
    Deliver(uint32_t place);

    /**
     * Frees a message of which all is known at both ends.
     * \param place of the message
     */
    void
    FreeIfThrough(uint32_t place);

    /**
     * Tells the outside.
     * \param place of the message
     * \param delivered otherwise: sent
     */
    void
    Complete(uint32_t place, bool delivered);

    /**
     * \param other gives its unused messages away
     */
    void
    TakeOver(FabricMessages& other);

  private:
    FabricParts& m_parts;               //!< those it works with
    FabricState& m_state;               //!< of the Fabric
    uint32_t m_free{FabricState::NONE}; //!< first of the free list
};

} // namespace ns3

#endif /* FABRIC_MESSAGES_H */
