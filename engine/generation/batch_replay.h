// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Replays a request trace against an engine: each request is added at its arrival time.

#include <string>
#include <vector>

#include "engine/generation/batch_engine.h"

namespace vitrine::engine {

struct ArrivingRequest {
    GenerateRequest request;
    double arrival = 0;  ///< seconds from the start, not less than those of the request before
    std::string refusal; ///< why the engine is not asked to serve it; empty: it is
};

/// Serves `requests` and returns when the last one has ended. Waits for arrivals; virtual time moves on to the next
/// arrival instead. REQUIRES an engine without requests: request i of the engine is then request i of `requests`. When
/// a step throws, it calls engine.abandon() and rethrows.
void replayRequests(BatchEngine& engine, kernels::Context& context, std::vector<ArrivingRequest> requests);

} // namespace vitrine::engine
