/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef PACKET_PIPE_H
#define PACKET_PIPE_H

#include "simulator/network/packet_engine_protocol.h"

#include <cstddef>
#include <cstdint>
#include <string>

/** Frames of docs/formats/packet-protocol.md over two file descriptors. */
class PacketPipe
{
  public:
    /** The other side has closed its end within a message, or reads no more. */
    struct Disconnected
    {
    };

    /**
     * \param in where requests come from
     * \param out where answers go
     */
    PacketPipe(int in, int out);

    /**
     * Reads a frame.
     * \param type its kind
     * \param text what it holds
     * \return false if there are no more
     */
    bool
    Read(lockstep::packet::FrameType& type, std::string& text);

    /**
     * \param type its kind
     * \param text what it holds
     */
    void
    Write(lockstep::packet::FrameType type, const std::string& text);

  private:
    bool
    ReadAll(char* data, std::size_t size);

    int m_in;  //!< requests
    int m_out; //!< answers
};

/**
 * \param text where to add
 * \param value its bytes
 */
template <class T>
void
Append(std::string& text, const T& value)
{
    text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

#endif /* PACKET_PIPE_H */
