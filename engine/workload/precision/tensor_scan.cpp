// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/tensor_scan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <tuple>

#include "engine/workload/precision/tensor_groups.h"

namespace vitrine::engine {
namespace {

constexpr std::size_t kBins = 129; ///< odd: the middle one is centred at 0
constexpr double kInsideShare = 0.9995;
constexpr std::size_t kListed = 32;
constexpr std::size_t kAsked = 1'000'000;    ///< values that the range of the histogram is made from
constexpr std::int64_t kScanGrain = 1 << 18; ///< values that one thread looks at a time
constexpr std::size_t kBlock = 16;           ///< values that are put into bins together
constexpr std::size_t kOutside = kBins;      ///< the bin of what lies outside
constexpr float kOutlierSigmas = 6;
constexpr double kBandShare = 0.04;
/// Half a step is what rounding takes. The rest is for scales that are rounded themselves: a symmetric integer of four
/// bits lies 7.5 steps from zero at most, and 7.515 where its BF16 scale was rounded down.
constexpr double kClippedSteps = 0.5625;

using Counts = std::array<std::int64_t, kBins + 1>;

/// The least |w| that `share` of the values do not exceed. A large matrix is asked for every n-th value only.
float quantileOf(std::span<const float> values, double share) {
    const std::size_t stride = values.size() / kAsked + 1;
    std::vector<float> magnitudes;
    magnitudes.reserve(values.size() / stride + 1);
    for (std::size_t i = 0; i < values.size(); i += stride) {
        magnitudes.push_back(std::abs(values[i]));
    }
    const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(magnitudes.size() - 1));
    std::ranges::nth_element(magnitudes, magnitudes.begin() + at);
    return magnitudes[static_cast<std::size_t>(at)];
}

void countInto(Counts& counts, std::span<const float> values, float range) {
    // Bins are 2 range / kBins wide, and bin 0 begins at -range.
    const double middle = static_cast<double>(kBins) / 2, perUnit = range == 0 ? 0 : middle / range;
    for (std::size_t i = 0; i < values.size(); i += kBlock) {
        const std::size_t length = std::min(kBlock, values.size() - i);
        std::array<float, kBlock> block{};
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(i), length, block.begin());
        std::array<std::int32_t, kBlock> bins;
        for (std::size_t lane = 0; lane < kBlock; ++lane) {
            const float inside = std::min(std::max(block[lane], -range), range);
            const auto bin = static_cast<std::int32_t>(static_cast<double>(inside) * perUnit + middle);
            bins[lane] = inside != block[lane] ? static_cast<std::int32_t>(kOutside)
                                               : std::min(bin, static_cast<std::int32_t>(kBins - 1));
        }
        for (std::size_t lane = 0; lane < length; ++lane) {
            ++counts[static_cast<std::size_t>(bins[lane])];
        }
    }
}

struct Extremes {
    float low = std::numeric_limits<float>::infinity(), high = -std::numeric_limits<float>::infinity();
    float magnitude() const { return std::max(-low, high); }
};

Extremes extremesOf(std::span<const float> values) {
    Extremes out;
    for (const float value : values) {
        out.low = std::min(out.low, value);
        out.high = std::max(out.high, value);
    }
    return out;
}

/// Weights further beyond the last level than rounding would take them.
std::int64_t clippedIn(std::span<const float> values, const LevelEnds& ends) {
    if (ends.low == ends.high) {
        return 0;
    }
    const double high = ends.high, low = ends.low;
    const double above = high + kClippedSteps * (high - ends.highNext),
                 below = low - kClippedSteps * (ends.lowNext - low);
    return std::ranges::count_if(values, [&](float value) { return value > above || value < below; });
}

/// What the pass over the rows leaves of each.
struct RowFacts {
    RoundingError error;
    std::int64_t clipped = 0;
    float largest = 0;
};

bool comesFirst(const OutlierWeight& a, const OutlierWeight& b) {
    return std::tuple(-a.sigmas, a.row, a.input) < std::tuple(-b.sigmas, b.row, b.input);
}

void keepLargest(std::vector<OutlierWeight>& outliers) {
    const std::size_t listed = std::min(kListed, outliers.size());
    std::ranges::partial_sort(outliers, outliers.begin() + static_cast<std::ptrdiff_t>(listed), comesFirst);
    outliers.resize(listed);
}

class TensorScan {
public:
    TensorScan(const RoundedMatrix& matrix, std::span<const float> values, base::ThreadPool& pool,
               const base::StopToken& stop, TensorDetail& out)
        : layout_(matrix.view()), packed_(kernels::packedMatrixOf(matrix.view(), 0)), finder_(matrix), values_(values),
          pool_(pool), stop_(stop), out_(out), rows_(static_cast<std::size_t>(layout_.size.out)) {}

    void run() {
        out_.group = layout_.group;
        out_.groupsPerRow = layout_.perRow;
        out_.groupRms.resize(static_cast<std::size_t>(layout_.count()));
        out_.histogram.range = quantileOf(values_, kInsideShare);
        lookAtRows();
        lookAtOutliers();
        lookAtWorst();
    }

private:
    std::span<const float> row(std::int64_t index) const {
        return values_.subspan(static_cast<std::size_t>(index * layout_.size.in),
                               static_cast<std::size_t>(layout_.size.in));
    }
    void expand(std::int64_t index, std::span<float> rounded) const {
        packed_.format->expand(packed_, index, 0, layout_.size.in, rounded.data());
    }
    /// body(row, scratch of a row) over the rows; after some of them end() of what `begin` made.
    template <class Part, class Body, class End> void forRows(const Body& body, const End& end) {
        const std::int64_t grain = std::max<std::int64_t>(1, kScanGrain / layout_.size.in);
        std::mutex ending;
        pool_.parallelFor(layout_.size.out, grain, [&](std::int64_t first, std::int64_t last, int) {
            std::vector<float> scratch(static_cast<std::size_t>(layout_.size.in));
            Part part{};
            for (std::int64_t index = first; index < last; ++index) {
                if (stop_.stop_requested()) {
                    return;
                }
                body(index, std::span(scratch), part);
            }
            const std::lock_guard lock(ending);
            end(part);
        });
        base::throwIfStopped(stop_);
    }

    struct RowCounts {
        Counts before{}, after{};
        std::vector<LevelEnds> ends;
    };

    void lookAtRows() {
        Counts before{}, after{}; // whole numbers: the order of adding does not matter
        forRows<RowCounts>(
            [&](std::int64_t index, std::span<float> rounded, RowCounts& part) {
                expand(index, rounded);
                lookAtGroups(index, rounded, part.ends);
                countInto(part.before, row(index), out_.histogram.range);
                countInto(part.after, rounded, out_.histogram.range);
            },
            [&](const RowCounts& part) {
                std::ranges::transform(before, part.before, before.begin(), std::plus{});
                std::ranges::transform(after, part.after, after.begin(), std::plus{});
            });
        out_.histogram.before.assign(before.begin(), before.begin() + kBins);
        out_.histogram.after.assign(after.begin(), after.begin() + kBins);
        out_.histogram.outsideBefore = before[kOutside];
        out_.histogram.outsideAfter = after[kOutside];
        for (const RowFacts& facts : rows_) {
            out_.error.add(facts.error);
            out_.clipped += facts.clipped;
        }
    }

    void lookAtGroups(std::int64_t index, std::span<const float> rounded, std::vector<LevelEnds>& ends) {
        RowFacts& facts = rows_[static_cast<std::size_t>(index)];
        bool beyond = false; // a weight of the row is outside of what its group became
        for (std::int64_t g = 0; g < layout_.perRow; ++g) {
            const std::int64_t number = index * layout_.perRow + g;
            const auto first = static_cast<std::size_t>(layout_.first(number)), length = layout_.length(number);
            const std::span<const float> own = row(index).subspan(first, length), made = rounded.subspan(first, length);
            const RoundingError error = roundingError(own, made);
            facts.error.add(error);
            out_.groupRms[static_cast<std::size_t>(number)] = static_cast<float>(std::sqrt(error.meanSquare()));
            const Extremes was = extremesOf(own), is = extremesOf(made);
            facts.largest = std::max(facts.largest, was.magnitude());
            beyond = beyond || was.high > is.high || was.low < is.low;
        }
        if (!beyond) {
            return;
        }
        ends.resize(static_cast<std::size_t>(layout_.perRow));
        finder_.endsOfRow(index, ends);
        for (std::int64_t g = 0; g < layout_.perRow; ++g) {
            const std::int64_t number = index * layout_.perRow + g;
            facts.clipped += clippedIn(values_.subspan(layout_.begin(number), layout_.length(number)),
                                       ends[static_cast<std::size_t>(g)]);
        }
    }

    struct Outliers {
        std::int64_t count = 0;
        std::vector<OutlierWeight> largest;
    };

    void lookAtOutliers() {
        const auto sigma =
            static_cast<float>(std::sqrt(out_.error.squaredValues / static_cast<double>(layout_.size.count())));
        if (sigma == 0) {
            return;
        }
        forRows<Outliers>(
            [&](std::int64_t index, std::span<float> rounded, Outliers& part) {
                if (rows_[static_cast<std::size_t>(index)].largest / sigma > kOutlierSigmas) {
                    expand(index, rounded);
                    outliersOf(index, rounded, sigma, part);
                }
            },
            [&](const Outliers& part) {
                out_.outlierCount += part.count;
                out_.outliers.insert(out_.outliers.end(), part.largest.begin(), part.largest.end());
            });
        keepLargest(out_.outliers);
    }

    void outliersOf(std::int64_t index, std::span<const float> rounded, float sigma, Outliers& part) const {
        const std::span<const float> own = row(index);
        for (std::size_t i = 0; i < own.size(); ++i) {
            const float sigmas = std::abs(own[i]) / sigma;
            if (sigmas > kOutlierSigmas) {
                ++part.count;
                part.largest.push_back({index, static_cast<std::int64_t>(i), own[i], rounded[i], sigmas});
            }
        }
        keepLargest(part.largest);
    }

    double squaredErrorOf(std::int64_t number) const {
        const double rms = out_.groupRms[static_cast<std::size_t>(number)];
        return rms * rms * static_cast<double>(layout_.length(number));
    }

    /// The `count` groups with the largest RMS, in no order; of equal ones those with low numbers.
    std::vector<std::int64_t> worstGroups(std::size_t count) const {
        std::vector<float> sorted = out_.groupRms;
        const auto edge = sorted.begin() + static_cast<std::ptrdiff_t>(count - 1);
        std::ranges::nth_element(sorted, edge, std::greater{});
        std::size_t equal = count - static_cast<std::size_t>(
                                        std::count_if(sorted.begin(), edge, [&](float rms) { return rms > *edge; }));
        std::vector<std::int64_t> worst;
        worst.reserve(count);
        for (std::size_t number = 0; number < out_.groupRms.size(); ++number) {
            const float rms = out_.groupRms[number];
            if (rms > *edge || (rms == *edge && equal > 0)) {
                equal -= rms == *edge ? 1 : 0;
                worst.push_back(static_cast<std::int64_t>(number));
            }
        }
        return worst;
    }

    void lookAtWorst() {
        const auto count = static_cast<std::size_t>(layout_.count());
        const std::size_t percent = std::max<std::size_t>(1, count / 100);
        double worst = 0;
        for (const std::int64_t number : worstGroups(percent)) {
            worst += squaredErrorOf(number);
        }
        const double all = out_.error.squaredError;
        out_.worstPercentShare = all > 0 ? std::min(1.0, worst / all) : 0;
        std::vector<std::int64_t> listed = worstGroups(std::min(count, kListed));
        std::ranges::stable_sort(listed, std::greater{},
                                 [&](std::int64_t number) { return out_.groupRms[static_cast<std::size_t>(number)]; });
        for (const std::int64_t number : listed) {
            const Extremes own = extremesOf(values_.subspan(layout_.begin(number), layout_.length(number)));
            out_.worstGroups.push_back({number, number / layout_.perRow, layout_.first(number), own.magnitude(),
                                        out_.groupRms[static_cast<std::size_t>(number)]});
        }
        findWorstRows();
    }

    void findWorstRows() {
        const std::int64_t width =
            std::max<std::int64_t>(1, std::llround(kBandShare * static_cast<double>(layout_.size.out)));
        double sum = 0, largest = -1;
        for (std::int64_t index = 0; index < layout_.size.out; ++index) {
            sum += rows_[static_cast<std::size_t>(index)].error.squaredError;
            sum -= index >= width ? rows_[static_cast<std::size_t>(index - width)].error.squaredError : 0;
            if (index + 1 >= width && sum > largest) {
                largest = sum;
                out_.worstRows = {index + 1 - width, index, 0};
            }
        }
        const double all = out_.error.squaredError;
        out_.worstRows.share = all > 0 ? std::clamp(largest / all, 0.0, 1.0) : 0;
    }

    GroupLayout layout_;
    kernels::PackedMatrix packed_;
    LevelFinder finder_;
    std::span<const float> values_;
    base::ThreadPool& pool_;
    const base::StopToken& stop_;
    TensorDetail& out_;
    std::vector<RowFacts> rows_;
};

} // namespace

GroupError groupError(const GroupLayout& layout, std::int64_t number, std::span<const float> values,
                      std::span<const float> rounded) {
    return {number, number / layout.perRow, layout.first(number), extremesOf(values).magnitude(),
            static_cast<float>(std::sqrt(roundingError(values, rounded).meanSquare()))};
}

void scanTensor(const RoundedMatrix& matrix, std::span<const float> values, base::ThreadPool& pool,
                const base::StopToken& stop, TensorDetail& out) {
    TensorScan(matrix, values, pool, stop, out).run();
}

} // namespace vitrine::engine
