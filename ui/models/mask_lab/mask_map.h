// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// What the Mask Lab's map shows of one mask: an immutable snapshot that a worker makes and any thread reads. Nothing
// here is as large as the mask: a mask of a million tokens a side is its program, its block runs and a few numbers a
// column.

#include <QString>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/stop.h"
#include "base/thread_pool.h"
#include "engine/language/module.h"
#include "kernels/program/block_mask.h"
#include "kernels/program/interpreter.h"
#include "kernels/program/interval_analysis.h"

namespace vitrine::ui {

/// A program with the tensors that it captures. Immutable.
struct MaskProgram {
    kernels::Program program;
    kernels::CaptureBinding binding;
    std::shared_ptr<const void> owner; ///< keeps what `binding` points into
};
using MaskProgramPtr = std::shared_ptr<const MaskProgram>;

/// Throws BadInput that names a capture without contents.
MaskProgramPtr maskProgram(engine::ChosenProgram program);

/// Where scores come from before score_mod changes them.
struct MaskScores {
    enum class Base : std::uint8_t {
        Zero,   ///< every scaled q.k is 0: what score_mod adds, by distance
        One,    ///< every scaled q.k is 1: what it multiplies
        Product ///< scale * q.k of the tensors below
    };
    MaskProgramPtr program; ///< score_mod; null: the scores as they are
    Base base = Base::Zero;
    kernels::TensorView q; ///< (batch, heads, queries, headDim), any float dtype; Product only
    kernels::TensorView k; ///< (batch, kvHeads, keys, headDim), heads a multiple of kvHeads; Product only
    double scale = 1;
    std::shared_ptr<const void> owner; ///< keeps what q and k point into
};

struct MaskMapQuery {
    QString name;                  ///< "sliding + document"
    MaskProgramPtr mask;           ///< null: everything is allowed
    MaskScores scores;             ///< for score mode
    kernels::BlockMaskShape shape; ///< lengths, block size, batch and heads that can be chosen
    std::int64_t batch = 0, head = 0;
};

/// One of the conditions that the mask consists of: conjuncts of `a & b & c`, or alternatives of `a | b | c`.
struct MaskOperand {
    QString name;           ///< from the source: variable or function ("causal", "document"), else its text
    QString text;           ///< "q_idx >= kv_idx"
    std::int32_t node = -1; ///< of the mask's program
};

/// Neighbouring keys of equal value.
struct MaskStripRun {
    std::int64_t begin = 0, end = 0; ///< keys
    std::int64_t value = 0;
};

/// A captured integer tensor along the keys: document ids.
struct MaskStrip {
    QString name; ///< "doc_id"
    std::vector<MaskStripRun> runs;
};

/// Blocks that one head computes.
struct MaskHead {
    std::int64_t full = 0, partial = 0, empty = 0;
};

struct MaskMap {
    QString name;
    MaskProgramPtr mask; ///< never null
    MaskScores scores;
    std::shared_ptr<const kernels::BlockMask> blocks; ///< its shape: 1 where the program ignores batch or heads
    std::shared_ptr<const kernels::IntervalAnalysis> analysis; ///< use forAnotherThread
    std::optional<kernels::IntervalRows> rows;                 ///< the closed form, when there is one
    std::int64_t batch = 0, head = 0;                          ///< whose plane the map shows
    double buildSeconds = 0;                                   ///< of the block mask

    bool usesBatch = false, usesHead = false; ///< whether the program reads b, h
    std::vector<MaskHead> heads;              ///< of `batch`; one entry when the program ignores h

    std::vector<MaskOperand> parts; ///< at most kMostMaskOperands; those after them are in the last
    bool alternatives = false;      ///< parts are joined by `|`: each allows; else by `&`: each blocks
    std::vector<MaskStrip> strips;

    /// Blocks of each block column of the plane, and the largest sum of both.
    std::vector<std::int32_t> columnFull, columnPartial;
    std::int64_t mostInColumn = 0;
    std::int64_t full = 0, partial = 0, empty = 0; ///< of the plane

    double scoreLow = 0, scoreHigh = 0; ///< finite scores of allowed elements, from a sample; equal: all the same

    const kernels::BlockMaskShape& shape() const { return blocks->shape; }
    std::int64_t queries() const { return blocks->shape.queries; }
    std::int64_t keys() const { return blocks->shape.keys; }
    double blockSparsity() const { return blocks->blockSparsity(); }
    double fullShare() const { return blocks->fullShare(); }
};
using MaskMapPtr = std::shared_ptr<const MaskMap>;

inline constexpr int kMostMaskOperands = 6;
inline constexpr int kMostMaskStrips = 3;

/// Builds the block mask and what goes with it. For a worker thread. Throws BadInput (program, sizes, tensors) and
/// Cancelled.
MaskMapPtr makeMaskMap(const MaskMapQuery& request, base::ThreadPool& pool, base::ProgressSink* progress = nullptr,
                       const base::StopToken& stop = {});
/// The same mask seen at another batch entry and head: no blocks are built again.
MaskMapPtr maskMapAt(const MaskMap& map, std::int64_t batch, std::int64_t head);
/// The same mask with other scores.
MaskMapPtr maskMapWithScores(const MaskMap& map, MaskScores scores);

/// The mask's parts with names from its source; none when it allows everything.
std::vector<MaskOperand> maskParts(const kernels::Program& mask, bool& alternatives);

/// Allowed elements over all elements. For a worker thread: seconds on large masks without a closed form.
double maskDensity(const MaskMap& map, base::ThreadPool& pool, const base::StopToken& stop = {});

} // namespace vitrine::ui
