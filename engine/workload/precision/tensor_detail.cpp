// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/tensor_detail.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/workload/convert/weight_reader.h"
#include "engine/workload/precision/lab_weights.h"
#include "engine/workload/precision/tensor_groups.h"
#include "engine/workload/precision/tensor_scan.h"

namespace vitrine::engine {
namespace {

constexpr std::int64_t kRowsAtLeast = 8; ///< rows that are packed together: codes of some layouts share words

constexpr std::int64_t kBandValues = 1 << 19; ///< of rows that are rounded at a time: they stay in a core's cache

/// Rows that are rounded together because they share scales. Others do not change what becomes of them.
std::int64_t rowsTogether(const WeightPacking& packing, const MatrixSize& size) {
    return packing.packedScales ? size.out : std::max(kRowsAtLeast, rowGroupOf(packing, size.out));
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
    TensorDetail out;
    out.name = weight;
    out.expert = expert;
    out.out = looked.matrix.lab.out;
    out.in = looked.matrix.lab.in;
    out.format = format.title;
    out.bytes = matrix->bytes();
    out.bytesBf16 = kernels::bytesOf(kernels::DType::BF16, looked.matrix.lab.count());
    scanTensor(*matrix, looked.values, pool_, stop, out);
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
    // Rows that share no scale with the group's do not matter.
    const std::int64_t together = rowsTogether(packing, size);
    const std::int64_t firstRow = group / perRow / together * together;
    const MatrixSize band{std::min(together, size.out - firstRow), size.in};
    const auto values =
        std::span<const float>(looked.values)
            .subspan(static_cast<std::size_t>(firstRow * size.in), static_cast<std::size_t>(band.count()));
    const auto matrix =
        std::make_unique<RoundedMatrix>(format, looked.label(source_), band, looked.dtype, values, pool_);
    const std::vector<float> after = matrix->expanded(pool_);
    const GroupLayout groups(matrix->view());
    group -= firstRow * perRow;
    GroupDetail out;
    const auto part = [&](std::span<const float> all) {
        const std::span<const float> own = all.subspan(groups.begin(group), groups.length(group));
        return std::vector<float>(own.begin(), own.end());
    };
    out.values = part(values);
    out.rounded = part(after);
    out.error = groupError(groups, group, out.values, out.rounded);
    out.error.group += firstRow * perRow;
    out.error.row += firstRow;
    out.levels = LevelFinder(*matrix).ofRow(group / groups.perRow)[static_cast<std::size_t>(group % groups.perRow)];
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

/// Band of rows after band, so that no packed copy of the matrix is made.
RoundingError TensorLab::errorIn(const Looked& looked, const PrecisionFormat& format, const base::StopToken& stop) {
    const MatrixSize size = looked.matrix.size();
    const std::int64_t together = rowsTogether(format.quantization->packing, size);
    const std::int64_t height = std::max<std::int64_t>(1, kBandValues / (together * size.in)) * together;
    std::vector<RoundingError> bands(static_cast<std::size_t>((size.out + height - 1) / height));
    const auto round = [&](std::int64_t index) {
        const std::int64_t first = index * height;
        const MatrixSize band{std::min(height, size.out - first), size.in};
        const auto values =
            std::span<const float>(looked.values)
                .subspan(static_cast<std::size_t>(first * size.in), static_cast<std::size_t>(band.count()));
        const RoundedMatrix matrix(format, looked.label(source_), band, looked.dtype, values, pool_);
        bands[static_cast<std::size_t>(index)] = packingError(matrix.view(), values, pool_);
    };
    if (bands.size() == 1) {
        round(0); // on all threads
    } else {
        pool_.parallelFor(static_cast<std::int64_t>(bands.size()), 1, [&](std::int64_t first, std::int64_t end, int) {
            for (std::int64_t index = first; index < end && !stop.stop_requested(); ++index) {
                round(index);
            }
        });
    }
    base::throwIfStopped(stop);
    RoundingError sum;
    for (const RoundingError& band : bands) {
        sum.add(band);
    }
    return sum;
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
            choice.bytes = packedBytes(format, looked.matrix.size());
            choice.error = errorIn(looked, format, stop);
        }
        choice.bitsPerWeight = 8.0 * static_cast<double>(choice.bytes) / static_cast<double>(looked.matrix.lab.count());
    }
    return choices;
}

} // namespace vitrine::engine
