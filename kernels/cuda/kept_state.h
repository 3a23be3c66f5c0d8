// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What one context leaves to the next of the same process, for processes that serve run after run: the CUDA context
// with its compiled and loaded kernels, and the reservation that holds a model's weights. One context at a time uses
// it; it must outlive them.

#include <optional>
#include <string>

#include "kernels/cuda/cuda_context.h"
#include "kernels/memory/handover.h"

namespace vitrine::kernels {

class KeptState {
public:
    KeptState() = default;
    ~KeptState() { release(); }
    KeptState(const KeptState&) = delete; // contexts hold its address
    KeptState& operator=(const KeptState&) = delete;

    /// Returns the kept context if it was made with these options and the files of kernel packs are the same. Otherwise
    /// frees everything kept and makes a new context. The context then belongs to the calling thread. Throws what
    /// CudaContext throws.
    CudaContext takeCuda(const CudaOptions& options);
    /// Keeps the context. If the device has a fault, nothing stays kept.
    void giveCuda(CudaContext&& cuda) noexcept;

    /// `key` names everything that the bytes depend on.
    bool hasWeights(const std::string& key) const { return !weights_.empty() && weightsKey_ == key; }
    /// For Memory::adoptArena, which empties it.
    KeptReservation& weights() { return weights_; }
    void giveWeights(std::string key, KeptReservation block) noexcept;
    std::uint64_t weightBytes() const { return weights_.bytes(); }

    void releaseWeights() noexcept;
    /// Frees all. From any thread, while no context uses this.
    void release() noexcept;

private:
    std::optional<CudaContext> cuda_;
    std::string cudaKey_; ///< of the context that is kept or was taken last
    std::string weightsKey_;
    KeptReservation weights_;
};

} // namespace vitrine::kernels
