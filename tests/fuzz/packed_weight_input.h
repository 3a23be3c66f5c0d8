// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// One packed weight of a checkpoint as bytes, for the fuzzer and for the test of its seeds. The bytes are a JSON
// object, a NUL and the contents of the tensors, one after the other:
//
//     {"quantization_config": {...}, "shape": [out, in], "tensors": [[".qweight", "I32", [8, 16]], ...]} NUL bytes
//
// The names are what comes after the name of the module. With shape [experts, out, in] the weight is an expert by
// itself, or a stack where the config packs nothing else. Contents that are not there are zeros.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/strict_json.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/safetensors_header.h"
#include "engine/checkpoint/tensor_table.h"
#include "engine/quant/storage_scheme.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine::test {

/// A file of tensors that is in memory.
class MemoryFile final : public SafetensorsFile {
public:
    MemoryFile(SafetensorsHeader header, std::vector<std::uint8_t> bytes, std::uint64_t start)
        : header_(std::move(header)), bytes_(std::move(bytes)), start_(start) {}

    const std::string& path() const override { return name_; }
    const std::vector<TensorEntry>& tensors() const override { return header_.tensors; }
    const TensorEntry* find(std::string_view name) const override {
        const auto found = std::ranges::find(header_.tensors, name, &TensorEntry::name);
        return found == header_.tensors.end() ? nullptr : &*found;
    }
    const std::map<std::string, std::string>& metadata() const override { return header_.metadata; }
    const std::string& identity() const override { return name_; }
    void read(const TensorEntry& entry, std::uint64_t offset, void* out, std::uint64_t bytes) const override {
        if (offset + bytes > entry.bytes) {
            throw std::logic_error("read beyond the end of a tensor");
        }
        if (bytes > 0) {
            std::memcpy(out, bytes_.data() + (entry.offset - start_ + offset), bytes);
        }
    }
    double cachedShare() const override { return 1; }
    const std::byte* readDirect(const TensorEntry& entry, std::uint64_t offset, std::byte* buffer,
                                std::uint64_t bytes) const override {
        read(entry, offset, buffer, bytes);
        return buffer;
    }

private:
    std::string name_ = "packed.safetensors";
    SafetensorsHeader header_;
    std::vector<std::uint8_t> bytes_;
    std::uint64_t start_; ///< of the tensors in the file
};

/// That file, and dense tensors of the right shapes, which nobody reads, for all else that a model has.
class MemoryCheckpoint final : public TensorTable {
public:
    MemoryCheckpoint(std::shared_ptr<const MemoryFile> file, const std::vector<TensorSpec>& model,
                     const std::string& weight)
        : TensorTable("fuzz"), file_(std::move(file)) {
        for (const TensorSpec& spec : model) {
            if (spec.name != weight) {
                dense_.push_back({spec.name, spec.dtype, spec.shape});
            }
        }
        for (const TensorEntry& entry : file_->tensors()) {
            add(*file_, entry);
        }
        for (const TensorEntry& entry : dense_) {
            add(*file_, entry); // what the file has counts
        }
    }

private:
    std::shared_ptr<const MemoryFile> file_;
    std::vector<TensorEntry> dense_;
};

/// What the bytes say, before anything of the weight was looked at.
struct PackedWeightInput {
    nlohmann::json quantization; ///< null: there is none
    std::vector<std::int64_t> shape;
    struct Tensor {
        std::string ending; ///< of its name
        std::string dtype;
        std::vector<std::int64_t> shape;
        std::uint64_t bytes = 0;
    };
    std::vector<Tensor> tensors;
    std::vector<std::uint8_t> contents;
    std::uint64_t fileBytes = 0; ///< of the text and of all tensors
};

inline std::optional<std::vector<std::int64_t>> dimensionsOf(const nlohmann::json& dims) {
    constexpr std::int64_t kLargest = 1 << 16;
    std::vector<std::int64_t> out;
    if (!dims.is_array() || dims.size() > static_cast<std::size_t>(kernels::kMaxRank)) {
        return std::nullopt;
    }
    for (const nlohmann::json& dim : dims) {
        if (!dim.is_number_unsigned() || dim.get<std::uint64_t>() > kLargest) {
            return std::nullopt;
        }
        out.push_back(dim.get<std::int64_t>());
    }
    return out;
}

inline std::optional<PackedWeightInput::Tensor> tensorOf(const nlohmann::json& item, std::uint64_t most) {
    if (!item.is_array() || item.size() != 3 || !item[0].is_string() || !item[1].is_string()) {
        return std::nullopt;
    }
    const auto shape = dimensionsOf(item[2]);
    const auto dtype = kernels::dtypeFromSafetensors(item[1].get<std::string>());
    if (!shape || !dtype) {
        return std::nullopt;
    }
    PackedWeightInput::Tensor out{item[0].get<std::string>(), item[1].get<std::string>(), *shape};
    std::int64_t count = 1;
    for (const std::int64_t dim : out.shape) {
        count *= dim;
        if (static_cast<std::uint64_t>(count) > most) {
            return std::nullopt;
        }
    }
    if (count * kernels::bitsOf(*dtype) % 8 != 0) {
        return std::nullopt;
    }
    out.bytes = kernels::bytesOf(*dtype, count);
    return out.bytes > most ? std::nullopt : std::optional(out);
}

/// Nothing: the bytes are no input at all.
inline std::optional<PackedWeightInput> packedWeightInput(std::span<const std::uint8_t> bytes) {
    constexpr std::uint64_t kMostBytes = 1 << 18; ///< of the tensors
    const auto end = std::ranges::find(bytes, std::uint8_t{0});
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()),
                                static_cast<std::size_t>(end - bytes.begin()));
    nlohmann::json root;
    try {
        root = base::parseStrictJson(text, "fuzz");
    } catch (const base::BadInput&) {
        return std::nullopt;
    }
    if (!root.is_object() || !root.contains("shape") || !root.contains("tensors") || !root["tensors"].is_array()) {
        return std::nullopt;
    }
    PackedWeightInput out;
    out.quantization = root.value("quantization_config", nlohmann::json());
    const auto shape = dimensionsOf(root["shape"]);
    if (!shape || shape->size() < 2 || shape->size() > 3 || std::ranges::count(*shape, 0) > 0 ||
        (shape->size() == 3 && shape->front() > 4)) {
        return std::nullopt;
    }
    out.shape = *shape;
    out.fileBytes = text.size();
    for (const nlohmann::json& item : root["tensors"]) {
        const auto tensor = tensorOf(item, kMostBytes - std::min(kMostBytes, out.fileBytes - text.size()));
        if (!tensor || out.tensors.size() == 16) {
            return std::nullopt;
        }
        out.fileBytes += tensor->bytes;
        out.tensors.push_back(*tensor);
    }
    const auto rest = bytes.subspan(std::min(bytes.size(), text.size() + 1));
    out.contents.assign(rest.begin(), rest.end());
    return out;
}

/// The smallest model that has a weight of that shape.
struct OneWeightModel {
    ModelConfig config;
    std::string weight;

    /// Throws Unsupported and BadInput for a quantization_config that cannot be read.
    OneWeightModel(const nlohmann::json& quantization, const std::vector<std::int64_t>& shape) {
        const bool many = shape.size() == 3;
        if (!quantization.is_null()) {
            config.quantization = parseQuantization(quantization, "config.json");
        }
        const bool stack = many && (!config.quantization || !config.quantization->allLinears);
        config.family = stack ? Family::GptOss : (many ? Family::Qwen3Moe : Family::Llama);
        config.vocab = 2;
        config.heads = config.kvHeads = config.headDim = 1;
        config.tiedEmbeddings = true;
        config.layers = {{0, many}};
        config.hidden = shape[shape.size() - 2];
        config.intermediate = config.moeIntermediate = shape.back();
        config.experts = many ? shape[0] : 0;
        const std::string mlp = "model.layers.0.mlp.";
        weight = mlp + (stack ? "experts.down_proj" : (many ? "experts.0.down_proj.weight" : "down_proj.weight"));
    }
};

inline std::shared_ptr<const MemoryFile> fileOf(const PackedWeightInput& input, const std::string& weight) {
    nlohmann::json header = nlohmann::json::object();
    std::uint64_t end = 0;
    for (const PackedWeightInput::Tensor& tensor : input.tensors) {
        header[std::string(moduleOf(weight)) + tensor.ending] = {
            {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {end, end + tensor.bytes}}};
        end += tensor.bytes;
    }
    const std::string text = header.dump();
    const std::uint64_t start = 8 + text.size();
    std::vector<std::uint8_t> bytes(end);
    std::copy_n(input.contents.begin(), std::min<std::uint64_t>(end, input.contents.size()), bytes.begin());
    return std::make_shared<MemoryFile>(parseSafetensorsHeader(text, start + end, "packed.safetensors"),
                                        std::move(bytes), start);
}

/// One matrix in the form that kernels read.
class UnpackedMatrix {
public:
    UnpackedMatrix(const WeightPacking& packing, const std::string& weight, const std::vector<std::int64_t>& shape,
                   const Checkpoint& checkpoint, std::int64_t expert) {
        const std::vector<std::int64_t> matrix{shape[shape.size() - 2], shape.back()};
        describePacked(packing, kernels::Shape(matrix), matrix[0], view_);
        const std::int64_t parts = shape.size() == 3 && packing.scheme == StorageScheme::GptOss ? shape[0] : 1;
        for (const StoredTensor& tensor : storedTensors(packing, weight, matrix)) {
            const Checkpoint::Location& place = *findModelTensor(checkpoint, tensor.name);
            const std::uint64_t size = place.entry->bytes / static_cast<std::uint64_t>(parts);
            const kernels::DType dtype =
                tensor.memoryType == kernels::DType::None ? place.entry->dtype : tensor.memoryType;
            std::vector<std::uint8_t> bytes(size);
            place.file->read(*place.entry, static_cast<std::uint64_t>(expert) * size, bytes.data(), size);
            if (tensor.converts) {
                std::vector<std::uint8_t> memory(kernels::bytesOf(dtype, tensor.memoryShape.count()));
                toMemory(packing, tensor, bytes, memory);
                bytes = std::move(memory);
            }
            const auto name = [&] { return place.file->path() + ": " + tensor.name; };
            checkStoredBytes(packing, tensor.field, dtype, bytes, name, 0);
            checkStoredOrder(packing, tensor.field, matrix[1], bytes, name, 0);
            bytes_.push_back(std::move(bytes));
            view_.field(tensor.field) = {bytes_.back().data(), dtype, tensor.memoryShape};
        }
    }

    /// Calls visit(value) for all elements, a piece of a row at a time.
    template <class Visit> void forEach(const Visit& visit) const {
        const kernels::PackedMatrix matrix = kernels::packedMatrixOf(view_, 0);
        if (const std::string problem = matrix.format->problem(view_); !problem.empty()) {
            throw std::logic_error("an accepted weight is not right in memory: " + problem);
        }
        constexpr std::int64_t kPiece = 96; // of whole units of every format
        std::vector<float> values(kPiece);
        for (std::int64_t row = 0; row < view_.outFeatures(); ++row) {
            for (std::int64_t begin = 0; begin < view_.inFeatures(); begin += kPiece) {
                const std::int64_t count = std::min(kPiece, view_.inFeatures() - begin);
                matrix.format->expand(matrix, row, begin, count, values.data());
                std::for_each_n(values.begin(), count, visit);
            }
        }
    }

private:
    std::vector<std::vector<std::uint8_t>> bytes_;
    kernels::WeightView view_;
};

/// What came of an input that was read.
struct PackedWeightResult {
    std::optional<WeightPacking> packing; ///< nothing: the weight is dense
    std::int64_t values = 0;
};

/// Reads, checks and expands the weight. Throws BadInput and Unsupported, and std::logic_error for what must not
/// happen.
inline PackedWeightResult readPackedWeight(const PackedWeightInput& input) {
    OneWeightModel model(input.quantization, input.shape);
    const MemoryCheckpoint checkpoint(fileOf(input, model.weight), expectedTensors(model.config), model.weight);
    checkTensors(model.config, checkpoint);
    const WeightPacking* packing = model.config.packing(model.weight);
    PackedWeightResult result;
    if (packing == nullptr) {
        return result;
    }
    result.packing = *packing;
    const bool stack = model.config.family == Family::GptOss;
    for (std::int64_t expert = 0; expert < (stack ? input.shape[0] : 1); ++expert) {
        const UnpackedMatrix matrix(*packing, model.weight, input.shape, checkpoint, expert);
        matrix.forEach([&](float) { ++result.values; });
    }
    return result;
}

} // namespace vitrine::engine::test
