// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How the bytes of weights get from files to their places on a context: read there by the CPU's threads; through pinned
// buffers and copies on CUDA, reading and copying at once; only priced on Meta.
//
// A mover belongs to the thread of its context and must not outlive it, nor what its moves point to. Packed weights
// are checked on the way (BadInput "FILE: TENSOR: what"). Movers report spans on the lanes "Read" and "Copy".

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/model/weight_layout.h"
#include "kernels/context/upload_port.h"

namespace vitrine::engine {

/// Bytes of one source that go to one address of the context.
struct WeightMove {
    const WeightSource* source = nullptr;
    std::uint64_t offset = 0; ///< inside the tensor
    std::uint64_t bytes = 0;
    std::byte* out = nullptr;
};

class WeightMover {
public:
    virtual ~WeightMover() = default;

    /// Takes a move; it happens now or later. Throws what reading throws, Cancelled, DeviceFault; so do the others.
    virtual void move(const WeightMove& move) = 0;
    /// Ops run from now on find the first `count` moves in place.
    virtual void wait(std::uint64_t count) = 0;
    /// Moves from now on may write over what ops that were run until now read.
    virtual void reuse() = 0;
    /// Everything is in place.
    virtual void finish() = 0;
};

/// Throws BadInput where `data`, the bytes of the move, are damaged (checkStoredBytes).
void checkMovedBytes(const WeightMove& move, const void* data);

/// Called on the context's thread when bytes of a source have been read.
using MovedCallback = std::function<void(const WeightSource& source, std::uint64_t bytes)>;

/// The mover of a context. `total` bytes are going to be moved: what buffers are worth having.
std::unique_ptr<WeightMover> makeWeightMover(kernels::Context& context, std::uint64_t total, MovedCallback moved);

using kernels::UploadPort;

/// A mover whose threads (one for each worker of the port) read files into the port's buffers and send them off.
std::unique_ptr<WeightMover> makePipelineMover(kernels::Context& context, std::unique_ptr<UploadPort> port,
                                               MovedCallback moved);

/// Threads and buffer bytes of a pipeline over `total` bytes: what `vitrine bench load` measures, too.
struct PipelineShape {
    int workers = 1;
    std::uint64_t bufferBytes = 0; ///< with room for what reading past the page cache needs
    std::uint64_t pieceBytes = 0;
};
PipelineShape pipelineShape(std::uint64_t total);

} // namespace vitrine::engine
