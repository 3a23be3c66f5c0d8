// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What one allocation is linked to: the op that made it, the ops that read it or ran while it lived, its end, and the
// same tensor in the step before. Pure functions over an immutable timeline; any thread. They look at a bounded number
// of scopes and rows.

#include <QString>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace vitrine::profiler {
class RunTimeline;
struct AllocationRow;
} // namespace vitrine::profiler

namespace vitrine::ui {

/// One station on the way of an allocation, in order of time.
struct AllocationLink {
    /// Read: the op reads this weight. Ran: it ran while the tensor lived, and who reads it is not known.
    enum class Kind : std::uint8_t { Made, Read, Ran, Freed };
    Kind kind = Kind::Made;
    base::TimeNs time = 0;
    std::uint64_t scope = 0; ///< 0: none is known
    QString name;            ///< of the scope: "LmHead"
};

/// Made, then ops (at most `limit`), and its end where it came before that of the run. Runs do not record who reads a
/// tensor. Of a weight it follows from its name: its ops are those that read it in the first step that does, and none
/// where that is not known. Of other tensors they are the ops of the same step that began while it lived. Scratch is
/// made by the op whose name it carries.
std::vector<AllocationLink> allocationLinks(const profiler::RunTimeline& timeline, std::size_t row,
                                            std::size_t limit = 16);

/// When the last phase ended: what is freed later is freed because the run gives back all that it has. The largest time
/// where there is no phase.
base::TimeNs endOfWork(const profiler::RunTimeline& timeline);

/// Whether an allocation lived as long as the run worked: it was never freed, or was made outside of steps and freed at
/// `workEnd`, which is endOfWork(), or later.
bool livesToTheEnd(const profiler::RunTimeline& timeline, const profiler::AllocationRow& row, base::TimeNs workEnd);

/// The same tensor in the step before.
struct EarlierTensor {
    std::size_t row = 0;
    QString step; ///< "step 2"
    std::int64_t tokens = 0;
};
std::optional<EarlierTensor> earlierTensor(const profiler::RunTimeline& timeline, std::size_t row);

} // namespace vitrine::ui
