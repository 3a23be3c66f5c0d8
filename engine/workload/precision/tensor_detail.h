// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One matrix in one format, group by group. It is computed from the model's files when somebody looks at it.
//
// A group is `group` neighbouring inputs of one row, the last one of a row perhaps fewer. Group number g lies in row
// g / groupsPerRow. Formats with scales for blocks of rows have such groups too.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "base/thread_pool.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/quant/rounding_error.h"
#include "engine/workload/precision/precision_format.h"

namespace vitrine::engine {

/// Counts of values in equal bins of [-range, range]; the middle bin is centred at 0.
struct ValueHistogram {
    float range = 0;                         ///< 0: all values are 0, and all counts are in the middle bin
    std::vector<std::int64_t> before, after; ///< of the same bins: the weights, and what the format makes of them
    std::int64_t outsideBefore = 0, outsideAfter = 0;
};

struct GroupError {
    std::int64_t group = 0; ///< number in the matrix
    std::int64_t row = 0;
    std::int64_t first = 0; ///< input that it begins with
    float largestValue = 0; ///< largest |w|
    float rms = 0;          ///< root of the mean of (w' - w)^2
};

/// A weight that is far from the others.
struct OutlierWeight {
    std::int64_t row = 0, input = 0;
    float value = 0;
    float rounded = 0;
    float sigmas = 0; ///< |value| / RMS of the matrix
};

/// Neighbouring rows.
struct RowBand {
    std::int64_t first = 0, last = 0; ///< both belong to it
    double share = 0;                 ///< of the squared error of the matrix
};

struct TensorDetail {
    std::string name;
    std::int64_t expert = -1;
    std::int64_t out = 0, in = 0;
    std::string format; ///< its title
    std::uint64_t bytes = 0, bytesBf16 = 0;
    RoundingError error;
    /// Weights beyond the last level of their group by more than 9/16 of its last step: rounding alone takes half a
    /// step, and the scale is rounded too.
    std::int64_t clipped = 0;

    ValueHistogram histogram;
    std::int64_t group = 0, groupsPerRow = 0;
    std::vector<float> groupRms;         ///< of every group
    std::vector<GroupError> worstGroups; ///< at most 32, largest RMS first
    std::int64_t outlierCount = 0;       ///< weights beyond 6 times the RMS of the matrix
    std::vector<OutlierWeight> outliers; ///< of these at most 32, largest first
    double worstPercentShare = 0;        ///< of the squared error, in the worst 1 % of the groups (at least one)
    RowBand worstRows;                   ///< the 4 % of neighbouring rows with most of the error
};

/// The weights of one group on the levels that its scale allows.
struct GroupDetail {
    GroupError error;
    std::vector<float> values;       ///< w
    std::vector<float> rounded;      ///< w' = levels[code]
    std::vector<float> levels;       ///< ascending, each value once: 16 or fewer of four bits, 256 or fewer of eight
    std::vector<std::int32_t> codes; ///< numbers of levels
    /// The level that is 0 or next to it: codes[i] - zeroLevel is the signed code of integers.
    std::int32_t zeroLevel = 0;
    /// From the zero level to the next one: the scale of integers.
    float step = 0;
};

/// A matrix in another format.
struct FormatChoice {
    std::string name, title; ///< of the format
    bool packable = true;    ///< false: the format has no groups for this shape
    double bitsPerWeight = 0;
    std::uint64_t bytes = 0;
    RoundingError error; ///< without values for BF16
};

class RoundedMatrix;

/// Looks at matrices of one model. Belongs to one thread at a time, which may be any; it holds the values of the matrix
/// that it looked at last. All functions throw BadInput "FILE: TENSOR: what" for damaged files and for a weight that
/// the model does not have, and Cancelled.
class TensorLab {
public:
    /// REQUIRES a source with files. The pool outlives it.
    TensorLab(ModelSource source, base::ThreadPool& pool);
    ~TensorLab();
    TensorLab(const TensorLab&) = delete; // its reader views the source
    TensorLab& operator=(const TensorLab&) = delete;

    /// `weight` and `expert` are those of LabWeight. Throws BadInput when the format has no groups for the matrix.
    TensorDetail detail(const std::string& weight, std::int64_t expert, const PrecisionFormat& format,
                        const base::StopToken& stop);
    /// `group` is a number in TensorDetail::groupRms. Throws BadInput for another one.
    GroupDetail group(const std::string& weight, std::int64_t expert, const PrecisionFormat& format, std::int64_t group,
                      const base::StopToken& stop);
    std::vector<FormatChoice> inFormats(const std::string& weight, std::int64_t expert,
                                        const std::vector<PrecisionFormat>& formats, const base::StopToken& stop);

private:
    struct Looked;
    const Looked& look(const std::string& weight, std::int64_t expert, const base::StopToken& stop);
    void checkFormat(const Looked& looked, const PrecisionFormat& format) const;
    RoundingError errorIn(const Looked& looked, const PrecisionFormat& format, const base::StopToken& stop);
    std::unique_ptr<RoundedMatrix> rounded(const Looked& looked, const PrecisionFormat& format);

    ModelSource source_;
    base::ThreadPool& pool_;
    std::unique_ptr<Looked> looked_;
};

} // namespace vitrine::engine
