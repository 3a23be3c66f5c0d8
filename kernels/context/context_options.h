// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// How a Context is made.

#include <optional>

#include "base/clock.h"
#include "base/stop.h"
#include "kernels/context/cpu_context.h"
#include "kernels/core/backend.h"
#include "kernels/core/device_traits.h"
#include "kernels/core/tracer.h"
#include "kernels/cuda/cuda_options.h"
#include "kernels/memory/memory_options.h"

namespace vitrine::kernels {

class Communicator;
class KeptState;

struct ContextOptions {
    Backend backend = Backend::Cpu;
    int threads = 0;
    std::optional<SimdLevel> simd; ///< CPU: instead of the best level of this machine; a higher level is BadInput
    DeviceTraits traits; ///< Meta: the profile. CPU: cpuTraits, or a profile to rehearse another device's allocations.
                         ///< CUDA: what the device says, whatever stands here
    CudaOptions cuda;
    MemoryOptions memory;
    ProfileLevel profile = ProfileLevel::Light;
    bool foldSteps = false;          ///< see Tracer
    bool exactRows = false;          ///< DeviceFeatures::exactRows, also where the traits do not say so
    base::TraceSink* sink = nullptr; ///< null: nothing is recorded
    /// Of a run of several ranks: what their tracers share, over `sink`. Null: the context makes one.
    RunTrace* trace = nullptr;
    Communicator* communicator = nullptr; ///< of a run of several ranks; outlives the context. Null: it is alone
    const base::Clock* clock = nullptr;   ///< of the run; null: the context makes one. Meta is its own clock
    base::StopToken stop;
    /// State that an earlier context kept, and that this one keeps for the next; null: nothing is kept.
    KeptState* kept = nullptr;
};

} // namespace vitrine::kernels
