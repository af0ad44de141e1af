/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "packet-pipe.h"

#include "base/error.h"

#include <cerrno>
#include <unistd.h>

namespace packet = lockstep::packet;

PacketPipe::PacketPipe(int in, int out)
    : m_in(in),
      m_out(out)
{
}

bool
PacketPipe::ReadAll(char* data, std::size_t size)
{
    std::size_t have = 0;
    while (have < size)
    {
        const ssize_t got = ::read(m_in, data + have, size - have);
        if (got > 0)
        {
            have += static_cast<std::size_t>(got);
        }
        else if (got == 0 && have == 0)
        {
            return false;
        }
        else if (got == 0 || errno != EINTR)
        {
            throw Disconnected();
        }
    }
    return true;
}

bool
PacketPipe::Read(packet::FrameType& type, std::string& text)
{
    packet::FrameHeader header{};
    if (!ReadAll(reinterpret_cast<char*>(&header), sizeof header))
    {
        return false;
    }
    type = header.type;
    const bool known = type == packet::FrameType::kOpen || type == packet::FrameType::kRun ||
                       type == packet::FrameType::kReport || type == packet::FrameType::kChange;
    if (!known)
    {
        throw lockstep::Error("standard input has no request that makes sense here")
            .hint("this program is started by 'lockstep simulate --engine packet'");
    }
    text.resize(header.size);
    if (header.size > 0 && !ReadAll(text.data(), header.size))
    {
        throw Disconnected();
    }
    return true;
}

void
PacketPipe::Write(packet::FrameType type, const std::string& text)
{
    std::string frame;
    Append(frame, packet::FrameHeader{type, static_cast<uint32_t>(text.size())});
    frame += text;
    std::size_t done = 0;
    while (done < frame.size())
    {
        const ssize_t put = ::write(m_out, frame.data() + done, frame.size() - done);
        if (put > 0)
        {
            done += static_cast<std::size_t>(put);
        }
        else if (errno != EINTR)
        {
            throw Disconnected();
        }
    }
}
