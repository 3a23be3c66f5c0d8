// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/gguf_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <unordered_map>

#include "base/error.h"
#include "base/log.h"
#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/gguf_names.h"
#include "engine/checkpoint/made_tensor_file.h"
#include "engine/checkpoint/tensor_table.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using Dims = std::vector<std::int64_t>;

constexpr std::int64_t kReadTarget = std::int64_t{1} << 20; ///< bytes of the file that are taken apart at once

/// A tensor as the engine sees it, and the rows of the file that it is made of.
struct GgufView {
    TensorEntry entry;
    std::vector<const GgufTensor*> sources; ///< of one type; row r is row r / n of source r % n
    bool packed = false;                    ///< a field of a weight that stays packed
    kernels::WeightField field = kernels::WeightField::Data;
    std::int64_t rows = 0;
    std::int64_t rowElements = 0;
    std::int64_t rowBytes = 0;  ///< in this view
    std::int64_t firstRow = 0;  ///< of the sources
    std::int64_t headRows = 0;  ///< rows of a head whose order is llama.cpp's; 0: rows lie as they should
    std::int64_t sourceRow = 0; ///< bytes of a row of a source

    const GgufType& type() const { return *sources.front()->type; }

    /// The row of source `row % sources.size()` that holds row `row`.
    std::int64_t placeOf(std::int64_t row) const {
        std::int64_t place = row / std::ssize(sources);
        if (headRows > 0) {
            const std::int64_t inside = place % headRows;
            const std::int64_t half = headRows / 2;
            place = place - inside + inside % half * 2 + inside / half;
        }
        return firstRow + place;
    }
};

std::vector<TensorEntry> entriesOf(const std::vector<GgufView>& views) {
    std::vector<TensorEntry> out;
    out.reserve(views.size());
    for (const GgufView& view : views) {
        out.push_back(view.entry);
    }
    return out;
}

/// Codes and scales of a weight need the same blocks.
class GgufTensorFile final : public MadeTensorFile {
public:
    GgufTensorFile(std::shared_ptr<const GgufFile> file, std::vector<GgufView> views)
        : MadeTensorFile(file->path(), file->identity(), entriesOf(views)), file_(std::move(file)),
          views_(std::move(views)) {}

protected:
    Rows rowsOf(std::size_t tensor) const override {
        const GgufView& view = views_[tensor];
        return {view.rowBytes, std::max<std::int64_t>(1, kReadTarget / std::max(view.sourceRow, view.rowBytes))};
    }
    void makeRows(std::size_t tensor, std::int64_t first, std::int64_t count, std::span<std::byte> out) const override {
        makeRows(views_[tensor], first, count, {reinterpret_cast<std::uint8_t*>(out.data()), out.size()});
    }

private:
    void makeRows(const GgufView& view, std::int64_t begin, std::int64_t count, std::span<std::uint8_t> out) const {
        const std::int64_t sources = std::ssize(view.sources);
        std::vector<std::uint8_t> blocks;
        for (std::int64_t s = 0; s < sources; ++s) {
            const std::int64_t firstOwn = begin + ((s - begin) % sources + sources) % sources;
            std::int64_t low = INT64_MAX;
            std::int64_t high = 0;
            for (std::int64_t row = firstOwn; row < begin + count; row += sources) {
                low = std::min(low, view.placeOf(row));
                high = std::max(high, view.placeOf(row) + 1);
            }
            if (low >= high) {
                continue;
            }
            const GgufTensor& tensor = *view.sources[static_cast<std::size_t>(s)];
            blocks.resize(static_cast<std::size_t>((high - low) * view.sourceRow));
            file_->read(tensor, static_cast<std::uint64_t>(low * view.sourceRow), blocks.data(), blocks.size());
            checkBlocks(tensor, blocks, low * view.sourceRow);
            for (std::int64_t row = firstOwn; row < begin + count; row += sources) {
                const auto from = static_cast<std::size_t>((view.placeOf(row) - low) * view.sourceRow);
                const auto to = static_cast<std::size_t>((row - begin) * view.rowBytes);
                makeRow(view, std::span(blocks).subspan(from, static_cast<std::size_t>(view.sourceRow)),
                        out.subspan(to, static_cast<std::size_t>(view.rowBytes)));
            }
        }
    }

    void checkBlocks(const GgufTensor& tensor, std::span<const std::uint8_t> blocks, std::int64_t first) const {
        if (const auto block = damagedGgufBlock(*tensor.type, blocks)) {
            throw base::BadInput(fmt::format("{}: {}: the scale of block {} is not a number; the file is damaged",
                                             path(), quotedText(tensor.name), first / tensor.type->bytes + *block));
        }
    }

    void makeRow(const GgufView& view, std::span<const std::uint8_t> blocks, std::span<std::uint8_t> out) const {
        if (view.packed) {
            unpackGguf(view.type(), view.field, blocks, out);
        } else if (view.entry.dtype == view.type().floats) {
            std::ranges::copy(blocks, out.begin());
        } else {
            std::vector<float> values(static_cast<std::size_t>(view.rowElements));
            expandGguf(view.type(), blocks, values.data());
            kernels::storeFloats(view.entry.dtype, values.data(), view.rowElements, out.data(), 0);
        }
    }

    std::shared_ptr<const GgufFile> file_;
    std::vector<GgufView> views_;
};

class GgufCheckpoint final : public TensorTable {
public:
    GgufCheckpoint(const std::shared_ptr<const GgufFile>& file, std::vector<GgufView> views)
        : TensorTable(file->path()), file_(file, std::move(views)) {
        for (const TensorEntry& entry : file_.tensors()) {
            add(file_, entry);
        }
    }

private:
    GgufTensorFile file_;
};

/// Makes the views of all tensors of a model.
class ViewBuilder {
public:
    ViewBuilder(const GgufHeader& header, const ModelConfig& config) : header_(header), config_(config) {}

    std::vector<GgufView> build() {
        std::unordered_map<std::string, Dims> packable;
        for (PackableWeight& weight : packableWeights(config_)) {
            packable.emplace(std::move(weight.name), std::move(weight.shape));
        }
        for (const TensorSpec& spec : expectedTensors(config_)) {
            const auto weight = packable.find(spec.name);
            add(spec, weight == packable.end() ? nullptr : &weight->second);
        }
        checkUnused();
        return std::move(views_);
    }

private:
    /// `weight`: the shape (..., out, in) of a weight that may be packed.
    void add(const TensorSpec& spec, const Dims* weight) {
        const GgufPlace place = ggufPlaceOf(spec.name, config_);
        const Dims& shape = weight == nullptr ? spec.shape : *weight;
        GgufView view;
        view.sources.push_back(&tensorOf(place.tensor, sourceShape(shape, place, weight != nullptr)));
        if (!place.interleaved.empty()) {
            view.sources.push_back(&tensorOf(place.interleaved, sourceShape(shape, place, weight != nullptr)));
            if (view.sources[0]->type != view.sources[1]->type) {
                header_.unsupported(place.interleaved, fmt::format("is {} and {} is {}; both must have one type",
                                                                   view.sources[1]->type->name, place.tensor,
                                                                   view.sources[0]->type->name));
            }
        }
        const GgufType& type = view.type();
        const bool moves = !place.interleaved.empty() || place.neighbours;
        const bool singles = moves && weight == nullptr; // elements move, not rows
        if (singles && type.elements != 1) {
            header_.unsupported(place.tensor, fmt::format("is {}; vectors must be floats", type.name));
        }
        view.rowElements = singles ? 1 : shape.back();
        view.rows = kernels::Shape(shape).count() / view.rowElements;
        view.sourceRow = view.rowElements / type.elements * type.bytes;
        view.headRows = place.neighbours ? config_.headDim : 0;
        if (place.expert >= 0) {
            view.firstRow = place.expert * shape[0];
        }
        if (weight != nullptr && spec.part != ModelPart::Router && type.format != kernels::WeightFormat::Dense) {
            addPacked(view, spec.name, shape);
            return;
        }
        if (weight != nullptr && shape.size() == 3) { // dense, these lie the other way in memory
            header_.unsupported(
                place.tensor, fmt::format("is {}; the experts of this model must be of a type with blocks", type.name));
        }
        const bool table = spec.part == ModelPart::Embedding || spec.part == ModelPart::Head;
        const DType expanded = table ? DType::F16 : DType::F32;
        finish(view, spec.name, type.floats == DType::None ? expanded : type.floats, shape);
    }

    void addPacked(const GgufView& view, const std::string& name, const Dims& shape) {
        for (const StoredTensor& stored : storedTensors(ggufPacking(view.type()), name, shape)) {
            GgufView field = view;
            field.packed = true;
            field.field = stored.field;
            finish(field, stored.name, stored.dtype, stored.shape);
        }
    }

    /// Adds a view, of which only the entry and what follows from it are missing.
    void finish(GgufView view, const std::string& name, DType dtype, const Dims& shape) {
        view.entry.name = name;
        view.entry.dtype = dtype;
        view.entry.shape = shape;
        view.entry.offset = view.sources.front()->offset;
        view.entry.bytes = kernels::bytesOf(dtype, kernels::Shape(shape).count());
        view.rowBytes = static_cast<std::int64_t>(view.entry.bytes) / view.rows;
        views_.push_back(std::move(view));
    }

    Dims sourceShape(Dims shape, const GgufPlace& place, bool weight) const {
        if (!place.interleaved.empty()) {
            shape[shape.size() - (weight ? 2 : 1)] /= 2;
        }
        if (place.expert >= 0) {
            shape.insert(shape.begin(), config_.experts);
        }
        return shape;
    }

    const GgufTensor& tensorOf(const std::string& name, const Dims& shape) {
        const GgufTensor* tensor = header_.tensor(name);
        if (tensor == nullptr) {
            header_.bad(name, fmt::format("is missing; the model that the metadata describe needs it with shape ({})",
                                          fmt::join(shape, ", ")));
        }
        if (!std::ranges::equal(tensor->shape(), shape)) {
            header_.bad(name, fmt::format("has shape ({}), but the metadata need ({})",
                                          fmt::join(tensor->shape(), ", "), fmt::join(shape, ", ")));
        }
        if (!tensor->type->supported()) {
            header_.unsupported(
                name, fmt::format("is {}, which is not supported; {} are", tensor->type->name, ggufTypeNames()));
        }
        used_.insert(tensor);
        return *tensor;
    }

    /// A tensor that nothing uses would have changed the numbers, except the heads of other tasks. The frequencies are
    /// part of the config.
    void checkUnused() const {
        std::string named;
        for (const GgufTensor& tensor : header_.tensors()) {
            if (used_.contains(&tensor) || tensor.name == "rope_freqs.weight") {
                continue;
            }
            if (!tensor.name.starts_with("cls.") && !tensor.name.starts_with("dense_")) {
                header_.unsupported(quotedText(tensor.name),
                                    "is not used by the model that the metadata describe, so its numbers would differ");
            }
            named += (named.empty() ? "" : ", ") + quotedText(tensor.name);
        }
        if (!named.empty()) {
            base::log(base::LogLevel::Warning,
                      fmt::format("{}: tensors of another task are not used: {}", header_.file(), named));
        }
    }

    const GgufHeader& header_;
    const ModelConfig& config_;
    std::vector<GgufView> views_;
    std::set<const GgufTensor*> used_;
};

} // namespace

std::shared_ptr<const Checkpoint> openGgufCheckpoint(const std::shared_ptr<const GgufFile>& file,
                                                     const ModelConfig& config) {
    return std::make_shared<const GgufCheckpoint>(file, ViewBuilder(file->header(), config).build());
}

} // namespace vitrine::engine
