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
#include "engine/quant/stored_weight.h"
#include "kernels/formats/weight_formats.h"
#include "kernels/memory/resource.h"

namespace vitrine::engine {
namespace {

using kernels::DType;

constexpr std::uint64_t kStagingTarget = std::uint64_t{32} << 20; ///< of one half

class LayoutBuilder {
public:
    LayoutBuilder(const ModelSource& source, const LoadOptions& options) : source_(source), options_(options) {}

    WeightLayout build() {
        if (options_.pack != kernels::WeightFormat::Dense) {
            requireDense();
        }
        const std::vector<TensorSpec> specs = expectedTensors(source_.config);
        for (std::size_t i = 0; i < specs.size(); ++i) {
            take(specs[i], static_cast<std::uint32_t>(i));
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
        const ModelConfig& config = source_.config;
        const bool experts = config.expertFormat != kernels::WeightFormat::Dense;
        if (experts || !config.linears.offsets.empty()) {
            throw base::BadInput(fmt::format(
                "{}: weights: the model is stored as {} and is not packed again; choose quantized or dequantized",
                source_.name, kernels::packedFormat(experts ? config.expertFormat : config.linears.format).title));
        }
    }

    /// The linears of attention and dense MLPs.
    bool packs(const TensorSpec& spec) const {
        return options_.pack != kernels::WeightFormat::Dense && spec.shape.size() == 2 &&
               (spec.part == ModelPart::Attention || spec.part == ModelPart::DenseMlp);
    }

    void widenPieces() {
        for (WeightPiece& piece : layout_.pieces) {
            const bool narrow = piece.dtype == DType::BF16 || piece.dtype == DType::F16;
            if (!narrow || piece.expand || piece.format != kernels::WeightFormat::Dense) {
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
        const auto matrices = static_cast<std::uint64_t>(matricesOf(piece));
        const auto staged = static_cast<std::uint64_t>(stagedMatrices(piece));
        std::uint64_t bytes = 0;
        for (const WeightSource& source : piece.sources) {
            bytes += kernels::alignedBytes(source.bytes / matrices * staged);
        }
        return bytes;
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
        if (source_.checkpoint != nullptr) {
            out.location = findModelTensor(*source_.checkpoint, spec.name);
            if (out.location == nullptr) {
                throw base::BadInput(fmt::format("{}: {}: is missing", source_.folder, spec.name));
            }
            out.spec.dtype = out.location->entry->dtype;
        }
        out.bytes = kernels::bytesOf(out.spec.dtype, kernels::Shape(spec.shape).count());
        return out;
    }

    void take(const TensorSpec& spec, std::uint32_t index) {
        const std::size_t expert = spec.name.find(".experts.");
        const bool single = expert != std::string::npos && spec.shape.size() == 2 && spec.part == ModelPart::Experts &&
                            spec.name.ends_with("_proj.weight");
        if (single) {
            stackExpert(spec, index, spec.name.substr(0, expert) + ".experts.");
        } else if (options_.dequantize && spec.format != kernels::WeightFormat::Dense) {
            expand(spec, index);
        } else if (packs(spec)) {
            pack(spec, index);
        } else {
            WeightSource source = sourceOf(spec, index);
            WeightPiece piece{spec.name, source.spec.dtype, kernels::Shape(spec.shape), spec.layer};
            if (spec.format != kernels::WeightFormat::Dense) {
                piece.shape = shapeInMemory(spec.format, spec.field, spec.shape, spec.weightShape);
            }
            piece.bytes = source.bytes;
            piece.sources.push_back(std::move(source));
            piece.format = spec.format;
            piece.field = spec.field;
            piece.weight = spec.weight;
            piece.scaleOffset = spec.scaleOffset;
            layout_.pieces.push_back(std::move(piece));
        }
    }

    /// A dense tensor becomes the pieces of a packed weight.
    void pack(const TensorSpec& spec, std::uint32_t index) {
        const kernels::PackedFormat& format = kernels::packedFormat(options_.pack);
        if (spec.shape[1] % format.group != 0) {
            throw base::BadInput(fmt::format("{}: {}: {} needs an input axis that is a multiple of {}, and it is {}; "
                                             "choose other weights",
                                             source_.name, spec.name, format.title, format.group, spec.shape[1]));
        }
        for (const StoredTensor& tensor : storedTensors(options_.pack, spec.name, spec.shape, true)) {
            const kernels::Shape shape =
                shapeInMemory(options_.pack, tensor.field, tensor.shape, kernels::Shape(spec.shape));
            WeightPiece piece{tensor.name, tensor.dtype, shape, spec.layer};
            piece.bytes = kernels::bytesOf(tensor.dtype, shape.count());
            piece.format = options_.pack;
            piece.field = tensor.field;
            piece.weight = spec.name;
            piece.pack = true;
            if (tensor.field == kernels::WeightField::Data) {
                piece.sources.push_back(sourceOf(spec, index));
            }
            layout_.pieces.push_back(std::move(piece));
        }
    }

    /// The tensors of a packed weight, which follow each other, become the sources of one dense piece.
    void expand(const TensorSpec& spec, std::uint32_t index) {
        if (layout_.pieces.empty() || layout_.pieces.back().name != spec.weight) {
            WeightPiece piece;
            piece.name = spec.weight;
            piece.dtype = DType::BF16;
            piece.shape = spec.weightShape;
            piece.layer = spec.layer;
            piece.expand = true;
            piece.bytes = kernels::bytesOf(piece.dtype, piece.shape.count());
            layout_.pieces.push_back(std::move(piece));
        }
        layout_.pieces.back().sources.push_back(sourceOf(spec, index));
    }

    /// "PREFIX J.gate_proj.weight" becomes rows of the stack of its layer: gate then up, or down.
    void stackExpert(const TensorSpec& spec, std::uint32_t index, const std::string& prefix) {
        const std::string rest = spec.name.substr(prefix.size());
        const bool down = rest.ends_with("down_proj.weight");
        const bool up = rest.ends_with("up_proj.weight");
        const std::uint64_t expert = std::stoull(rest);
        const std::string name = prefix + (down ? "down_proj" : "gate_up_proj");
        WeightSource source = sourceOf(spec, index);
        const std::uint64_t perExpert = source.bytes * (down ? 1 : 2);
        source.offset = expert * perExpert + (up ? source.bytes : 0);

        auto it = std::find_if(layout_.pieces.rbegin(), layout_.pieces.rend(), [&](const WeightPiece& piece) {
            return piece.layer != spec.layer || piece.name == name;
        });
        if (it == layout_.pieces.rend() || it->name != name) {
            WeightPiece piece{name, source.spec.dtype,
                              kernels::Shape{source_.config.experts, spec.shape[0] * (down ? 1 : 2), spec.shape[1]},
                              spec.layer};
            piece.bytes = perExpert * static_cast<std::uint64_t>(source_.config.experts);
            layout_.pieces.push_back(std::move(piece));
            it = layout_.pieces.rbegin();
        }
        if (it->dtype != source.spec.dtype) {
            throw base::BadInput(fmt::format("{}: {}: the experts of a layer must have one dtype",
                                             source.location->file->path(), spec.name));
        }
        it->sources.push_back(std::move(source));
    }

    const ModelSource& source_;
    const LoadOptions& options_;
    WeightLayout layout_;
};

} // namespace

std::int64_t matricesOf(const WeightPiece& piece) {
    return piece.shape.rank() == 3 ? piece.shape[0] : 1;
}

std::int64_t stagedMatrices(const WeightPiece& piece) {
    const auto matrices = static_cast<std::uint64_t>(matricesOf(piece));
    std::uint64_t bytes = 0;
    for (const WeightSource& source : piece.sources) {
        bytes += source.bytes;
    }
    const std::uint64_t perMatrix = bytes / matrices;
    return static_cast<std::int64_t>(
        std::clamp<std::uint64_t>(kStagingTarget / std::max<std::uint64_t>(perMatrix, 1), 1, matrices));
}

WeightLayout layOutWeights(const ModelSource& source, const LoadOptions& options) {
    return LayoutBuilder(source, options).build();
}

std::string contentDigest(const WeightLayout& layout, const ModelSource& source, std::uint64_t seed) {
    std::string text = fmt::format("{} bytes\n", layout.arenaBytes);
    if (source.synthetic()) {
        text += fmt::format("synthetic, seed {}\n", seed);
    }
    std::set<const SafetensorsFile*> files;
    for (const WeightPiece& piece : layout.pieces) {
        text += fmt::format("{} {} {} {}\n", piece.name, kernels::dtypeName(piece.dtype),
                            fmt::join(piece.shape.dims(), ","), piece.expand || piece.widen || piece.pack);
        for (const WeightSource& from : piece.sources) {
            text += fmt::format("  {} {} {} {}", from.index, from.spec.name, from.offset, from.bytes);
            if (from.location == nullptr) {
                const RandomRule rule = randomRule(source.config, from.spec);
                text += fmt::format(" {} {}\n", rule.center, rule.deviation);
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
