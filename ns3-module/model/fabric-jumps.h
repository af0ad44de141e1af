/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_JUMPS_H
#define FABRIC_JUMPS_H

#include "fabric-snapshot.h"
#include "fabric-state.h"

#include <cstdint>
#include <vector>

namespace ns3
{

struct FabricParts;

/**
 * Fast-forward: where the state of a partition repeats, it jumps.
 *
 * Long messages that share ports soon fall into step: after some time T everything is as it was,
 * each queue pair i is d(i) bytes further, and n keys have been drawn. What happens next depends on
 * nothing but the state relative to now, so it happens again, until something from outside comes or
 * a message ends. So k periods are skipped by adding k T to all times, k d(i) to the offsets, k n
 * to the keys and k times their growth to the counters, with the largest k for which
 *
 *     offset(i) + k d(i) + margin < end of the message the offset lies in,   for all offsets
 *     now + k T < the next start of a message that is known, and FABRIC_LAST_TIME.
 *
 * The margin is a packet, or as much as shortens trains (FabricSenders::TRAIN_PART).
 * It lands there, unless something comes from outside before: then it has skipped those periods
 * that were over by then, and goes on from there.
 *
 * The result is exactly that of the run without jumps. The state is compared in full, not by a
 * hash; it is looked at after the last event of a time stamp in which one queue pair, the
 * reference, has sent a packet, and compared with one taken at a growing distance (Brent's search
 * for cycles), seldom enough to cost little where nothing repeats. Random draws between two looks
 * mean that they are not the same.
 */
class FabricJumps
{
  public:
    /**
     * \param parts those it works with
     */
    explicit FabricJumps(FabricParts& parts);

    /** Something came from outside: begins anew. */
    void
    Forget();

    /**
     * A queue pair has sent data of a message of which much is left.
     * \param pair its number
     */
    void
    NoteSent(uint32_t pair)
    {
        if (m_state.eventCount >= m_nextEvent)
        {
            m_reference = m_reference == FabricState::NONE ? pair : m_reference;
            m_due = m_due || m_reference == pair;
        }
    }

    /** \return whether it is time to look */
    bool
    IsDue() const
    {
        return m_due;
    }

    /** Takes a snapshot, and begins a jump if it is the one before. */
    void
    Look();

    /** \return whether it is in the middle of a jump: nothing else happens before it lands */
    bool
    IsJumping() const
    {
        return m_periods > 0;
    }

    /** \return ps, when it lands */
    int64_t
    GetNextTime() const;

    /** Ends the jump where it was to end. */
    void
    Land();

    /**
     * Ends the jump now, with what has happened by then.
     * \param now ps
     */
    void
    Interrupt(int64_t now);

    /**
     * The partition's events get other places among simultaneous ones.
     * \param keys so much later
     */
    void
    Renumber(uint64_t keys);

  private:
    int64_t
    LargestJump() const;
    void
    Jump(int64_t periods);
    void
    MoveUnit(FabricUnit& unit, int64_t shift, uint64_t keys) const;
    void
    MovePorts(int64_t periods, int64_t shift, uint64_t keys);
    void
    MoveEndpoints(int64_t shift, uint64_t keys);
    void
    MovePairs(int64_t shift);
    void
    MoveEvents(int64_t shift, uint64_t keys);

    FabricParts& m_parts;                    //!< those it works with
    FabricState& m_state;                    //!< of the Fabric
    FabricSnapshot m_present;                //!< of this look
    int64_t m_periods{0};                    //!< of the present jump
    bool m_have{false};                      //!< there is an earlier one
    uint64_t m_since{0};                     //!< looks since it was taken
    uint64_t m_distance{1};                  //!< after so many another is taken
    uint64_t m_nextEvent{0};                 //!< no look before this event
    uint64_t m_patience{1};                  //!< looks in vain since the last jump, at most 16
    uint32_t m_reference{FabricState::NONE}; //!< looks follow a packet of this queue pair
    bool m_due{false};                       //!< it has just sent one
    std::vector<int64_t> m_numbers;          //!< the earlier snapshot
    FabricSnapshot::Mark m_mark;             //!< the rest of it
};

} // namespace ns3

#endif /* FABRIC_JUMPS_H */
