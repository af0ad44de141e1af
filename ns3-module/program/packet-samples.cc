/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#include "packet-samples.h"

#include "base/atomic_file.h"

#include <algorithm>
#include <cstdio>
#include <utility>

using namespace ns3;

PacketSamples::PacketSamples(const lockstep::Topology& topology,
                             const FabricConnections& connections,
                             Ptr<Fabric> fabric,
                             std::string file,
                             int64_t interval)
    : m_topology(topology),
      m_connections(connections),
      m_fabric(fabric),
      m_file(std::move(file)),
      m_interval(interval),
      m_ports(fabric->GetNPorts())
{
    if (!m_file.empty())
    {
        m_fabric->TraceConnectWithoutContext("PortSample",
                                             MakeCallback(&PacketSamples::RecordPort, this));
        m_fabric->TraceConnectWithoutContext("QueuePairSample",
                                             MakeCallback(&PacketSamples::RecordPair, this));
    }
}

void
PacketSamples::RecordPort(const Fabric::PortSample& sample)
{
    const auto bytes = static_cast<int64_t>(sample.bytes);
    Add({0, sample.port, bytes, sample.queue, 0, 0, sample.time});
}

void
PacketSamples::RecordPair(const Fabric::PairSample& sample)
{
    const FabricConnections::Endpoints& ends = m_connections.EndpointsOf(sample.pair);
    const Ends key{ends.source, ends.destination, ends.channel};
    const auto known = m_numbers.find(key);
    int64_t number = 0;
    if (known != m_numbers.end())
    {
        number = known->second;
    }
    else if (m_ends.size() < MOST_ROWS / 4)
    {
        number = static_cast<int64_t>(m_ends.size());
        m_numbers.emplace(key, number);
        m_ends.push_back(key);
    }
    else
    {
        m_leftOut += sample.bytes;
        return;
    }
    Add({0, m_ports + number, sample.bytes, 0, sample.window, sample.rate, sample.time});
}

void
PacketSamples::Add(const Row& row)
{
    // A sample at the end of an interval is of that interval.
    m_rows.push_back(row);
    m_rows.back().bin = std::max<int64_t>(0, row.time - 1) / m_interval;
    if (m_rows.size() < m_most)
    {
        return;
    }
    PutTogether();
    const int64_t now = row.time;
    while (m_rows.size() > MOST_ROWS / 2 && m_interval <= now)
    {
        m_interval *= 2;
        for (Row& each : m_rows)
        {
            each.bin /= 2;
        }
        PutTogether();
        m_fabric->SetSampleInterval(PicoSeconds(static_cast<uint64_t>(m_interval)));
    }
    m_most = std::max(MOST_ROWS, 2 * m_rows.size()); // more ports than that: one interval of all
}

void
PacketSamples::PutTogether()
{
    std::stable_sort(m_rows.begin(),
                     m_rows.end(),
                     [](const Row& a, const Row& b)
                     { return a.bin != b.bin ? a.bin < b.bin : a.index < b.index; });
    std::size_t kept = 0;
    for (const Row& row : m_rows)
    {
        Row* last = kept > 0 ? &m_rows[kept - 1] : nullptr;
        if (last == nullptr || last->bin != row.bin || last->index != row.index)
        {
            m_rows[kept++] = row;
            continue;
        }
        last->bytes += row.bytes;
        last->queue = std::max(last->queue, row.queue);
        if (row.time >= last->time)
        {
            last->window = row.window;
            last->rate = row.rate;
            last->time = row.time;
        }
    }
    m_rows.resize(kept);
}

std::string
PacketSamples::ToCsv() const
{
    std::string text = "kind,from_s,interval_s,source,destination,index,bytes,utilisation,"
                       "queue_bytes,window_bytes,rate_Bps\n";
    char line[256];
    const double interval = static_cast<double>(m_interval) * 1e-12;
    for (const Row& row : m_rows)
    {
        const double from = static_cast<double>(row.bin) * interval;
        if (row.index < m_ports)
        {
            const auto port = static_cast<std::size_t>(row.index);
            const lockstep::Link& link = m_topology.links[port / 2];
            const auto& kind =
                m_topology.class_of(lockstep::LinkId(static_cast<int32_t>(port / 2)));
            const double bits = static_cast<double>(kind.rate.bits_per_second());
            std::snprintf(line,
                          sizeof line,
                          "port,%.12g,%.12g,%d,%d,%zu,%lld,%.6g,%llu,,\n",
                          from,
                          interval,
                          (port % 2 == 0 ? link.a : link.b).value,
                          (port % 2 == 0 ? link.b : link.a).value,
                          port,
                          static_cast<long long>(row.bytes),
                          8 * static_cast<double>(row.bytes) / (bits * interval),
                          static_cast<unsigned long long>(row.queue));
        }
        else
        {
            const auto& [source, destination, channel] =
                m_ends[static_cast<std::size_t>(row.index - m_ports)];
            std::snprintf(line,
                          sizeof line,
                          "connection,%.12g,%.12g,%d,%d,%d,%lld,,,%lld,%.9g\n",
                          from,
                          interval,
                          source,
                          destination,
                          channel,
                          static_cast<long long>(row.bytes),
                          static_cast<long long>(row.window),
                          row.rate / 8);
        }
        text += line;
    }
    if (m_leftOut != 0)
    {
        text += "left_out,,,,,," + std::to_string(m_leftOut) + ",,,,\n";
    }
    return text;
}

void
PacketSamples::Write()
{
    if (m_file.empty())
    {
        return;
    }
    m_fabric->TakeSample();
    PutTogether();
    lockstep::write_file(m_file, ToCsv());
}
