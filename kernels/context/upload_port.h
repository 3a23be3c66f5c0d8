// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Copies from host memory to a device by several threads at once, for loading: each worker fills pinned buffers of its
// own in turn and sends them off, so that reading and copying overlap.

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
    /// The next buffer of `worker`, once its last copy is through. From that worker's thread.
    virtual void* buffer(int worker) = 0;
    /// Starts the copy of `bytes` at `from`, inside what buffer() gave, to `device`, and returns. `tag` names it in
    /// takeCopied(). From that worker's thread.
    virtual void send(int worker, const void* from, void* device, std::uint64_t bytes, std::uint64_t tag) = 0;
    /// Ops that are run from now on come after every copy sent before. From the context's thread.
    virtual void beforeCompute() = 0;
    /// Copies sent from now on come after the ops that were run before. From the context's thread.
    virtual void afterCompute() = 0;
    /// Copies that were seen to end since the last call. From any thread.
    virtual std::vector<Copied> takeCopied() = 0;
    /// Waits for every copy. From the context's thread, when no worker is at work. Throws DeviceFault.
    virtual void finish() = 0;
};

/// Of a context that runs ahead; must not outlive it. Throws OutOfMemory where pinned memory is short.
std::unique_ptr<UploadPort> makeUploadPort(Context& context, int workers, std::uint64_t bufferBytes);

} // namespace vitrine::kernels
