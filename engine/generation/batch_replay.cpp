// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/generation/batch_replay.h"

#include <limits>
#include <new>

#include "base/error.h"

namespace vitrine::engine {
namespace {

void replay(BatchEngine& engine, kernels::Context& context, std::vector<ArrivingRequest>& requests) {
    const base::TimeNs start = context.clock().now();
    const auto arrivalOf = [&](std::size_t i) { return start + static_cast<base::TimeNs>(requests[i].arrival * 1e9); };
    std::size_t next = 0;
    for (;;) {
        for (; next < requests.size() && arrivalOf(next) <= context.clock().now(); ++next) {
            if (requests[next].refusal.empty()) {
                engine.add(std::move(requests[next].request), arrivalOf(next));
            } else {
                engine.refuse(requests[next].refusal, arrivalOf(next));
            }
        }
        if (next == requests.size()) {
            engine.close();
        }
        engine.jumpUntil(next < requests.size() ? arrivalOf(next) : std::numeric_limits<base::TimeNs>::max());
        if (engine.step()) {
            continue;
        }
        if (next == requests.size()) {
            break;
        }
        context.waitUntil(arrivalOf(next));
    }
    if (engine.scheduler().queued() + engine.scheduler().running() > 0) {
        throw base::Internal("requests wait for a batch that cannot come");
    }
}

} // namespace

void replayRequests(BatchEngine& engine, kernels::Context& context, std::vector<ArrivingRequest> requests) {
    const kernels::TraceScope phase(context.tracer(), base::ScopeKind::Phase, "serve");
    try {
        replay(engine, context, requests);
        engine.finish();
    } catch (const base::Error& error) {
        engine.abandon(finishReasonOf(error));
        throw;
    } catch (const std::bad_alloc&) {
        engine.abandon(FinishReason::OutOfMemory);
        throw;
    } catch (...) {
        engine.abandon(FinishReason::Failed);
        throw;
    }
}

} // namespace vitrine::engine
