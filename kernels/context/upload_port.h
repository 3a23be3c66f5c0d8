// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Lets several threads copy from host memory to a device at once; loads use it. Each worker fills its own pinned
// buffers in turn and sends them to the device, so that reading and copying overlap.

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/context/context.h"

namespace vitrine::kernels {

class UploadPort {
public:
    /// Seconds since the port was made.
    struct Copied {
        std::uint64_t tag = 0;
        double begin = 0, end = 0;
    };
    virtual ~UploadPort() = default;
    virtual int workers() const = 0;
    virtual std::uint64_t bufferBytes() const = 0; ///< of one buffer
    /// The next buffer of `worker`; waits until the last copy from it has ended. Called on that worker's thread.
    virtual void* buffer(int worker) = 0;
    /// Starts the copy of `bytes` at `from`, inside what buffer() gave, to `device`, and returns. `tag` names it in
    /// takeCopied(). From that worker's thread.
    virtual void send(int worker, const void* from, void* device, std::uint64_t bytes, std::uint64_t tag) = 0;
    /// Makes ops that run after this call wait for all copies sent before. Called on the context's thread.
    virtual void beforeCompute() = 0;
    /// Makes copies sent after this call wait for the ops that ran before. Called on the context's thread.
    virtual void afterCompute() = 0;
    /// The copies that have ended since the last call. May be called on any thread.
    virtual std::vector<Copied> takeCopied() = 0;
    /// Waits for every copy. From the context's thread, when no worker is at work. Throws DeviceFault.
    virtual void finish() = 0;
};

/// Makes the port of a context that runs ahead. The port must not outlive the context. Throws OutOfMemory where pinned
/// memory is short.
std::unique_ptr<UploadPort> makeUploadPort(Context& context, int workers, std::uint64_t bufferBytes);

} // namespace vitrine::kernels
