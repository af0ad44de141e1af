/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef FABRIC_EVENT_QUEUE_H
#define FABRIC_EVENT_QUEUE_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ns3
{

/**
 * One thing to happen in a Fabric: plain data instead of an EventImpl, so that the hot path neither
 * allocates nor counts references.
 */
struct FabricEvent
{
    int64_t time;  //!< picoseconds
    uint64_t key;  //!< order among equal times, smallest first
    uint32_t what; //!< kind in the low bits, index of port, message or queue pair above

    static constexpr uint32_t KIND_BITS = 4; //!< so indices end at 2^28

    /**
     * \param kind what happens
     * \param index of what it happens to
     * \return both in one
     */
    static constexpr uint32_t
    Pack(uint32_t kind, uint32_t index)
    {
        return index << KIND_BITS | kind;
    }

    /** \return what happens */
    uint32_t
    GetKind() const
    {
        return what & ((1U << KIND_BITS) - 1);
    }

    /** \return of what it happens to */
    uint32_t
    GetIndex() const
    {
        return what >> KIND_BITS;
    }

    /** \return whether this one happens before the other; times are not negative */
    bool
    Before(const FabricEvent& other) const
    {
        // As one number, so that no branch is taken: which is less is anybody's guess.
        __extension__ using Wide = unsigned __int128;
        const Wide own = static_cast<Wide>(static_cast<uint64_t>(time)) << 64 | key;
        return own < (static_cast<Wide>(static_cast<uint64_t>(other.time)) << 64 | other.key);
    }
};

/**
 * A 4-ary heap of events. It never cancels: an event that no longer holds is recognised by its key
 * when it comes up. Push and Pop are O(log n).
 */
class FabricEventQueue
{
  public:
    /** \return whether nothing is pending */
    bool
    IsEmpty() const
    {
        return m_heap.empty();
    }

    /** \return the earliest event; the queue must not be empty */
    const FabricEvent&
    Top() const
    {
        return m_heap.front();
    }

    /** \return the number of pending events */
    std::size_t
    GetSize() const
    {
        return m_heap.size();
    }

    /** \return the pending events in no order, to be shifted in time all alike */
    std::vector<FabricEvent>&
    Events()
    {
        return m_heap;
    }

    /**
     * \param event the event to add
     */
    void
    Push(const FabricEvent& event)
    {
        std::size_t hole = m_heap.size();
        m_heap.push_back(event);
        while (hole > 0)
        {
            const std::size_t parent = (hole - 1) / ARITY;
            if (!event.Before(m_heap[parent]))
            {
                break;
            }
            m_heap[hole] = m_heap[parent];
            hole = parent;
        }
        m_heap[hole] = event;
    }

    /** Removes the earliest event. */
    void
    Pop()
    {
        const FabricEvent last = m_heap.back();
        m_heap.pop_back();
        if (!m_heap.empty())
        {
            Sink(last);
        }
    }

    /**
     * Pop and Push in one.
     * \param event what takes the place of the earliest event
     */
    void
    ReplaceTop(const FabricEvent& event)
    {
        Sink(event);
    }

  private:
    static constexpr std::size_t ARITY = 4; //!< children of a node

    /**
     * \param a place of an event
     * \param b place of another
     * \return the place of the earlier one, without a branch
     */
    std::size_t
    Earlier(std::size_t a, std::size_t b) const
    {
        const auto swap = static_cast<std::size_t>(m_heap[b].Before(m_heap[a]));
        return a ^ ((a ^ b) & (0 - swap));
    }

    /**
     * \param first the first of a node's children, which is there
     * \param size of the heap
     * \return the earliest of them
     */
    std::size_t
    LeastChild(std::size_t first, std::size_t size) const
    {
        if (first + ARITY <= size)
        {
            return Earlier(Earlier(first, first + 1), Earlier(first + 2, first + 3));
        }
        std::size_t least = first;
        for (std::size_t child = first + 1; child < size; ++child)
        {
            least = Earlier(least, child);
        }
        return least;
    }

    /**
     * Puts an event into the hole at the top.
     * \param event the event
     */
    void
    Sink(const FabricEvent& event)
    {
        const std::size_t size = m_heap.size();
        std::size_t hole = 0;
        for (;;)
        {
            const std::size_t first = hole * ARITY + 1;
            if (first >= size)
            {
                break;
            }
            const std::size_t least = LeastChild(first, size);
            if (!m_heap[least].Before(event))
            {
                break;
            }
            m_heap[hole] = m_heap[least];
            hole = least;
        }
        m_heap[hole] = event;
    }

    std::vector<FabricEvent> m_heap; //!< parent i, children 4 i + 1 to 4 i + 4
};

} // namespace ns3

#endif /* FABRIC_EVENT_QUEUE_H */
