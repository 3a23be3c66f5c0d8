// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// A stream of its own for copies between pinned host memory and the device, ordered with others by events alone.

#include <cstdint>
#include <memory>

#include "kernels/cuda/cuda_context.h"

namespace vitrine::kernels {

class CudaSideStream {
public:
    explicit CudaSideStream(CudaContext& context);
    ~CudaSideStream();                              ///< waits for its copies
    CudaSideStream(const CudaSideStream&) = delete; // owns a stream
    CudaSideStream& operator=(const CudaSideStream&) = delete;

    void copyToHost(const void* device, void* host, std::uint64_t bytes);
    void copyToDevice(const void* host, void* device, std::uint64_t bytes);
    CudaEvent record();                           ///< a point after all copies so far
    void waitFor(const CudaEvent& event);         ///< later copies wait for it
    void computeWaitsFor(const CudaEvent& event); ///< later work of the compute stream waits for it

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace vitrine::kernels
