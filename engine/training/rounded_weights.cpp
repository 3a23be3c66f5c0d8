// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/training/rounded_weights.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <map>
#include <string>

#include "base/error.h"
#include "engine/quant/format_options.h"
#include "engine/quant/storage_scheme.h"
#include "kernels/context/context.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/ops/linear/weights.h"
#include "kernels/ops/rowwise/elementwise.h"

namespace vitrine::engine {

using base::MemoryCategory;
using kernels::DType;
using kernels::Shape;
using kernels::Tensor;
using kernels::TensorView;
using kernels::WeightFormat;
using kernels::WeightView;

namespace {

/// Rows that are packed at a time. A row is a matrix of its own for the op, and a launch has at most 65,535 of them.
constexpr std::int64_t kPieceRows = 32768;

std::map<std::string, WeightFormat> packedWeights(const ModelConfig& config) {
    std::map<std::string, WeightFormat> formats;
    for (const TensorSpec& spec : expectedTensors(config)) {
        if (canMergePacked(spec.packing.format)) {
            formats[spec.weight] = spec.packing.format;
        }
    }
    return formats;
}

/// Only stacks are merged and packed again.
WeightPacking packingOf(WeightFormat format) {
    WeightPacking packing = stackPacking();
    packing.format = format;
    return packing;
}

TensorView asRows(const TensorView& tensor) {
    const std::int64_t in = tensor.shape[tensor.shape.rank() - 1];
    return kernels::reshaped(tensor, Shape{tensor.shape.count() / in, in});
}

std::uint64_t packedBytes(WeightFormat format, const Shape& shape) {
    std::uint64_t bytes = 0;
    for (const StoredTensor& stored : storedTensors(packingOf(format), "", shape.dims())) {
        bytes += kernels::alignedBytes(kernels::bytesOf(stored.dtype, stored.memoryShape.count()));
    }
    return bytes;
}

/// A packed weight whose tensors lie one after the other from `begin`.
WeightView packedAt(void* begin, WeightFormat format, const Shape& shape) {
    WeightView out;
    out.format = format;
    auto* place = static_cast<std::byte*>(begin);
    for (const StoredTensor& stored : storedTensors(packingOf(format), "", shape.dims())) {
        TensorView& view = out.field(stored.field);
        view = {place, stored.dtype, stored.memoryShape, {}};
        place += kernels::alignedBytes(view.bytes());
    }
    return kernels::withShape(out);
}

} // namespace

RoundedWeights::RoundedWeights(Model& model, const ModelConfig& source, const TrainedState& state)
    : context_(model.context()) {
    addPieces(model, source, state);
    if (pieces_.empty()) {
        throw base::BadInput("merge_aware: none of the trained weights is packed in the model's files; train experts "
                             "of a model that has them packed, or leave merge_aware out");
    }
    allocate();
}

void RoundedWeights::addPieces(Model& model, const ModelConfig& source, const TrainedState& state) {
    const std::map<std::string, WeightFormat> formats = packedWeights(source);
    for (std::size_t i = 0; i < state.tensors().size(); ++i) {
        const TrainedTensor& tensor = state.tensors()[i];
        const auto format = formats.find(tensor.name);
        if (format == formats.end()) {
            continue;
        }
        const auto parameter = std::ranges::find(model.parameters(), tensor.name, &Parameter::name);
        const TensorView master = state.master(i);
        if (parameter == model.parameters().end() || parameter->view.transposed || master.empty()) {
            throw base::Internal(
                fmt::format("RoundedWeights: {} is not stored as (experts, out, in) with a master", tensor.name));
        }
        const TensorView values = asRows(tensor.value);
        const TensorView masters = asRows(master);
        for (std::int64_t begin = 0; begin < values.shape[0]; begin += kPieceRows) {
            const std::int64_t end = std::min(begin + kPieceRows, values.shape[0]);
            Piece piece{};
            piece.format = format->second;
            piece.value = kernels::sliceRows(values, begin, end);
            piece.master = kernels::sliceRows(masters, begin, end);
            pieces_.push_back(piece);
        }
    }
}

/// A row of masters is the A of an adapter of rank 1 whose B is 1, beside a weight of zeros: merging the two packs it.
void RoundedWeights::allocate() {
    std::int64_t rows = 0;
    std::uint64_t packed = 0;
    for (const Piece& piece : pieces_) {
        rows = std::max(rows, piece.value.shape[0]);
        packed = std::max(packed, packedBytes(piece.format, Shape{piece.value.shape[0], 1, piece.value.shape[1]}));
    }
    arena_ = context_.memory().reserveArena(2 * packed + kernels::alignedBytes(kernels::bytesOf(DType::F32, rows)),
                                            "rounded weights");
    const Shape bytes{static_cast<std::int64_t>(packed)};
    zero_ = Tensor(*arena_, MemoryCategory::Workspace, "rounded.zero", DType::U8, bytes);
    packed_ = Tensor(*arena_, MemoryCategory::Workspace, "rounded.packed", DType::U8, bytes);
    ones_ = Tensor(*arena_, MemoryCategory::Workspace, "rounded.ones", DType::F32, Shape{rows});
    context_.run(kernels::SetZero{zero_.view()});
    context_.run(kernels::FillRandom{ones_.view(), 0, 0, 1, 0}); // a deviation of 0: all are 1
    for (Piece& piece : pieces_) {
        const std::int64_t count = piece.value.shape[0];
        const std::int64_t in = piece.value.shape[1];
        const Shape stack{count, 1, in};
        piece.zero = packedAt(zero_.view().data, piece.format, stack);
        piece.packed = packedAt(packed_.view().data, piece.format, stack);
        piece.packedMatrix = packedAt(packed_.view().data, piece.format, Shape{count, in});
        piece.adapter.a = kernels::reshaped(piece.master, stack);
        piece.adapter.b = {ones_.view().data, DType::F32, Shape{count, 1, 1}, {}};
    }
}

void RoundedWeights::refresh() {
    const kernels::TraceScope scope(context_.tracer(), base::ScopeKind::Layer, "merge");
    for (const Piece& piece : pieces_) {
        context_.throwIfStopped();
        context_.run(kernels::MergePacked{piece.zero, piece.adapter, piece.packed});
        context_.run(kernels::Dequantize{piece.packedMatrix, piece.value});
    }
}

} // namespace vitrine::engine
