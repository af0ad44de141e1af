/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_NEXT_TURNS_H
#define FABRIC_NEXT_TURNS_H

#include <cstdint>
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
        std::size_t place = m_leaves + who;
        m_tree[place] = {time, who};
        while (place > 1)
        {
            const Turn& left = m_tree[place & ~std::size_t{1}];
            const Turn& right = m_tree[place | 1];
            place /= 2;
            m_tree[place] = right.time < left.time ? right : left;
        }
    }

    /**
     * \param who a player
     * \return ps of its next turn
     */
    int64_t
    Get(uint32_t who) const
    {
        return m_tree[m_leaves + who].time;
    }

    /** \return the next turn; its time is INT64_MAX if nobody has one */
    const Turn&
    First() const
    {
        return m_tree[1];
    }

  private:
    std::vector<Turn> m_tree; //!< children of i: 2 i and 2 i + 1; leaves last
    std::size_t m_leaves{0};  //!< a power of two
    std::size_t m_count{0};   //!< players
};

} // namespace ns3

#endif /* FABRIC_NEXT_TURNS_H */
