// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Moves the bytes of weights from files to their places in the memory of a context. On the CPU, threads read the files
// straight to these places. On CUDA, threads read into pinned buffers and copy from there to the device, both at the
// same time. On Meta the move is only priced.
//
// A mover belongs to the thread of its context. It must not outlive the context, nor the sources and the memory that
// its moves point to. It checks the bytes of packed weights while it moves them and throws BadInput "FILE: TENSOR:
// what" for damaged ones. It reports spans on the lanes "Read" and "Copy".

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/model/weight_layout.h"
#include "kernels/context/upload_port.h"

namespace vitrine::engine {

/// A range of bytes of one source, and the address in the context's memory that receives it.
struct WeightMove {
    const WeightSource* source = nullptr;
    std::uint64_t offset = 0; ///< of the first byte in the source tensor
    std::uint64_t bytes = 0;
    std::byte* out = nullptr;
};

class WeightMover {
public:
    virtual ~WeightMover() = default;

    /// Accepts a move. The bytes are moved in this call or later. All functions of a mover throw what reading a file
    /// throws, Cancelled and DeviceFault.
    virtual void move(const WeightMove& move) = 0;
    /// Makes the bytes of the first `count` moves visible to ops that run after this call.
    virtual void wait(std::uint64_t count) = 0;
    /// Lets moves after this call overwrite memory that earlier ops read: those moves wait for these ops.
    virtual void reuse() = 0;
    /// Returns when all bytes are in place.
    virtual void finish() = 0;
};

/// Checks `data`, the bytes of the move, and throws BadInput when they are damaged (checkStoredBytes).
void checkMovedBytes(const WeightMove& move, const void* data);

/// Called on the context's thread when bytes of a source have been read.
using MovedCallback = std::function<void(const WeightSource& source, std::uint64_t bytes)>;

/// Makes the mover for a context. `total` is how many bytes will be moved in all; the sizes of the buffers follow from
/// it.
std::unique_ptr<WeightMover> makeWeightMover(kernels::Context& context, std::uint64_t total, MovedCallback moved);

using kernels::UploadPort;

/// Makes a mover with one thread for each worker of the port. The threads read files into the port's buffers and send
/// these to the device.
std::unique_ptr<WeightMover> makePipelineMover(kernels::Context& context, std::unique_ptr<UploadPort> port,
                                               MovedCallback moved);

/// Number of threads and sizes of buffers of a pipeline that moves `total` bytes. `vitrine bench load` measures with
/// the same numbers.
struct PipelineShape {
    int workers = 1;
    std::uint64_t bufferBytes = 0; ///< a piece, and the alignment that a read past the page cache needs
    std::uint64_t pieceBytes = 0;
};
PipelineShape pipelineShape(std::uint64_t total);

} // namespace vitrine::engine
