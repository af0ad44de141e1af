/*
 * SPDX-License-Identifier: GPL-2.0-only
 *
 * Runs ns-3 test suites outside an ns-3 tree.
 */

#include "ns3/test.h"

int
main(int argc, char** argv)
{
    return ns3::TestRunner::Run(argc, argv);
}
