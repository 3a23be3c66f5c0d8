// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Replays a trace of requests against an engine at the times at which they arrived.

#include <string>
#include <vector>

#include "engine/generation/batch_engine.h"

namespace vitrine::engine {

struct ArrivingRequest {
    GenerateRequest request;
    double arrival = 0;  ///< seconds from the start, never less than that of the one before
    std::string refusal; ///< why it cannot even be asked for; empty: it can
};

/// Until the last request has ended. Waits for arrivals; on virtual time the clock moves on to them. Request i of the
/// engine is request i of `requests`; the engine must be fresh. Throws what steps throw, after engine.abandon().
void replayRequests(BatchEngine& engine, kernels::Context& context, std::vector<ArrivingRequest> requests);

} // namespace vitrine::engine
