// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/precision/model_rounding.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/checkpoint/single_expert.h"
#include "engine/training/parameters/host_floats.h"
#include "kernels/context/context.h"

namespace vitrine::engine {
namespace {

std::uint64_t denseBytes(const MatrixSize& size) {
    return kernels::bytesOf(kernels::DType::BF16, size.count());
}

} // namespace

WeightWriter::WeightWriter(Model& model) : model_(model) {
    for (const Parameter& parameter : model.parameters()) {
        weights_[parameter.name] = parameter.view;
    }
    model.markWeightsChanged();
}

void WeightWriter::write(const LabMatrix& matrix, std::span<const float> values) {
    const MatrixSize size = matrix.size();
    auto found = weights_.find(matrix.weight.name);
    std::int64_t place = matrix.matrix;
    if (found == weights_.end()) {
        // The model has the expert in a stack.
        const SingleExpert single(matrix.weight.name);
        found = weights_.find(single.parameter);
        place = single.place();
    }
    if (found == weights_.end() || found->second.quantized()) {
        throw base::Internal(fmt::format("precision: the model has no dense weight {}", matrix.weight.name));
    }
    const kernels::WeightView& weight = found->second;
    kernels::TensorView part = weight.data;
    const std::uint64_t offset = kernels::bytesOf(part.dtype, place * size.count());
    part.data = static_cast<std::byte*>(part.data) + offset;
    part.shape = kernels::Shape(std::vector<std::int64_t>{size.count()});
    if (weight.transposed) {
        uploadFloats(model_.context(), transposedMatrix({values.begin(), values.end()}, size.out, size.in), part);
    } else {
        uploadFloats(model_.context(), values, part);
    }
}

ModelRounding::ModelRounding(const ModelSource& source, std::vector<PrecisionFormat> formats,
                             std::vector<std::string> ignored, base::ThreadPool& pool)
    : source_(source), formats_(std::move(formats)), matrices_(labMatrices(source.config)), pool_(pool),
      reader_(source, pool) {
    Quantization patterns;
    patterns.ignored = std::move(ignored);
    for (const LabMatrix& matrix : matrices_) {
        ignored_.push_back(!patterns.packs(matrix.weight.name));
    }
}

bool ModelRounding::keeps(std::size_t format, std::size_t matrix) const {
    return matrices_[matrix].exact || ignored_[matrix] || !canRound(formats_[format], matrices_[matrix].size());
}

PrecisionResult ModelRounding::emptyResult() const {
    PrecisionResult result;
    std::uint64_t stored = 0;
    for (const LabMatrix& matrix : matrices_) {
        result.weights.push_back(matrix.lab);
        stored += matrix.matrix == 0 ? reader_.storedBytes(matrix.weight) : 0;
    }
    result.keptBytes = source_.checkpoint->totalBytes() - std::min(stored, source_.checkpoint->totalBytes());
    for (std::size_t format = 0; format < formats_.size(); ++format) {
        FormatEffect& effect = result.formats.emplace_back();
        effect.name = formats_[format].name;
        effect.title = formats_[format].title;
        effect.bytes = result.keptBytes;
        std::uint64_t bytes = 0;
        std::int64_t values = 0;
        for (std::size_t i = 0; i < matrices_.size(); ++i) {
            const MatrixSize size = matrices_[i].size();
            WeightEffect& weight = result.effects.emplace_back();
            weight.packable = format == 0 || canRound(formats_[format], size);
            weight.kept = format > 0 && keeps(format, i);
            weight.bytes = format > 0 && weight.packable ? packedBytes(formats_[format], size) : denseBytes(size);
            effect.bytes += weight.kept ? denseBytes(size) : weight.bytes;
            effect.packedWeights += format > 0 && !weight.kept ? 1 : 0;
            bytes += weight.kept ? 0 : weight.bytes;
            values += weight.kept ? 0 : size.count();
        }
        effect.bitsPerWeight = values > 0 ? 8.0 * static_cast<double>(bytes) / static_cast<double>(values) : 16;
    }
    return result;
}

std::vector<float> ModelRounding::roundOne(std::size_t format, const LabMatrix& matrix, std::span<const float> values,
                                           bool wanted, WeightEffect& effect) {
    const RoundedMatrix rounded(formats_[format], source_.name + ": " + matrix.weight.name, matrix.size(),
                                reader_.typeOf(matrix.weight.name), values, pool_);
    effect.error = packingError(rounded.view(), values, pool_);
    return wanted ? rounded.expanded(pool_) : std::vector<float>();
}

void ModelRounding::round(std::size_t format, PrecisionResult& result, WeightWriter* writer,
                          const base::StopToken& stop, base::ProgressSink* progress,
                          const std::function<void()>& measured) {
    std::uint64_t done = 0, total = 0;
    for (const LabMatrix& matrix : matrices_) {
        total += static_cast<std::uint64_t>(matrix.lab.count());
    }
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
        base::throwIfStopped(stop);
        const LabMatrix& matrix = matrices_[i];
        if (progress != nullptr) {
            progress->progress(fmt::format("Rounding to {}: {}", formats_[format].title, matrix.weight.name), done,
                               total);
        }
        const std::vector<float> values = reader_.matrix(matrix.weight, matrix.matrix);
        WeightEffect& effect = result.effects[format * matrices_.size() + i];
        std::vector<float> rounded;
        if (effect.packable) {
            rounded = roundOne(format, matrix, values, writer != nullptr && !effect.kept, effect);
            result.weights[i].squaredValues = effect.error.squaredValues;
        }
        if (writer != nullptr) {
            writer->write(matrix, effect.kept ? values : rounded);
        }
        done += static_cast<std::uint64_t>(matrix.lab.count());
        measured();
    }
}

void ModelRounding::putPart(std::size_t format, const KeepPart& part, bool rounded, WeightWriter& writer,
                            const base::StopToken& stop) {
    for (std::size_t i = 0; i < matrices_.size(); ++i) {
        const LabMatrix& matrix = matrices_[i];
        if (!part.has(matrix.lab) || keeps(format, i)) {
            continue;
        }
        base::throwIfStopped(stop);
        const std::vector<float> values = reader_.matrix(matrix.weight, matrix.matrix);
        WeightEffect unused;
        writer.write(matrix, rounded ? roundOne(format, matrix, values, true, unused) : values);
    }
}

} // namespace vitrine::engine
