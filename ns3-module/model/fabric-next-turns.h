/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_NEXT_TURNS_H
#define FABRIC_NEXT_TURNS_H

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ns3
{

/**
 * Whose turn it is: the earliest of some times, of equal ones the first. A tournament: each of a
 * power of two of players has a leaf, and each node above the earlier of its two children. Setting
 * a time is O(log n), without a branch that depends on times; looking is O(1).
 */
class FabricNextTurns
{
  public:
    /** When a player has its next turn. */
    struct Turn
    {
        int64_t time; //!< ps, INT64_MAX if there is none
        uint32_t who; //!< number of the player

        /** \return whether it comes after the other */
        bool
        operator>(const Turn& other) const
        {
            return time != other.time ? time > other.time : who > other.who;
        }
    };

    /** One more player, who has no turn yet. */
    void
    Add()
    {
        if (m_count == m_leaves)
        {
            m_leaves = m_leaves == 0 ? 1 : m_leaves * 2;
            const std::vector<Turn> before = std::move(m_tree);
            m_tree.assign(2 * m_leaves, Turn{INT64_MAX, UINT32_MAX});
            for (std::size_t i = 0; i < m_count; ++i)
            {
                Set(static_cast<uint32_t>(i), before[m_leaves / 2 + i].time);
            }
        }
        ++m_count;
        Set(static_cast<uint32_t>(m_count - 1), INT64_MAX);
    }

    /**
     * \param who a player
     * \param time ps of its next turn, INT64_MAX: none
     */
    void
    Set(uint32_t who, int64_t time)
    {
        ++m_changes;
        std::size_t place = m_leaves + who;
        Turn first{time, who};
        m_tree[place] = first;
        for (; place > 1; place /= 2)
        {
            first = Earlier(first, place);
            m_tree[place / 2] = first;
        }
    }

    /** \return the next turn; its time is INT64_MAX if nobody has one */
    const Turn&
    First() const
    {
        return m_tree[1];
    }

    /**
     * \param who a player
     * \return the next turn of the others
     */
    Turn
    FirstBut(uint32_t who) const
    {
        Turn first{INT64_MAX, UINT32_MAX};
        for (std::size_t place = m_leaves + who; place > 1; place /= 2)
        {
            first = Earlier(first, place);
        }
        return first;
    }

    /** \return how often a turn was set */
    uint64_t
    GetChanges() const
    {
        return m_changes;
    }

  private:
    /**
     * \param turn the earliest below a place
     * \param place not the root
     * \return that, or the one beside the place if it is earlier; of equal ones the left one
     */
    Turn
    Earlier(const Turn& turn, std::size_t place) const
    {
        const Turn& beside = m_tree[place ^ 1];
        const bool goes =
            static_cast<uint64_t>(beside.time) < static_cast<uint64_t>(turn.time) + (place & 1);
        return {goes ? beside.time : turn.time, goes ? beside.who : turn.who};
    }

    std::vector<Turn> m_tree; //!< children of i: 2 i and 2 i + 1; leaves last
    std::size_t m_leaves{0};  //!< a power of two
    std::size_t m_count{0};   //!< players
    uint64_t m_changes{0};    //!< calls of Set()
};

} // namespace ns3

#endif /* FABRIC_NEXT_TURNS_H */
