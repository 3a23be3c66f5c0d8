// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/tensor_detail.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <functional>
#include <mutex>
#include <numeric>

#include "base/error.h"
#include "engine/workload/convert/weight_reader.h"
#include "engine/workload/precision/lab_weights.h"
#include "kernels/formats/packed_format.h"

namespace vitrine::engine {
namespace {

constexpr std::size_t kBins = 129; ///< odd: the middle one is centred at 0
constexpr double kInsideShare = 0.9995;
constexpr std::size_t kListed = 32;
constexpr std::size_t kAsked = 4'000'000;       ///< values that the range of the histogram is made from
constexpr std::int64_t kCountGrain = 1'000'000; ///< values that one thread counts at a time
constexpr std::int64_t kRowsAtLeast = 8;        ///< rows that are packed together: codes of some layouts share words
constexpr float kOutlierSigmas = 6;
constexpr double kBandShare = 0.04;
/// Half a step is what rounding takes. The rest is for scales that are rounded themselves: a symmetric integer of four
/// bits lies 7.5 steps from zero at most, and 7.515 where its BF16 scale was rounded down.
constexpr double kClippedSteps = 0.5625;

/// Whether a value lies further beyond the last level than rounding would take it.
bool isClipped(float value, const std::vector<float>& levels) {
    const std::size_t count = levels.size();
    if (count < 2) {
        return false;
    }
    const double high = levels[count - 1], low = levels[0];
    return value > high + kClippedSteps * (high - levels[count - 2]) || value < low - kClippedSteps * (levels[1] - low);
}

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

/// Adds the values to the bins and returns how many lie outside.
std::int64_t countInto(std::span<std::int64_t> bins, std::span<const float> values, float range) {
    std::int64_t outside = 0;
    for (const float value : values) {
        if (std::abs(value) > range) {
            ++outside;
            continue;
        }
        const double place = range == 0 ? 0.5 : (static_cast<double>(value) / range + 1) / 2;
        ++bins[std::min(kBins - 1, static_cast<std::size_t>(place * static_cast<double>(kBins)))];
    }
    return outside;
}

ValueHistogram histogramOf(std::span<const float> before, std::span<const float> after, base::ThreadPool& pool) {
    ValueHistogram histogram;
    histogram.range = quantileOf(before, kInsideShare);
    const auto count = [&](std::span<const float> values, std::vector<std::int64_t>& bins, std::int64_t& outside) {
        bins.assign(kBins, 0);
        std::mutex adding; // counts are whole numbers: their order does not matter
        pool.parallelFor(static_cast<std::int64_t>(values.size()), kCountGrain,
                         [&](std::int64_t first, std::int64_t end, int) {
                             std::array<std::int64_t, kBins> own{};
                             const auto part =
                                 values.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(end - first));
                             const std::int64_t beyond = countInto(own, part, histogram.range);
                             const std::lock_guard lock(adding);
                             outside += beyond;
                             std::ranges::transform(bins, own, bins.begin(), std::plus{});
                         });
    };
    count(before, histogram.before, histogram.outsideBefore);
    count(after, histogram.after, histogram.outsideAfter);
    return histogram;
}

/// The groups of a matrix and what rounding made of them.
struct RoundedGroups {
    MatrixSize size;
    std::int64_t group = 0, perRow = 0;
    std::span<const float> values, rounded;

    std::int64_t count() const { return size.out * perRow; }
    std::int64_t first(std::int64_t number) const { return number % perRow * group; }
    std::size_t begin(std::int64_t number) const {
        return static_cast<std::size_t>(number / perRow * size.in + first(number));
    }
    std::size_t length(std::int64_t number) const {
        return static_cast<std::size_t>(std::min(group, size.in - first(number)));
    }
    GroupError error(std::int64_t number) const {
        GroupError out{number, number / perRow, first(number), 0, 0};
        const std::size_t from = begin(number), count = length(number);
        for (const float value : values.subspan(from, count)) {
            out.largestValue = std::max(out.largestValue, std::abs(value));
        }
        out.rms = static_cast<float>(
            std::sqrt(roundingError(values.subspan(from, count), rounded.subspan(from, count)).meanSquare()));
        return out;
    }
};

RoundedGroups groupsOf(const RoundedMatrix& matrix, std::span<const float> values, std::span<const float> rounded) {
    RoundedGroups groups;
    groups.size = {matrix.view().outFeatures(), matrix.view().inFeatures()};
    groups.group = std::min(matrix.view().group, groups.size.in);
    groups.perRow = (groups.size.in + groups.group - 1) / groups.group;
    groups.values = values;
    groups.rounded = rounded;
    return groups;
}

/// All values that codes can give in a group. The row's own codes are replaced by one code after the other, so every
/// format says its levels itself. Different threads may ask for different rows at the same time.
class LevelFinder {
public:
    LevelFinder(const RoundedMatrix& matrix, const RoundedGroups& groups)
        : packed_(kernels::packedMatrixOf(matrix.view(), 0)), groups_(groups),
          codes_(packed_.data, packed_.data + packed_.rowBytes * groups.size.out) {
        packed_.data = codes_.data();
    }

    /// Sets the levels of each group of the row: ascending, each value once. Memory of `levels` is used again.
    void ofRow(std::int64_t row, std::vector<std::vector<float>>& levels) {
        levels.resize(static_cast<std::size_t>(groups_.perRow));
        for (std::vector<float>& each : levels) {
            each.clear();
        }
        const auto rowBytes = static_cast<std::size_t>(packed_.rowBytes);
        const std::span<std::uint8_t> codes =
            std::span(codes_).subspan(static_cast<std::size_t>(row) * rowBytes, rowBytes);
        const bool bytes = packed_.rowBytes >= groups_.size.in; // a byte for each code; else half of one
        std::vector<float> values(static_cast<std::size_t>(packed_.format->unit));
        for (int code = 0; code < (bytes ? 256 : 16); ++code) {
            std::ranges::fill(codes, static_cast<std::uint8_t>(bytes ? code : code * 17));
            for (std::int64_t group = 0; group < groups_.perRow; ++group) {
                packed_.format->expand(packed_, row, groups_.first(group), packed_.format->unit, values.data());
                if (std::isfinite(values[0])) {
                    levels[static_cast<std::size_t>(group)].push_back(values[0] == 0 ? 0.0F : values[0]);
                }
            }
        }
        for (std::vector<float>& each : levels) {
            std::ranges::sort(each);
            each.erase(std::ranges::unique(each).begin(), each.end());
        }
    }

private:
    kernels::PackedMatrix packed_;
    const RoundedGroups& groups_;
    std::vector<std::uint8_t> codes_;
};

/// Sets the groups' errors, the clipped weights and the worst groups.
void lookAtGroups(const RoundedMatrix& matrix, const RoundedGroups& groups, base::ThreadPool& pool,
                  const base::StopToken& stop, TensorDetail& out) {
    LevelFinder finder(matrix, groups);
    out.group = groups.group;
    out.groupsPerRow = groups.perRow;
    out.groupRms.resize(static_cast<std::size_t>(groups.count()));
    std::vector<std::int64_t> clipped(static_cast<std::size_t>(groups.size.out));
    pool.parallelFor(groups.size.out, 16, [&](std::int64_t first, std::int64_t end, int) {
        std::vector<std::vector<float>> levels;
        for (std::int64_t row = first; row < end && !stop.stop_requested(); ++row) {
            finder.ofRow(row, levels);
            for (std::int64_t number = row * groups.perRow; number < (row + 1) * groups.perRow; ++number) {
                out.groupRms[static_cast<std::size_t>(number)] = groups.error(number).rms;
                const std::vector<float>& own = levels[static_cast<std::size_t>(number % groups.perRow)];
                const auto part = groups.values.subspan(groups.begin(number), groups.length(number));
                clipped[static_cast<std::size_t>(row)] +=
                    std::ranges::count_if(part, [&](float value) { return isClipped(value, own); });
            }
        }
    });
    base::throwIfStopped(stop);
    out.clipped = std::accumulate(clipped.begin(), clipped.end(), std::int64_t{0});
}

double squaredErrorOf(const RoundedGroups& groups, std::int64_t number, float rms) {
    return static_cast<double>(rms) * rms * static_cast<double>(groups.length(number));
}

void lookAtWorst(const RoundedGroups& groups, TensorDetail& out) {
    std::vector<std::int64_t> order(out.groupRms.size());
    std::iota(order.begin(), order.end(), 0);
    const std::size_t percent = std::max<std::size_t>(1, order.size() / 100);
    const std::size_t sorted = std::min(order.size(), std::max(kListed, percent));
    std::ranges::partial_sort(order, order.begin() + static_cast<std::ptrdiff_t>(sorted), [&](auto a, auto b) {
        const float left = out.groupRms[static_cast<std::size_t>(a)], right = out.groupRms[static_cast<std::size_t>(b)];
        return left != right ? left > right : a < b;
    });
    double worst = 0;
    for (std::size_t i = 0; i < sorted; ++i) {
        worst += i < percent ? squaredErrorOf(groups, order[i], out.groupRms[static_cast<std::size_t>(order[i])]) : 0;
        if (i < kListed) {
            out.worstGroups.push_back(groups.error(order[i]));
        }
    }
    out.worstPercentShare = out.error.squaredError > 0 ? std::min(1.0, worst / out.error.squaredError) : 0;
    std::vector<double> rows(static_cast<std::size_t>(groups.size.out));
    for (std::int64_t number = 0; number < groups.count(); ++number) {
        rows[static_cast<std::size_t>(number / groups.perRow)] +=
            squaredErrorOf(groups, number, out.groupRms[static_cast<std::size_t>(number)]);
    }
    const std::int64_t width =
        std::max<std::int64_t>(1, std::llround(kBandShare * static_cast<double>(groups.size.out)));
    double sum = 0, largest = -1;
    for (std::int64_t row = 0; row < groups.size.out; ++row) {
        sum += rows[static_cast<std::size_t>(row)];
        sum -= row >= width ? rows[static_cast<std::size_t>(row - width)] : 0;
        if (row + 1 >= width && sum > largest) {
            largest = sum;
            out.worstRows = {row + 1 - width, row, 0};
        }
    }
    out.worstRows.share = out.error.squaredError > 0 ? std::clamp(largest / out.error.squaredError, 0.0, 1.0) : 0;
}

void lookAtOutliers(const RoundedGroups& groups, TensorDetail& out) {
    const double count = static_cast<double>(groups.size.count());
    const auto sigma = static_cast<float>(std::sqrt(out.error.squaredValues / count));
    for (std::size_t i = 0; i < groups.values.size() && sigma > 0; ++i) {
        const float sigmas = std::abs(groups.values[i]) / sigma;
        if (sigmas > kOutlierSigmas) {
            ++out.outlierCount;
            const auto at = static_cast<std::int64_t>(i);
            out.outliers.push_back(
                {at / groups.size.in, at % groups.size.in, groups.values[i], groups.rounded[i], sigmas});
        }
    }
    const std::size_t listed = std::min(kListed, out.outliers.size());
    std::ranges::partial_sort(out.outliers, out.outliers.begin() + static_cast<std::ptrdiff_t>(listed),
                              [](const OutlierWeight& a, const OutlierWeight& b) { return a.sigmas > b.sigmas; });
    out.outliers.resize(listed);
}

} // namespace

/// The matrix that was looked at last.
struct TensorLab::Looked {
    LabMatrix matrix;
    kernels::DType dtype = kernels::DType::BF16;
    std::vector<float> values;

    std::string label(const ModelSource& source) const { return source.name + ": " + matrix.weight.name; }
};

TensorLab::TensorLab(ModelSource source, base::ThreadPool& pool) : source_(std::move(source)), pool_(pool) {}
TensorLab::~TensorLab() = default;

const TensorLab::Looked& TensorLab::look(const std::string& weight, std::int64_t expert, const base::StopToken& stop) {
    base::throwIfStopped(stop);
    if (looked_ != nullptr && looked_->matrix.lab.name == weight && looked_->matrix.lab.expert == expert) {
        return *looked_;
    }
    looked_.reset(); // two matrices need not be in memory
    for (LabMatrix& matrix : labMatrices(source_.config)) {
        if (matrix.lab.name == weight && matrix.lab.expert == expert) {
            WeightReader reader(source_, pool_);
            const kernels::DType dtype = reader.typeOf(weight);
            std::vector<float> values = reader.matrix(matrix.weight, matrix.matrix);
            looked_ = std::make_unique<Looked>(Looked{std::move(matrix), dtype, std::move(values)});
            return *looked_;
        }
    }
    throw base::BadInput(
        fmt::format("{}: {}: the model has no such weight; open the model that the run used", source_.name, weight));
}

void TensorLab::checkFormat(const Looked& looked, const PrecisionFormat& format) const {
    if (!canRound(format, looked.matrix.size())) {
        throw base::BadInput(fmt::format("{}: {} has no groups for its {} inputs; choose another format",
                                         looked.label(source_), format.title, looked.matrix.lab.in));
    }
}

std::unique_ptr<RoundedMatrix> TensorLab::rounded(const Looked& looked, const PrecisionFormat& format) {
    checkFormat(looked, format);
    return std::make_unique<RoundedMatrix>(format, looked.label(source_), looked.matrix.size(), looked.dtype,
                                           looked.values, pool_);
}

TensorDetail TensorLab::detail(const std::string& weight, std::int64_t expert, const PrecisionFormat& format,
                               const base::StopToken& stop) {
    const Looked& looked = look(weight, expert, stop);
    const std::unique_ptr<RoundedMatrix> matrix = rounded(looked, format);
    base::throwIfStopped(stop);
    const std::vector<float> after = matrix->expanded(pool_);
    TensorDetail out;
    out.name = weight;
    out.expert = expert;
    out.out = looked.matrix.lab.out;
    out.in = looked.matrix.lab.in;
    out.format = format.title;
    out.bytes = matrix->bytes();
    out.bytesBf16 = kernels::bytesOf(kernels::DType::BF16, looked.matrix.lab.count());
    out.error = packingError(matrix->view(), looked.values, pool_);
    out.histogram = histogramOf(looked.values, after, pool_);
    base::throwIfStopped(stop);
    const RoundedGroups groups = groupsOf(*matrix, looked.values, after);
    lookAtGroups(*matrix, groups, pool_, stop, out);
    lookAtWorst(groups, out);
    lookAtOutliers(groups, out);
    return out;
}

GroupDetail TensorLab::group(const std::string& weight, std::int64_t expert, const PrecisionFormat& format,
                             std::int64_t group, const base::StopToken& stop) {
    const Looked& looked = look(weight, expert, stop);
    const MatrixSize size = looked.matrix.size();
    checkFormat(looked, format);
    const WeightPacking& packing = format.quantization->packing;
    const std::int64_t inputs = std::min(groupOf(packing, size.in), size.in);
    const std::int64_t perRow = (size.in + inputs - 1) / inputs;
    if (group < 0 || group >= size.out * perRow) {
        throw base::BadInput(fmt::format("{}: has no group {}; its groups are 0 to {}", looked.label(source_), group,
                                         size.out * perRow - 1));
    }
    // Rows that share no scale with the group's do not matter, unless the scales of a matrix are packed together.
    const std::int64_t together =
        packing.packedScales ? size.out : std::max(kRowsAtLeast, rowGroupOf(packing, size.out));
    const std::int64_t firstRow = group / perRow / together * together;
    const MatrixSize band{std::min(together, size.out - firstRow), size.in};
    const auto values =
        std::span<const float>(looked.values)
            .subspan(static_cast<std::size_t>(firstRow * size.in), static_cast<std::size_t>(band.count()));
    const auto matrix =
        std::make_unique<RoundedMatrix>(format, looked.label(source_), band, looked.dtype, values, pool_);
    const std::vector<float> after = matrix->expanded(pool_);
    const RoundedGroups groups = groupsOf(*matrix, values, after);
    group -= firstRow * perRow;
    GroupDetail out;
    out.error = groups.error(group);
    out.error.group += firstRow * perRow;
    out.error.row += firstRow;
    const auto part = [&](std::span<const float> all) {
        const std::span<const float> own = all.subspan(groups.begin(group), groups.length(group));
        return std::vector<float>(own.begin(), own.end());
    };
    out.values = part(values);
    out.rounded = part(after);
    std::vector<std::vector<float>> levels;
    LevelFinder(*matrix, groups).ofRow(group / groups.perRow, levels);
    out.levels = levels[static_cast<std::size_t>(group % groups.perRow)];
    for (const float value : out.rounded) {
        const auto found = std::ranges::lower_bound(out.levels, value);
        out.codes.push_back(static_cast<std::int32_t>(found - out.levels.begin()));
    }
    const auto zero = std::ranges::min_element(out.levels, {}, [](float level) { return std::abs(level); });
    out.zeroLevel = static_cast<std::int32_t>(zero - out.levels.begin());
    if (zero != out.levels.end() && zero + 1 != out.levels.end()) {
        out.step = zero[1] - zero[0];
    }
    return out;
}

std::vector<FormatChoice> TensorLab::inFormats(const std::string& weight, std::int64_t expert,
                                               const std::vector<PrecisionFormat>& formats,
                                               const base::StopToken& stop) {
    const Looked& looked = look(weight, expert, stop);
    std::vector<FormatChoice> choices;
    for (const PrecisionFormat& format : formats) {
        base::throwIfStopped(stop);
        FormatChoice& choice = choices.emplace_back();
        choice.name = format.name;
        choice.title = format.title;
        choice.bytes = kernels::bytesOf(kernels::DType::BF16, looked.matrix.lab.count());
        choice.packable = !format.quantization || canRound(format, looked.matrix.size());
        if (format.quantization && choice.packable) {
            const std::unique_ptr<RoundedMatrix> matrix = rounded(looked, format);
            choice.bytes = matrix->bytes();
            choice.error = packingError(matrix->view(), looked.values, pool_);
        }
        choice.bitsPerWeight = 8.0 * static_cast<double>(choice.bytes) / static_cast<double>(looked.matrix.lab.count());
    }
    return choices;
}

} // namespace vitrine::engine
