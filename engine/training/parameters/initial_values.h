// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What trained tensors were when training began, kept in host memory: the reference of a policy whose weights train
// themselves.

#include <vector>

#include "engine/training/parameters/trained_state.h"
#include "kernels/memory/resource.h"

namespace vitrine::kernels {
class Context;
} // namespace vitrine::kernels

namespace vitrine::engine {

/// Belongs to the context's thread. The state outlives it.
class InitialValues {
public:
    /// Copies the values as they are now. Throws OutOfMemory where the host has no room for them.
    InitialValues(kernels::Context& context, const TrainedState& state);

    /// Changes places with the values that the model computes with, once its ops are done.
    void exchange();

private:
    kernels::Context& context_;
    const TrainedState& state_;
    std::vector<kernels::Buffer> kept_; ///< by tensor
    kernels::Buffer passing_;           ///< as large as the largest
};

/// While it lives, the model computes with the initial values.
class InitialPause {
public:
    explicit InitialPause(InitialValues& values) : values_(values) { values.exchange(); }
    ~InitialPause();
    InitialPause(const InitialPause&) = delete; // one begin, one end
    InitialPause& operator=(const InitialPause&) = delete;

private:
    InitialValues& values_;
};

} // namespace vitrine::engine
