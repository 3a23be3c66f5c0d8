// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the steps of a plan did to time and memory. A step like one that ran before need not run again: its time passes
// at once, and the memory that it would take is counted. Steps are alike when their ops have the same shapes. Only the
// time of attention still depends on how many tokens the cache has, so it is drawn as a line through two steps whose
// caches are nearly as full.

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "engine/model/model.h"
#include "kernels/memory/memory.h"

namespace vitrine::engine {

class StepPrices {
public:
    struct Price {
        double seconds = 0;
        kernels::StepMemory memory;
        StepOutput out;
        double exchangeSeconds = 0; ///< of the seconds: those in which ranks exchange
    };

    /// What the step would take; nothing where it must run to know.
    std::optional<Price> of(const StepInputs& stepInputs, const KvCache& cache) const;
    /// The step has run and took this.
    void note(const StepInputs& stepInputs, const KvCache& cache, const Price& price);
    void clear() { kinds_.clear(); }

private:
    struct Kind {
        Price first;
        double firstRead = 0;
        std::optional<double> secondRead;
        double secondSeconds = 0;
    };

    std::map<std::vector<std::int64_t>, Kind> kinds_;
};

} // namespace vitrine::engine
