// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Copies from the host by several threads at once, for loading: each worker fills pinned buffers of its own in turn and
// sends them off on a stream of its own, so that reading and copying overlap.

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/cuda_context.h"
#include "kernels/memory/resource.h"

namespace vitrine::kernels {

class CudaUpload {
public:
    static constexpr int kBuffersPerWorker = 3; ///< one is read into, one is copied, one waits for its turn

    /// Takes workers * kBuffersPerWorker * bufferBytes of `pinned` at once. `bufferBytes` is a multiple of 4096.
    CudaUpload(CudaContext& context, MemoryResource& pinned, int workers, std::uint64_t bufferBytes);
    ~CudaUpload();
    CudaUpload(const CudaUpload&) = delete; // threads hold its address
    CudaUpload& operator=(const CudaUpload&) = delete;

    std::uint64_t bufferBytes() const;
    /// The next buffer of `worker` (aligned to 4096), once its last copy is through. From that worker's thread.
    void* buffer(int worker);
    /// Starts the copy of `bytes` at `from`, inside what buffer() gave, to `device`, and returns. `tag` names it in
    /// takeCopied(). From that worker's thread.
    void send(int worker, const void* from, void* device, std::uint64_t bytes, std::uint64_t tag);

    /// Work that the compute stream gets from now on comes after every copy sent before. From the context's thread.
    void beforeCompute();
    /// Copies sent from now on come after the work that the compute stream has. From the context's thread.
    void afterCompute();

    /// Seconds since the constructor returned, by the device's clock.
    struct Copied {
        std::uint64_t tag = 0;
        double begin = 0, end = 0;
    };
    /// Copies that were seen to end since the last call. From any thread.
    std::vector<Copied> takeCopied();

    /// Waits for every copy. From the context's thread, when no worker is at work. Throws DeviceFault.
    void finish();

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::kernels
