// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The inputs of the layers between the forward and the backward pass, on the device or in host memory. Copies to the
// host run on a stream of their own beside the ops: while one layer's input leaves, the next layer computes, and the
// backward pass asks for an input one layer ahead.

#include <deque>
#include <memory>
#include <vector>

#include "engine/model/op_runner.h"
#include "kernels/context/side_stream.h"

namespace vitrine::engine {

/// Host memory and the stream, for all steps. Belongs to the context's thread.
class ActivationStore {
public:
    explicit ActivationStore(kernels::Context& context) : context_(context) {}

    /// Keeps the tensor of this index. With `offload` it moves to the host; where the host's budget has no room, it
    /// stays on the device.
    void put(std::size_t index, kernels::Tensor tensor, bool offload);
    /// Begins to bring the tensor back, if it is on the host.
    void prefetch(const OpRunner& runner, std::size_t index);
    /// The tensor, for ops from here on.
    kernels::Tensor take(const OpRunner& runner, std::size_t index);
    /// Drops all tensors. The host memory stays for the next step.
    void clear();
    /// The same, before a step begins.
    void begin() {
        clear();
        refused_ = 0;
    }
    /// Drops all tensors and gives the host memory up.
    void giveBack() {
        clear();
        stream_.reset(); // waits for its copies
        host_.clear();
    }
    /// How many of the last step's tensors found no room on the host.
    std::size_t refused() const { return refused_; }

private:
    struct Entry {
        kernels::Tensor device; ///< empty: on the host only
        kernels::Shape shape;
        kernels::SideStream::Point arrived; ///< of a copy to the device
        bool onHost = false;
    };
    /// A tensor whose copy to the host is under way.
    struct Leaving {
        kernels::Tensor tensor;
        kernels::SideStream::Point gone;
    };

    kernels::SideStream& stream();
    bool hostRoom(std::size_t index, std::uint64_t bytes);
    void release(std::size_t keep);

    kernels::Context& context_;
    std::vector<kernels::Buffer> host_; ///< by index
    std::vector<Entry> entries_;
    std::deque<Leaving> leaving_;
    std::size_t refused_ = 0;
    std::unique_ptr<kernels::SideStream> stream_; ///< goes first, and waits for its copies
};

} // namespace vitrine::engine
