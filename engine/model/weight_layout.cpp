// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/weight_layout.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string_view>

#include "base/error.h"
#include "base/sha256.h"
#include "engine/checkpoint/synthesize.h"
#include "engine/model/weights.h"
#include "engine/parallel/shard_plan.h"
#include "engine/quant/storage_scheme.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/memory/resource.h"

namespace vitrine::engine {
namespace {

using kernels::DType;

/// Latent attention multiplies by each head's rows of this weight, in both directions: it is dense in memory.
bool isLatentUp(std::string_view weight) {
    return weight.ends_with(".kv_b_proj.weight");
}

constexpr std::uint64_t kStagingTarget = std::uint64_t{32} << 20; ///< of one half

class LayoutBuilder {
public:
    LayoutBuilder(const ModelSource& source, const LoadOptions& options) : source_(source), options_(options) {}

    WeightLayout build() {
        if (options_.pack != kernels::WeightFormat::Dense) {
            requireDense();
        }
        if (options_.shards != nullptr) {
            for (std::size_t i = 0; i < options_.shards->tensors.size(); ++i) {
                part_ = &options_.shards->tensors[i];
                take(part_->spec, options_.shards->indices[i]);
            }
        } else {
            const std::vector<TensorSpec> specs = expectedTensors(source_.config);
            for (std::size_t i = 0; i < specs.size(); ++i) {
                take(specs[i], static_cast<std::uint32_t>(i));
            }
        }
        if (options_.widen) {
            widenPieces();
        }
        for (const WeightPiece& piece : layout_.pieces) {
            layout_.arenaBytes +=
                std::max<std::uint64_t>(kernels::alignedBytes(piece.bytes), kernels::kMemoryAlignment);
            layout_.residentBytes += piece.bytes;
            for (const WeightSource& source : piece.sources) {
                layout_.sourceBytes += source.bytes;
            }
            if (piece.expand || piece.widen || (piece.pack && source_.synthetic())) {
                layout_.stagingBytes = std::max(layout_.stagingBytes, 2 * stagingOf(piece));
            }
        }
        return std::move(layout_);
    }

private:
    void requireDense() const {
        if (const auto& packings = source_.config.packings; !packings.empty()) {
            throw base::BadInput(fmt::format(
                "{}: weights: the model is stored as {} and is not packed again; choose quantized or dequantized",
                source_.name, kernels::packedFormat(packings.begin()->second.format).title));
        }
    }

    /// The linears of attention and dense MLPs.
    bool packs(const TensorSpec& spec) const {
        return options_.pack != kernels::WeightFormat::Dense && spec.shape.size() == 2 &&
               (spec.part == ModelPart::Attention || spec.part == ModelPart::DenseMlp) && !isLatentUp(spec.name);
    }

    void widenPieces() {
        for (WeightPiece& piece : layout_.pieces) {
            const bool narrow = piece.dtype == DType::BF16 || piece.dtype == DType::F16;
            if (!narrow || piece.expand || !piece.weight.empty()) {
                continue;
            }
            piece.widen = true;
            piece.dtype = DType::F32;
            piece.bytes = kernels::bytesOf(piece.dtype, piece.shape.count());
        }
    }

    std::uint64_t stagingOf(const WeightPiece& piece) const {
        if (piece.widen || piece.pack) {
            return widenedStaging(piece);
        }
        std::uint64_t largest = 0;
        for (std::size_t begin = 0; begin < piece.sources.size();) {
            const std::span<const WeightSource> weight = sourcesOfWeight(piece, begin);
            const auto matrices = static_cast<std::uint64_t>(matricesOf(weight));
            const auto staged = static_cast<std::uint64_t>(stagedMatrices(weight));
            std::uint64_t bytes = 0;
            for (const WeightSource& source : weight) {
                bytes += kernels::alignedBytes(source.bytes / matrices * staged);
            }
            largest = std::max(largest, bytes);
            begin += weight.size();
        }
        return largest;
    }

    /// A synthetic tensor is filled as a whole, a file is read in pieces.
    std::uint64_t widenedStaging(const WeightPiece& piece) const {
        std::uint64_t largest = 0;
        for (const WeightSource& source : piece.sources) {
            largest = std::max(largest, source.bytes);
        }
        return kernels::alignedBytes(source_.synthetic() ? largest : std::min(largest, kStagingTarget));
    }

    WeightSource sourceOf(const TensorSpec& spec, std::uint32_t index) const {
        WeightSource out{index, spec};
        out.part = part_ != nullptr && !part_->cut->memory.whole() ? part_ : nullptr;
        if (source_.checkpoint != nullptr) {
            out.location =
                findModelTensor(options_.shards != nullptr ? *options_.shards->files : *source_.checkpoint, spec.name);
            if (out.location == nullptr) {
                throw base::BadInput(fmt::format("{}: {}: is missing", source_.folder, spec.name));
            }
            out.spec.dtype = out.location->entry->dtype;
        }
        if (spec.packed()) {
            asInMemory(out);
        } else {
            out.bytes = kernels::bytesOf(out.spec.dtype, kernels::Shape(spec.shape).count());
        }
        return out;
    }

    /// Type and size of a tensor of a packed weight where kernels read it. Types that stand for those of the file are
    /// the file's.
    static void asInMemory(WeightSource& source) {
        StoredTensor& stored = source.spec.stored;
        stored.memoryType = stored.memoryType == DType::None ? source.spec.dtype : stored.memoryType;
        source.bytes = kernels::bytesOf(stored.memoryType, stored.memoryShape.count());
    }

    void take(const TensorSpec& spec, std::uint32_t index) {
        const std::string& weight = spec.packed() ? spec.weight : spec.name;
        const std::size_t expert = weight.find(".experts.");
        const std::int64_t rank = spec.packed() ? spec.weightShape.rank() : std::ssize(spec.shape);
        const bool single = expert != std::string::npos && rank == 2 && spec.part == ModelPart::Experts &&
                            weight.ends_with("_proj.weight");
        if (single) {
            stackExpert(spec, index, weight, weight.substr(0, expert) + ".experts.");
        } else if (spec.packed() && (options_.dequantize || isLatentUp(weight))) {
            expand(sourceOf(spec, index), spec.weight, spec.weightShape);
        } else if (packs(spec)) {
            pack(spec, index);
        } else {
            WeightSource source = sourceOf(spec, index);
            WeightPiece piece = pieceOf(source, spec.name, kernels::Shape(spec.shape));
            if (spec.packed()) {
                piece.shape = source.spec.stored.memoryShape;
                piece.weight = spec.weight;
                piece.weightShape = spec.weightShape;
                piece.weightRows = spec.weightShape[spec.weightShape.rank() - 2];
            }
            piece.bytes = source.bytes;
            piece.sources.push_back(std::move(source));
            layout_.pieces.push_back(std::move(piece));
        }
    }

    static WeightPiece pieceOf(const WeightSource& source, std::string name, const kernels::Shape& shape) {
        const TensorSpec& spec = source.spec;
        WeightPiece piece;
        piece.name = std::move(name);
        piece.dtype = spec.packed() ? spec.stored.memoryType : spec.dtype;
        piece.shape = shape;
        piece.layer = spec.layer;
        piece.packing = spec.packing;
        piece.field = spec.stored.field;
        return piece;
    }

    /// A dense tensor becomes the pieces of a packed weight.
    void pack(const TensorSpec& spec, std::uint32_t index) {
        const kernels::PackedFormat& format = kernels::packedFormat(options_.pack);
        if (spec.shape[1] % format.group != 0) {
            throw base::BadInput(fmt::format("{}: {}: {} needs an input axis that is a multiple of {}, and it is {}; "
                                             "choose other weights",
                                             source_.name, spec.name, format.title, format.group, spec.shape[1]));
        }
        for (const StoredTensor& tensor : storedTensors(linearPacking(), spec.name, spec.shape)) {
            WeightPiece piece{tensor.name, tensor.dtype, tensor.memoryShape, spec.layer};
            piece.bytes = kernels::bytesOf(tensor.dtype, tensor.memoryShape.count());
            piece.packing = linearPacking();
            piece.field = tensor.field;
            piece.weight = spec.name;
            piece.weightShape = kernels::Shape(spec.shape);
            piece.weightRows = spec.shape[0];
            piece.pack = true;
            if (tensor.field == kernels::WeightField::Data) {
                piece.sources.push_back(sourceOf(spec, index));
            }
            layout_.pieces.push_back(std::move(piece));
        }
    }

    /// The tensors of a packed weight, which follow each other, become the sources of one dense piece.
    void expand(WeightSource source, const std::string& name, const kernels::Shape& shape) {
        if (layout_.pieces.empty() || layout_.pieces.back().name != name) {
            WeightPiece piece;
            piece.name = name;
            piece.dtype = DType::BF16;
            piece.shape = shape;
            piece.layer = source.spec.layer;
            piece.expand = true;
            piece.bytes = kernels::bytesOf(piece.dtype, piece.shape.count());
            layout_.pieces.push_back(std::move(piece));
        }
        layout_.pieces.back().sources.push_back(std::move(source));
    }

    /// The last piece of a layer that has this name, or null.
    WeightPiece* lastPiece(std::int32_t layer, const std::string& name) {
        for (auto it = layout_.pieces.rbegin(); it != layout_.pieces.rend() && it->layer == layer; ++it) {
            if (it->name == name) {
                return &*it;
            }
        }
        return nullptr;
    }

    /// "PREFIX J.gate_proj.weight", or a tensor of it, becomes rows of the stack of its layer: gate then up, or down.
    void stackExpert(const TensorSpec& spec, std::uint32_t index, const std::string& weight,
                     const std::string& prefix) {
        if (spec.packed() && !options_.dequantize && spec.packing.format == linearPacking().format) {
            throw base::Unsupported(fmt::format("{}: {}: experts in {} are not multiplied as they are stored; choose "
                                                "the weights dequantized",
                                                source_.name, weight,
                                                kernels::packedFormat(spec.packing.format).title));
        }
        const std::string rest = weight.substr(prefix.size());
        const bool down = rest.ends_with("down_proj.weight");
        const bool up = rest.ends_with("up_proj.weight");
        const std::int64_t halves = down ? 1 : 2;
        const kernels::RankShare share = options_.shards != nullptr
                                             ? options_.shards->plan->experts(options_.shards->rank)
                                             : kernels::RankShare{0, source_.config.experts};
        const std::int64_t expert = std::stoll(rest) - share.begin;
        const std::int64_t experts = share.count();
        const std::string stack = prefix + (down ? "down_proj" : "gate_up_proj");
        const std::int64_t rows = spec.packed() ? spec.weightShape[0] : spec.shape[0];
        const std::int64_t in = spec.packed() ? spec.weightShape[1] : spec.shape[1];
        WeightSource source = sourceOf(spec, index);
        const std::uint64_t perExpert = source.bytes * static_cast<std::uint64_t>(halves);
        source.offset = static_cast<std::uint64_t>(expert) * perExpert + (up ? source.bytes : 0);
        source.row = expert * rows * halves + (up ? rows : 0);
        const kernels::Shape whole{experts, rows * halves, in};
        if (spec.packed() && options_.dequantize) {
            if (lastPiece(spec.layer, stack) == nullptr) {
                expand(std::move(source), stack, whole);
            } else {
                lastPiece(spec.layer, stack)->sources.push_back(std::move(source));
            }
            return;
        }
        // The piece of a field is called as the tensor is: "PREFIX gate_up_proj.weight_scale".
        const std::string name = spec.packed() ? stack + spec.name.substr(moduleOf(weight).size()) : stack;
        WeightPiece* piece = lastPiece(spec.layer, name);
        if (piece == nullptr) {
            const kernels::Shape& part = spec.packed() ? source.spec.stored.memoryShape : kernels::Shape(spec.shape);
            std::vector<std::int64_t> stacked(part.dims().begin(), part.dims().end());
            stacked[0] *= halves;
            stacked.insert(stacked.begin(), experts);
            layout_.pieces.push_back(pieceOf(source, name, kernels::Shape(stacked)));
            piece = &layout_.pieces.back();
            piece->bytes = perExpert * static_cast<std::uint64_t>(experts);
            piece->weight = spec.packed() ? stack : std::string();
            piece->weightShape = whole;
            piece->weightRows = rows;
        }
        if (piece->dtype != (spec.packed() ? source.spec.stored.memoryType : source.spec.dtype) ||
            piece->packing != spec.packing) {
            throw base::BadInput(fmt::format("{}: {}: the experts of a layer must have one dtype and one format",
                                             source.location->file->path(), spec.name));
        }
        piece->sources.push_back(std::move(source));
    }

    const ModelSource& source_;
    const LoadOptions& options_;
    const RankTensor* part_ = nullptr; ///< that is laid out now; null: of no rank
    WeightLayout layout_;
};

} // namespace

std::span<const WeightSource> sourcesOfWeight(const WeightPiece& piece, std::size_t begin) {
    std::size_t end = begin;
    while (end < piece.sources.size() && piece.sources[end].spec.weight == piece.sources[begin].spec.weight) {
        ++end;
    }
    return std::span(piece.sources).subspan(begin, end - begin);
}

std::int64_t matricesOf(std::span<const WeightSource> weight) {
    const kernels::Shape& shape = weight.front().spec.weightShape;
    return shape.rank() == 3 ? shape[0] : 1;
}

std::int64_t stagedMatrices(std::span<const WeightSource> weight) {
    const auto matrices = static_cast<std::uint64_t>(matricesOf(weight));
    std::uint64_t bytes = 0;
    for (const WeightSource& source : weight) {
        bytes += source.bytes;
    }
    const std::uint64_t perMatrix = bytes / matrices;
    return static_cast<std::int64_t>(
        std::clamp<std::uint64_t>(kStagingTarget / std::max<std::uint64_t>(perMatrix, 1), 1, matrices));
}

WeightLayout layOutWeights(const ModelSource& source, const LoadOptions& options) {
    return LayoutBuilder(source, options).build();
}

namespace {

/// Which part of a tensor that is made a rank has.
std::string partText(const WeightSource& source) {
    std::string text;
    for (std::size_t dim = 0; source.part != nullptr && dim < source.part->cut->memory.slice.size(); ++dim) {
        const DimSlice& slice = source.part->cut->memory.slice[dim];
        text += fmt::format(" [{} {} {}]", slice.begin, slice.count, slice.blocks);
    }
    return text;
}

} // namespace

std::string contentDigest(const WeightLayout& layout, const ModelSource& source, std::uint64_t seed) {
    std::string text = fmt::format("{} bytes\n", layout.arenaBytes);
    if (source.synthetic()) {
        text += fmt::format("synthetic, seed {}\n", seed);
    }
    std::set<const SafetensorsFile*> files;
    for (const WeightPiece& piece : layout.pieces) {
        text += fmt::format("{} {} {} {}\n", piece.name, kernels::dtypeName(piece.dtype),
                            fmt::join(piece.shape.dims(), ","), piece.expand || piece.widen || piece.pack);
        text += fmt::format("  {} {} {}\n", piece.packing.group, piece.packing.zerosMinusOne, piece.weightRows);
        for (const WeightSource& from : piece.sources) {
            text += fmt::format("  {} {} {} {}", from.index, from.spec.name, from.offset, from.bytes);
            if (from.location == nullptr) {
                const RandomRule rule =
                    randomRule(source.config, from.part != nullptr ? from.part->wholeSpec() : from.spec);
                text += fmt::format(" {} {}{}\n", rule.center, rule.deviation, partText(from));
                continue;
            }
            text += fmt::format(" {} {}\n", from.location->file->path(), from.location->entry->offset);
            if (files.insert(from.location->file).second) {
                text += from.location->file->identity() + "\n";
            }
        }
    }
    return base::sha256Hex(text);
}

} // namespace vitrine::engine
