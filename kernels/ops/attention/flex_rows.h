// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Rows of attention on the CPU, a stretch of keys at a time, wherever the keys lie: which keys a row sees, its scores
// after the programs, its softmax. The reference of both attention ops. One thread each.

#include <memory>
#include <optional>
#include <vector>

#include "kernels/cpu/row_kernels.h"
#include "kernels/program/attention_program.h"
#include "kernels/program/block_mask.h"
#include "kernels/program/interpreter.h"

namespace vitrine::kernels {

inline constexpr std::int64_t kFlexKeys = kInterpreterWidth; ///< keys of one stretch at most

enum class FlexAllowed : std::uint8_t { None, Some, All };

/// The programs of one run of an op, for all its threads.
struct FlexPrograms {
    FlexPrograms(const BoundProgram& scoreOf, const BoundProgram& maskOf, const BlockMask* blocksOf);

    const BoundProgram& score;
    const BoundProgram& mask;
    const BlockMask* blocks;
    std::optional<AnalysisOf> analysis; ///< of the mask
};

/// Keys [low, high] hold all that a row sees.
struct FlexReach {
    std::int64_t low = 0, high = -1;
    bool exact = true; ///< and it sees each of them
};

/// Which keys a row may see, of the first `keys`.
class FlexMaskRows {
public:
    FlexMaskRows(const FlexPrograms& programs, std::int64_t keys);

    FlexReach reach(const ProgramRow& row);
    /// Whether rows of different heads at one position may see different keys by their reach.
    bool perHead() const { return bounded_ && (*programs_.analysis)->perHead; }
    /// Whether they may see different keys at all.
    bool byHead() const { return programs_.analysis && (*programs_.analysis)->byHead; }
    /// Writes 0 or 1 for keys [key, key + count), count <= kFlexKeys; nothing when the answer is All.
    FlexAllowed read(const ProgramRow& row, std::int64_t key, int count, std::uint8_t* allowed);
    /// The same of a row whose reach is known.
    FlexAllowed read(const ProgramRow& row, const FlexReach& reach, std::int64_t key, int count, std::uint8_t* allowed);
    /// False when no row of [query0, query1) of this head sees a key of [key0, key1).
    bool any(std::int64_t batch, std::int64_t head, std::int64_t query0, std::int64_t query1, std::int64_t key0,
             std::int64_t key1);

private:
    void readBlocks(const ProgramRow& row, std::int64_t key, int count, std::uint8_t* allowed);
    void evaluate(const ProgramRow& row, std::int64_t key, std::int64_t end, std::uint8_t* allowed);

    const FlexPrograms& programs_;
    std::int64_t keys_;
    bool bounded_ = false;                          ///< a row's reach is less than all keys
    std::optional<Interpreter<double>> low_, high_; ///< of ends that are not linear
    std::optional<Interpreter<float>> exact_;
};

/// Scores of one row against keys that lie `stride` elements apart, after the programs.
template <class C> class FlexRowScores {
public:
    FlexRowScores(SimdLevel simd, const FlexPrograms& programs, float scale, std::int64_t dim, std::int64_t keys)
        : simd_(simd), scale_(static_cast<C>(scale)), dim_(dim), mask_(programs, keys) {
        if (!programs.score.empty()) {
            program_.emplace(*programs.score.program, programs.score.captures);
        }
    }

    FlexMaskRows& mask() { return mask_; }
    const C* raw() const { return raw_; } ///< of the last compute, before the score program

    /// What is not allowed is -inf. None: nothing was computed.
    FlexAllowed compute(const ProgramRow& row, const FlexReach& reach, const C* q, const C* keys, std::int64_t stride,
                        std::int64_t key, int count, C* scores);
    /// After compute() for the same keys and another head of the row that sees the same of them.
    FlexAllowed computeSeen(const ProgramRow& row, const C* q, const C* keys, std::int64_t stride, std::int64_t key,
                            int count, C* scores);

private:
    SimdLevel simd_;
    C scale_;
    std::int64_t dim_;
    FlexMaskRows mask_;
    std::optional<Interpreter<C>> program_;
    C raw_[kFlexKeys]{};
    std::uint8_t allowed_[kFlexKeys]{};
    FlexAllowed seen_ = FlexAllowed::None; ///< the answer with it
};

/// Online softmax of one row: the sum of values weighted relative to `maximum`.
template <class C> struct FlexSoftmax {
    C maximum = 0;
    C sum = 0;
    C* out = nullptr;

    /// `sink`: a logit without a value, or null.
    void start(const C* sink, std::int64_t dim, C* to);
    /// `scores` become weights.
    void add(SimdLevel simd, C* scores, int count, const C* values, std::int64_t stride, std::int64_t dim);
    /// Divides; gives the natural LSE.
    C finish(std::int64_t dim);
};

extern template class FlexRowScores<float>;
extern template class FlexRowScores<double>;
extern template struct FlexSoftmax<float>;
extern template struct FlexSoftmax<double>;

/// Whether a run of a BlockMask row touches blocks [begin, end).
bool anyRun(std::span<const BlockRun> runs, std::int64_t begin, std::int64_t end);

} // namespace vitrine::kernels
