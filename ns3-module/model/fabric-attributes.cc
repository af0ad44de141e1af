/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Attributes and trace sources of a Fabric.
 */
#include "fabric.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/enum.h"
#include "ns3/pointer.h"
#include "ns3/trace-source-accessor.h"
#include "ns3/uinteger.h"

namespace ns3
{

NS_OBJECT_ENSURE_REGISTERED(Fabric);

TypeId
Fabric::GetTypeId()
{
    static TypeId tid =
        TypeId("ns3::Fabric")
            .SetParent<Object>()
            .SetGroupName("Lockstep")
            .AddConstructor<Fabric>()
            .AddAttribute("Payload",
                          "Data bytes of a full packet.",
                          UintegerValue(4096),
                          MakeUintegerAccessor(Own(&FabricParameters::payload)),
                          MakeUintegerChecker<uint32_t>(1, 1 << 24))
            .AddAttribute("Header",
                          "Bytes on the wire that a data packet adds to its payload.",
                          UintegerValue(62),
                          MakeUintegerAccessor(Own(&FabricParameters::header)),
                          MakeUintegerChecker<uint32_t>(0, 65535))
            .AddAttribute("AckSize",
                          "Bytes on the wire of an ACK.",
                          UintegerValue(60),
                          MakeUintegerAccessor(Own(&FabricParameters::ackSize)),
                          MakeUintegerChecker<uint32_t>(0, 65535))
            .AddAttribute(
                "AckInterval",
                "Packets that one ACK confirms; the last packet of a message and a marked "
                "one are confirmed at once.",
                UintegerValue(4),
                MakeUintegerAccessor(Own(&FabricParameters::ackInterval)),
                MakeUintegerChecker<uint32_t>(1, 65535))
            .AddAttribute("WaitForAck",
                          "A message is delivered when its sender has the last ACK, not when its "
                          "receiver has the last byte.",
                          BooleanValue(false),
                          MakeBooleanAccessor(Own(&FabricParameters::waitForAck)),
                          MakeBooleanChecker())
            .AddAttribute(
                "Window",
                "Bytes that a queue pair may have under way (it stops once so many are, so "
                "it overshoots by up to a packet). 0: its bandwidth-delay product times "
                "WindowFactor, and not less than two ACKs of several packets confirm.",
                UintegerValue(0),
                MakeUintegerAccessor(Own(&FabricParameters::window)),
                MakeUintegerChecker<uint64_t>(0, INT64_MAX))
            .AddAttribute("WindowFactor",
                          "Automatic windows are so many bandwidth-delay products.",
                          DoubleValue(2.0),
                          MakeDoubleAccessor(Own(&FabricParameters::windowFactor)),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute(
                "Train",
                "Longest train: so many packets of a message are carried as one unit where no "
                "other message wants the port and no queue is near. 1: every packet by itself.",
                UintegerValue(1),
                MakeUintegerAccessor(Own(&FabricParameters::train)),
                MakeUintegerChecker<uint32_t>(1, 1024))
            .AddAttribute("CutThrough",
                          "Switches send a packet on as soon as its first 64 bytes have come; "
                          "otherwise once all of it has.",
                          BooleanValue(false),
                          MakeBooleanAccessor(Own(&FabricParameters::cutThrough)),
                          MakeBooleanChecker())
            .AddAttribute("Processing",
                          "Time from a packet's arrival at a switch until it may leave.",
                          TimeValue(PicoSeconds(0)),
                          MakeTimeAccessor(Own(&FabricParameters::processing)),
                          MakeTimeChecker(PicoSeconds(0)))
            .AddAttribute("Rounding",
                          "How transmission times are made whole.",
                          EnumValue(FABRIC_UP_TO_PICOSECOND),
                          MakeEnumAccessor(Own(&FabricParameters::rounding)),
                          MakeEnumChecker(FABRIC_UP_TO_PICOSECOND,
                                          "UpToPicosecond",
                                          FABRIC_DOWN_TO_NANOSECOND,
                                          "DownToNanosecond"))
            .AddAttribute("TieOrder",
                          "In which order simultaneous events happen.",
                          EnumValue(FABRIC_SCHEDULED),
                          MakeEnumAccessor(Own(&FabricParameters::tieOrder)),
                          MakeEnumChecker(FABRIC_SCHEDULED, "Scheduled", FABRIC_RANDOM, "Random"))
            .AddAttribute(
                "SendJitter",
                "Each message begins later by a uniform draw from 0 to this: hosts are not "
                "exact. Messages of a queue pair keep their order.",
                TimeValue(PicoSeconds(0)),
                MakeTimeAccessor(Own(&FabricParameters::sendJitter)),
                MakeTimeChecker(PicoSeconds(0)))
            .AddAttribute("AckHighPriority",
                          "PFC at a host does not hold up its ACKs.",
                          BooleanValue(true),
                          MakeBooleanAccessor(Own(&FabricParameters::ackPriority)),
                          MakeBooleanChecker())
            .AddAttribute("AckFirst",
                          "ACKs go before data of their class at every port, so that they do not "
                          "wait in the queues of what goes the other way.",
                          BooleanValue(true),
                          MakeBooleanAccessor(Own(&FabricParameters::ackFirst)),
                          MakeBooleanChecker())
            .AddAttribute(
                "Classes",
                "Traffic classes: queues of every port, served in strict priority, class 0 "
                "first; marks, buffer thresholds and pauses are each class's own. Queue "
                "pairs are in the last one unless they are given another.",
                UintegerValue(1),
                MakeUintegerAccessor(Own(&FabricParameters::classes)),
                MakeUintegerChecker<uint32_t>(1, FabricPort::MAX_CLASSES))
            .AddAttribute(
                "AckClass",
                "Traffic class of ACKs, with the marks that they echo (CNPs); the last one "
                "if there are fewer.",
                UintegerValue(0),
                MakeUintegerAccessor(Own(&FabricParameters::ackClass)),
                MakeUintegerChecker<uint32_t>(0, FabricPort::MAX_CLASSES - 1))
            .AddAttribute("FinishedLeaveWhenMet",
                          "Finished queue pairs stay in their port's round robin until it meets "
                          "one, and then leave without the turn being adjusted (SimAI); otherwise "
                          "they leave at once and the turn stays.",
                          BooleanValue(false),
                          MakeBooleanAccessor(Own(&FabricParameters::scanOrder)),
                          MakeBooleanChecker())
            .AddAttribute(
                "Buffer",
                "Bytes of a switch's shared buffer, at least a packet's; 0: without limit, and "
                "neither PFC nor drops. What ports reserve takes at most half of it.",
                UintegerValue(32 << 20),
                MakeUintegerAccessor(Own(&FabricParameters::buffer)),
                MakeUintegerChecker<uint64_t>())
            .AddAttribute("PortReserve",
                          "Bytes of the buffer that belong to each port of a switch.",
                          UintegerValue(4096),
                          MakeUintegerAccessor(Own(&FabricParameters::portReserve)),
                          MakeUintegerChecker<uint64_t>())
            .AddAttribute(
                "HeadroomPackets",
                "Full packets (or trains) of headroom for each port of a switch beside three "
                "link delays at line rate.",
                UintegerValue(4),
                MakeUintegerAccessor(Own(&FabricParameters::headroomPackets)),
                MakeUintegerChecker<uint32_t>(0, 1000))
            .AddAttribute("Pfc",
                          "Switches pause those who send to them instead of dropping.",
                          BooleanValue(true),
                          MakeBooleanAccessor(Own(&FabricParameters::pfc)),
                          MakeBooleanChecker())
            .AddAttribute("NvSwitchFlowControl",
                          "NVSwitches hold up senders as switches with PFC do; otherwise their "
                          "buffers have no limit.",
                          BooleanValue(true),
                          MakeBooleanAccessor(Own(&FabricParameters::nvswitchFlow)),
                          MakeBooleanChecker())
            .AddAttribute(
                "NvLinkCredits",
                "Bytes that the end of an NVLink keeps for what comes over it: credits of "
                "the sender, which sends nothing without. 0: NVSwitches have the buffer "
                "and thresholds of switches with PFC. Only with NvSwitchFlowControl.",
                UintegerValue(1 << 20),
                MakeUintegerAccessor(Own(&FabricParameters::nvlinkCredits)),
                MakeUintegerChecker<uint64_t>(0, INT64_MAX))
            .AddAttribute("PfcAlpha",
                          "Share of the free shared buffer that one ingress port may use before it "
                          "is paused (lossless), or one egress queue before it drops (lossy).",
                          DoubleValue(0.125),
                          MakeDoubleAccessor(Own(&FabricParameters::pfcAlpha)),
                          MakeDoubleChecker<double>(0.0, 64.0))
            .AddAttribute(
                "PfcAlphaByRate",
                "PfcAlpha is of ports that are not faster than the first port of the first "
                "host (SimAI). Each halving that brings a faster one down to that doubles it, "
                "up to 1.",
                BooleanValue(false),
                MakeBooleanAccessor(Own(&FabricParameters::pfcAlphaByRate)),
                MakeBooleanChecker())
            .AddAttribute("DynamicThreshold",
                          "Pauses and drops begin at PfcAlpha of what is free; otherwise at "
                          "PfcThreshold.",
                          BooleanValue(true),
                          MakeBooleanAccessor(Own(&FabricParameters::dynamicThreshold)),
                          MakeBooleanChecker())
            .AddAttribute(
                "PfcThreshold",
                "Bytes beyond its reserve at which a class of a port is paused (lossless), "
                "or an egress queue drops (lossy), without DynamicThreshold. 0: an equal "
                "part of the shared buffer for each class of each port.",
                UintegerValue(0),
                MakeUintegerAccessor(Own(&FabricParameters::pfcThreshold)),
                MakeUintegerChecker<uint64_t>(0, INT64_MAX))
            .AddAttribute("ResumeOffset",
                          "Bytes below the pause threshold at which a port may go on.",
                          UintegerValue(3072),
                          MakeUintegerAccessor(Own(&FabricParameters::resumeOffset)),
                          MakeUintegerChecker<uint64_t>())
            .AddAttribute("FastForward",
                          "Jump over what repeats exactly; the result is the same. Only under "
                          "FabricSimulatorImpl.",
                          BooleanValue(true),
                          MakeBooleanAccessor(Own(&FabricParameters::fastForward)),
                          MakeBooleanChecker())
            .AddAttribute("SampleInterval",
                          "Time between samples of ports and queue pairs (trace sources PortSample "
                          "and QueuePairSample); 0: there are none. With samples nothing is jumped "
                          "over.",
                          TimeValue(PicoSeconds(0)),
                          MakeTimeAccessor(Own(&FabricParameters::sampleInterval)),
                          MakeTimeChecker(PicoSeconds(0)))
            .AddAttribute("Ecn",
                          "Switches mark packets, if the congestion control heeds marks.",
                          BooleanValue(true),
                          MakeBooleanAccessor(Own(&FabricParameters::ecn)),
                          MakeBooleanChecker())
            .AddAttribute("DeterministicMarks",
                          "Marking probabilities are added up and each whole one marks, instead of "
                          "a draw a packet.",
                          BooleanValue(false),
                          MakeBooleanAccessor(Own(&FabricParameters::deterministicMarks)),
                          MakeBooleanChecker())
            .AddAttribute("KminPerGbps",
                          "Bytes of queue per Gbps of the port where marking begins, for rates "
                          "without a row of their own.",
                          DoubleValue(2000),
                          MakeDoubleAccessor(Own(&FabricParameters::kminFactor)),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute("KmaxPerGbps",
                          "The same where all packets are marked.",
                          DoubleValue(8000),
                          MakeDoubleAccessor(Own(&FabricParameters::kmaxFactor)),
                          MakeDoubleChecker<double>(0.0))
            .AddAttribute("Pmax",
                          "Marking probability just below the upper threshold.",
                          DoubleValue(0.2),
                          MakeDoubleAccessor(Own(&FabricParameters::pmax)),
                          MakeDoubleChecker<double>(0.0, 1.0))
            .AddAttribute("Pacing",
                          "Queue pairs keep to their rates; otherwise only windows hold them back.",
                          BooleanValue(true),
                          MakeBooleanAccessor(Own(&FabricParameters::pacing)),
                          MakeBooleanChecker())
            .AddAttribute("LossRate",
                          "Probability that a link damages a packet, added to each link's own.",
                          DoubleValue(0.0),
                          MakeDoubleAccessor(Own(&FabricParameters::lossRate)),
                          MakeDoubleChecker<double>(0.0, 1.0))
            .AddAttribute("RetransmitTimeout",
                          "A queue pair whose ACKs make no progress for so long sends again. Only "
                          "where packets may be lost.",
                          TimeValue(MicroSeconds(500)),
                          MakeTimeAccessor(Own(&FabricParameters::retransmit)),
                          MakeTimeChecker(NanoSeconds(1)))
            .AddAttribute("RetryLimit",
                          "A queue pair gives up after so many timeouts in a row without progress.",
                          UintegerValue(100),
                          MakeUintegerAccessor(Own(&FabricParameters::retryLimit)),
                          MakeUintegerChecker<uint32_t>(1))
            .AddAttribute("RecoveryChunk",
                          "Bytes, from a message's start on, that a receiver with Recovery "
                          "GoBackToZero gives up together. 0: the whole message.",
                          UintegerValue(4000),
                          MakeUintegerAccessor(Own(&FabricParameters::recoveryChunk)),
                          MakeUintegerChecker<uint64_t>(0, INT64_MAX))
            .AddAttribute(
                "Recovery",
                "What is sent again after a loss: all from the missing byte on; all from the "
                "start of the RecoveryChunk that misses one; or what is missing, one gap at a "
                "time. After a timeout all that is not confirmed is.",
                EnumValue(FABRIC_GO_BACK_N),
                MakeEnumAccessor(Own(&FabricParameters::recovery)),
                MakeEnumChecker(FABRIC_GO_BACK_N,
                                "GoBackN",
                                FABRIC_GO_BACK_TO_ZERO,
                                "GoBackToZero",
                                FABRIC_SELECTIVE_REPEAT,
                                "SelectiveRepeat"))
            .AddAttribute(
                "WayChoice",
                "How a queue pair with several ways chooses: each packet the next one; the "
                "next one after a gap of FlowletGap; each packet the one whose longest "
                "queue is shortest.",
                EnumValue(FABRIC_SPRAY),
                MakeEnumAccessor(Own(&FabricParameters::wayChoice)),
                MakeEnumChecker(FABRIC_SPRAY,
                                "Spray",
                                FABRIC_FLOWLET,
                                "Flowlet",
                                FABRIC_ADAPTIVE,
                                "Adaptive"))
            .AddAttribute("FlowletGap",
                          "A queue pair that has sent nothing for so long may take another way.",
                          TimeValue(MicroSeconds(10)),
                          MakeTimeAccessor(Own(&FabricParameters::flowletGap)),
                          MakeTimeChecker(PicoSeconds(0)))
            .AddAttribute("StormTime",
                          "A port that is paused without a break for so long counts a PFC storm.",
                          TimeValue(MilliSeconds(1)),
                          MakeTimeAccessor(Own(&FabricParameters::stormTime)),
                          MakeTimeChecker(NanoSeconds(1)))
            .AddAttribute("NackInterval",
                          "A receiver asks for the same byte again after so long at the earliest.",
                          TimeValue(MicroSeconds(500)),
                          MakeTimeAccessor(Own(&FabricParameters::nackInterval)),
                          MakeTimeChecker(PicoSeconds(0)))
            .AddAttribute("CongestionControl",
                          "What sets rates and windows; none if not given.",
                          PointerValue(),
                          MakePointerAccessor(Own(&FabricParameters::control)),
                          MakePointerChecker<FabricCongestionControl>())
            .AddTraceSource("Message",
                            "A message was delivered.",
                            MakeTraceSourceAccessor(Own(&FabricTraces::message)),
                            "ns3::Fabric::MessageTracedCallback")
            .AddTraceSource("Pfc",
                            "A port is told to stop or to go on, when the frame has come: time in "
                            "ps, node that holds the packets, port that is told, traffic class, "
                            "whether to stop. What fast-forward jumps over has none.",
                            MakeTraceSourceAccessor(Own(&FabricTraces::pause)),
                            "ns3::Fabric::PfcTracedCallback")
            .AddTraceSource("Storm",
                            "A port goes on that was paused for StormTime or longer: time in ps, "
                            "port, ps paused.",
                            MakeTraceSourceAccessor(Own(&FabricTraces::storm)),
                            "ns3::Fabric::StormTracedCallback")
            .AddTraceSource("PortSample",
                            "What a port did since its last sample.",
                            MakeTraceSourceAccessor(Own(&FabricTraces::portSample)),
                            "ns3::Fabric::PortSampleTracedCallback")
            .AddTraceSource("QueuePairSample",
                            "What a queue pair did since its last sample.",
                            MakeTraceSourceAccessor(Own(&FabricTraces::pairSample)),
                            "ns3::Fabric::PairSampleTracedCallback")
            .AddTraceSource("Drop",
                            "A unit was lost: time in ps, port, bytes.",
                            MakeTraceSourceAccessor(Own(&FabricTraces::drop)),
                            "ns3::Fabric::DropTracedCallback");
    return tid;
}

} // namespace ns3
