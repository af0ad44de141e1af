/*
 * SPDX-License-Identifier: GPL-2.0-only
 */
#ifndef PACKET_ATTRIBUTES_H
#define PACKET_ATTRIBUTES_H

#include "base/json.h"

#include "ns3/fabric-congestion-control.h"
#include "ns3/object.h"

#include <string>

/**
 * Sets attributes of an ns-3 object; an error names the attribute and what it may be.
 * \param object an ns-3 object
 * \param attributes names and values
 */
void
SetAttributes(ns3::Ptr<ns3::Object> object, const lockstep::JsonView& attributes);

/**
 * \param name of a congestion control, as on the command line
 * \return a new one
 */
ns3::Ptr<ns3::FabricCongestionControl>
MakeCongestionControl(const std::string& name);

#endif /* PACKET_ATTRIBUTES_H */
