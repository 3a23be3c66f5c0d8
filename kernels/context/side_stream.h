// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Copies between host and device beside a context's ops: on CUDA on a stream of their own (host memory must be pinned), on
// Meta by a clock of their own, on the CPU at once. Ordered with the ops, and with other side streams, by points alone.
// Belongs to the thread of its context and must not outlive it.

#include <cstdint>
#include <limits>
#include <memory>

#include "kernels/context/context.h"
#include "kernels/cuda/cuda_side_stream.h"

namespace vitrine::kernels {

class SideStream {
public:
    explicit SideStream(Context& context);
    ~SideStream();                          ///< waits for its copies
    SideStream(const SideStream&) = delete; // owns a stream
    SideStream& operator=(const SideStream&) = delete;

    /// A place in the order of a stream or of the ops; an empty one is behind nothing.
    struct Point {
        CudaEvent event;
        base::TimeNs time = 0; ///< on Meta
    };
    Point point();                     ///< behind the copies so far
    Point pointOfOps();                ///< behind the ops so far
    void after(const Point& point);    ///< copies from here on come after it
    void opsAfter(const Point& point); ///< ops from here on come after it
    /// On Meta: when the host asks for the copies that follow. A device is fed ahead, so that may be before what it was given
    /// ends, which is when copies are asked for otherwise.
    void askedAt(base::TimeNs time) { asked_ = time; }

    void toHost(const void* device, void* host, std::uint64_t bytes);
    void toDevice(const void* host, void* device, std::uint64_t bytes);

private:
    bool copyOnMeta(std::uint64_t bytes);

    Context& context_;
    std::unique_ptr<CudaSideStream> cuda_;
    base::TimeNs time_ = 0; ///< on Meta: when the last copy ends
    base::TimeNs asked_ = std::numeric_limits<base::TimeNs>::max();
};

} // namespace vitrine::kernels
