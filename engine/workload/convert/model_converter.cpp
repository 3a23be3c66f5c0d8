// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/convert/model_converter.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <utility>

#include "base/error.h"
#include "engine/checkpoint/atomic_file.h"
#include "engine/model/weight_packing.h"
#include "engine/quant/compensated_rounding.h"
#include "engine/training/parameters/host_floats.h"
#include "engine/workload/convert/conversion_plan.h"
#include "engine/workload/convert/weight_reader.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {
namespace {

namespace fs = std::filesystem;
using kernels::DType;
using kernels::WeightField;

constexpr std::int64_t kCopiedElements = std::int64_t{16} << 20; ///< that are in host memory at a time

/// Removes the files of a conversion that did not come to its end, and the folder when nothing else is in it.
class UnfinishedFolder {
public:
    explicit UnfinishedFolder(std::string folder) : folder_(std::move(folder)) {}
    ~UnfinishedFolder() {
        std::error_code ignored;
        for (const std::string& file : files_) {
            fs::remove(fs::path(folder_) / file, ignored);
        }
        if (!finished_) {
            fs::remove(folder_, ignored); // fails when it is not empty, as it should
        }
    }
    UnfinishedFolder(const UnfinishedFolder&) = delete; // removes files once
    UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

    void add(const std::string& file) { files_.push_back(file); }
    std::vector<std::string> finish() {
        finished_ = true;
        return std::exchange(files_, {});
    }

private:
    std::string folder_;
    std::vector<std::string> files_;
    bool finished_ = false;
};

class ModelConverter {
public:
    ModelConverter(const ModelSource& source, const ConversionRules& rules, base::ThreadPool& pool,
                   base::ProgressSink* progress, base::StopToken stop)
        : source_(source), plan_(planConversion(source, rules)),
          symmetric_(rules.quantization && rules.quantization->symmetric), factorOf_(rules.factorOf), pool_(pool),
          progress_(progress), stop_(std::move(stop)), reader_(source, pool) {
        for (const PackableWeight& weight : packableWeights(plan_.config)) {
            weights_[weight.name] = weight;
        }
    }

    ConvertedModel write(const std::string& folder, std::uint64_t shardBytes) {
        std::vector<TensorSpec> specs = tensors();
        const std::vector<Shard> shards = planShards(std::move(specs), shardBytes);
        for (const Shard& shard : shards) {
            total_ += shard.bytes;
        }
        makeModelFolder(folder, total_);
        UnfinishedFolder unfinished(folder);
        for (const Shard& shard : shards) {
            unfinished.add(shard.file);
            writeShard(shard, folder);
        }
        const auto text = [&](const std::string& name, const std::string& content) {
            unfinished.add(name);
            writeTextFile((fs::path(folder) / name).string(), content);
        };
        if (shards.size() > 1) {
            text(kIndexFile, indexText(shards));
        }
        for (const std::string& name : copySmallFiles(source_.folder, folder)) {
            unfinished.add(name);
        }
        base::throwIfStopped(stop_);
        text("config.json", plan_.configText);
        out_.files = unfinished.finish();
        for (const std::string& file : out_.files) {
            std::error_code error;
            out_.bytes += fs::file_size(fs::path(folder) / file, error);
        }
        out_.bytesRead = source_.checkpoint->totalBytes();
        return std::move(out_);
    }

private:
    /// All tensors of the files: those that the model needs, and then those beside packed weights.
    std::vector<TensorSpec> tensors() {
        std::vector<TensorSpec> specs = expectedTensors(plan_.config);
        for (TensorSpec& spec : specs) {
            if (!spec.packed()) {
                spec.dtype = typeAfter(spec.name);
            } else if (spec.dtype == DType::BF16) { // which stands for any type of scales
                spec.dtype = scaleType(spec.packing, spec.weight);
            }
        }
        for (const auto& [weight, packing] : plan_.config.packings) {
            for (const SideTensor& side : makeSideTensors(packing, weight, weights_.at(weight).shape)) {
                const auto count = static_cast<std::int64_t>(side.bytes.size() / kernels::bytesOf(side.dtype, 1));
                TensorSpec& spec = specs.emplace_back();
                spec.name = side.name;
                spec.dtype = side.dtype;
                spec.shape = {count};
                sides_[side.name] = weight;
            }
        }
        return specs;
    }

    DType typeAfter(const std::string& name) const {
        const DType before = reader_.typeOf(name);
        return plan_.convertsAll && kernels::isFloat(before) ? DType::BF16 : before;
    }

    DType scaleType(const WeightPacking& packing, const std::string& weight) const {
        return scaleTypeOf(packing, reader_.typeOf(weight));
    }

    void writeShard(const Shard& shard, const std::string& folder) {
        const auto writer =
            SafetensorsWriter::create((fs::path(folder) / shard.file).string(), shard.tensors, {{"format", "pt"}});
        for (const TensorSpec& spec : shard.tensors) {
            base::throwIfStopped(stop_);
            if (progress_ != nullptr) {
                progress_->progress("Converting " + (spec.packed() ? spec.weight : spec.name), done_, total_);
            }
            writeTensor(spec, *writer);
            done_ += bytesOf(spec);
        }
        writer->finish();
    }

    void writeTensor(const TensorSpec& spec, SafetensorsWriter& writer) {
        if (spec.packed()) {
            if (spec.weight != packedName_) {
                beginWeight(spec.weight);
                packedName_ = spec.weight;
                rest_ = {};
                packAll(spec, writer);
            } else {
                writeStored(spec, rest_.field(spec.stored.field), writer);
            }
            out_.weights.back().bytesAfter += bytesOf(spec);
            return;
        }
        if (const auto side = sides_.find(spec.name); side != sides_.end()) {
            writeSide(spec.name, side->second, writer);
            return;
        }
        if (weights_.contains(spec.name)) {
            beginWeight(spec.name).bytesAfter = bytesOf(spec);
        }
        if (reader_.storesAsIs(spec.name)) {
            copyDense(spec, writer);
        } else {
            writeDense(spec, writer);
        }
    }

    ConvertedWeight& beginWeight(const std::string& name) {
        const PackableWeight& weight = weights_.at(name);
        ConvertedWeight& row = out_.weights.emplace_back();
        row.name = name;
        row.shape = weight.shape;
        row.part = weight.part;
        row.bytesBefore = reader_.storedBytes(weight);
        const WeightPacking* before = source_.config.packing(name);
        const WeightPacking* after = plan_.config.packing(name);
        row.before = before == nullptr ? kernels::WeightFormat::Dense : before->format;
        row.after = after == nullptr ? kernels::WeightFormat::Dense : after->format;
        return row;
    }

    /// Packs each matrix of a weight, writes its elements and keeps what belongs to them for the tensors that follow.
    void packAll(const TensorSpec& elements, SafetensorsWriter& writer) {
        const PackableWeight& weight = weights_.at(elements.weight);
        const std::int64_t matrices = weight.shape.size() == 3 ? weight.shape[0] : 1;
        const MatrixSize size{weight.shape[weight.shape.size() - 2], weight.shape.back()};
        for (std::int64_t i = 0; i < matrices; ++i) {
            base::throwIfStopped(stop_);
            const std::vector<float> values = reader_.matrix(weight, i);
            PackedValues packed = packedMatrix(elements, size, values);
            out_.weights.back().error.add(packingError(viewOf(elements.packing, size, packed), values, pool_));
            writeStored(elements, packed.data, writer);
            const auto append = [](std::vector<std::uint8_t>& to, const std::vector<std::uint8_t>& more) {
                to.insert(to.end(), more.begin(), more.end());
            };
            append(rest_.scales, packed.scales);
            append(rest_.zeros, packed.zeros);
            append(rest_.scaleScales, packed.scaleScales);
            plan_.config.packings.at(elements.weight).scaleOffset = packed.scaleOffset;
        }
    }

    PackedValues packedMatrix(const TensorSpec& spec, const MatrixSize& size, const std::vector<float>& values) {
        try {
            const DType dtype = reader_.typeOf(spec.weight);
            const std::vector<float>* factor = factorOf_ ? factorOf_(spec.layer, spec.weight) : nullptr;
            return factor == nullptr ? packMatrix(spec.packing, size, symmetric_, dtype, values, pool_)
                                     : packCompensated(spec.packing, size, symmetric_, dtype, values, *factor, pool_);
        } catch (const base::BadInput& error) {
            throw base::BadInput(fmt::format("{}: {}: {}", source_.name, spec.weight, error.message()));
        }
    }

    void writeStored(const TensorSpec& spec, const std::vector<std::uint8_t>& memory, SafetensorsWriter& writer) {
        if (!spec.stored.converts) {
            writer.write(memory.data(), memory.size());
            return;
        }
        std::vector<std::uint8_t> stored(bytesOf(spec));
        toStored(spec.packing, spec.stored, memory, stored);
        writer.write(stored.data(), stored.size());
    }

    void writeSide(const std::string& name, const std::string& weight, SafetensorsWriter& writer) {
        for (const SideTensor& side :
             makeSideTensors(plan_.config.packings.at(weight), weight, weights_.at(weight).shape)) {
            if (side.name == name) {
                writer.write(side.bytes.data(), side.bytes.size());
            }
        }
    }

    /// A tensor that the files have in this form, perhaps in another float type.
    void copyDense(const TensorSpec& spec, SafetensorsWriter& writer) {
        const Checkpoint::Location& place = reader_.location(spec.name);
        const DType before = place.entry->dtype;
        const std::int64_t count = kernels::Shape(spec.shape).count();
        std::vector<std::byte> bytes;
        for (std::int64_t first = 0; first < count; first += kCopiedElements) {
            base::throwIfStopped(stop_);
            const std::int64_t part = std::min(kCopiedElements, count - first);
            bytes.resize(kernels::bytesOf(before, part));
            readParallel(pool_, place, kernels::bytesOf(before, first), bytes);
            if (before == spec.dtype) {
                writer.write(bytes.data(), bytes.size());
                continue;
            }
            std::vector<float> values(static_cast<std::size_t>(part));
            kernels::loadFloats(before, bytes.data(), 0, part, values.data());
            writeFloats(spec, values, writer);
        }
    }

    /// A dense weight that the files have packed, or in a stack.
    void writeDense(const TensorSpec& spec, SafetensorsWriter& writer) {
        const PackableWeight& weight = weights_.at(spec.name);
        const bool stack = weight.shape.size() == 3;
        for (std::int64_t i = 0; i < (stack ? weight.shape[0] : 1); ++i) {
            base::throwIfStopped(stop_);
            const std::vector<float> values = reader_.matrix(weight, i);
            // Dense stacks that may be packed are stored (experts, in, out).
            writeFloats(spec, stack ? transposedMatrix(values, weight.shape[1], weight.shape[2]) : values, writer);
        }
    }

    void writeFloats(const TensorSpec& spec, std::vector<float> values, SafetensorsWriter& writer) {
        const auto count = static_cast<std::int64_t>(values.size());
        std::vector<std::byte> bytes(kernels::bytesOf(spec.dtype, count));
        kernels::storeFloats(spec.dtype, values.data(), count, bytes.data(), 0);
        writer.write(bytes.data(), bytes.size());
        if (weights_.contains(spec.name)) {
            std::vector<float> rounded(values.size());
            kernels::loadFloats(spec.dtype, bytes.data(), 0, count, rounded.data());
            out_.weights.back().error.add(roundingError(values, rounded));
        }
    }

    const ModelSource& source_;
    ConversionPlan plan_;
    bool symmetric_;
    decltype(ConversionRules::factorOf) factorOf_;
    base::ThreadPool& pool_;
    base::ProgressSink* progress_;
    base::StopToken stop_;
    WeightReader reader_;
    std::map<std::string, PackableWeight> weights_;
    std::map<std::string, std::string> sides_; ///< tensors beside packed weights, with their weights
    std::string packedName_;                   ///< of the weight that was packed last
    PackedValues rest_;                        ///< of it: all but the elements
    std::uint64_t done_ = 0, total_ = 0;
    ConvertedModel out_;
};

} // namespace

ConvertedModel convertModel(const ModelSource& source, const ConversionRules& rules, const std::string& folder,
                            base::ThreadPool& pool, base::ProgressSink* progress, const base::StopToken& stop,
                            std::uint64_t shardBytes) {
    return ModelConverter(source, rules, pool, progress, stop).write(folder, shardBytes);
}

} // namespace vitrine::engine
