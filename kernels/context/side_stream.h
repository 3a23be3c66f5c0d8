// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Copies between host and device beside a context's ops: on CUDA on a stream of their own (host memory must be pinned),
// on Meta by a clock of their own, on the CPU at once. Only points order them with the ops and with other side streams.
// Belongs to the thread of its context and must not outlive it.

#include <cstdint>
#include <limits>
#include <memory>

#include "kernels/cuda/cuda_side_stream.h"

namespace vitrine::kernels {

class Context;

class SideStream {
public:
    explicit SideStream(Context& context);
    ~SideStream();                          ///< waits for its copies
    SideStream(const SideStream&) = delete; // owns a stream
    SideStream& operator=(const SideStream&) = delete;

    /// A point in the order of a stream or of the ops. An empty point waits for nothing.
    struct Point {
        CudaEvent event;
        base::TimeNs time = 0; ///< on Meta
    };
    Point point();                     ///< after all copies so far
    Point pointOfOps();                ///< after all ops so far
    void after(const Point& point);    ///< later copies come after it
    void opsAfter(const Point& point); ///< later ops come after it
    /// On Meta: the time at which the host asks for the copies that follow. The host works ahead of a device, so this
    /// may be before earlier work ends. Without this call, copies are asked for when earlier work ends.
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
