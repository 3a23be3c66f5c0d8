// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/workload/convert/weight_reader.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/error.h"
#include "engine/checkpoint/single_expert.h"
#include "engine/model/weight_packing.h"
#include "engine/training/parameters/host_floats.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {
namespace {

using kernels::DType;
using kernels::WeightField;

std::vector<std::uint8_t>& fieldOf(PackedValues& packed, WeightField which) {
    return const_cast<std::vector<std::uint8_t>&>(packed.field(which)); // of a value that is not const
}

} // namespace

MatrixSize matrixOf(const PackableWeight& weight) {
    return {weight.shape[weight.shape.size() - 2], weight.shape.back()};
}

std::int64_t matricesOf(const PackableWeight& weight) {
    return weight.shape.size() == 3 ? weight.shape[0] : 1;
}

WeightReader::WeightReader(const ModelSource& source, base::ThreadPool& pool) : source_(source), pool_(pool) {}

bool WeightReader::storesAsIs(const std::string& name) const {
    return source_.config.packing(name) == nullptr && findModelTensor(*source_.checkpoint, name) != nullptr;
}

const Checkpoint::Location& WeightReader::location(const std::string& name) const {
    const Checkpoint::Location* found = findModelTensor(*source_.checkpoint, name);
    if (found == nullptr) {
        throw base::Internal(fmt::format("convert: the files have no tensor {}", name));
    }
    return *found;
}

DType WeightReader::typeOf(const std::string& name) const {
    if (source_.config.packing(name) != nullptr) {
        return DType::BF16;
    }
    const Checkpoint::Location* own = findModelTensor(*source_.checkpoint, name);
    return (own == nullptr ? location(SingleExpert(name).parameter) : *own).entry->dtype;
}

std::uint64_t WeightReader::storedBytes(const PackableWeight& weight) const {
    const WeightPacking* packing = source_.config.packing(weight.name);
    if (packing == nullptr) {
        const DensePlace place = densePlace(weight, 0);
        return kernels::bytesOf(place.location->entry->dtype, place.count * matricesOf(weight));
    }
    std::uint64_t bytes = 0;
    for (const StoredTensor& tensor : storedTensors(*packing, weight.name, weight.shape)) {
        bytes += location(tensor.name).entry->bytes;
    }
    return bytes;
}

std::vector<float> WeightReader::matrix(const PackableWeight& weight, std::int64_t expert) {
    const WeightPacking* packing = source_.config.packing(weight.name);
    return packing == nullptr ? dense(weight, expert) : unpacked(*packing, weight, expert);
}

WeightReader::DensePlace WeightReader::densePlace(const PackableWeight& weight, std::int64_t expert) const {
    const std::int64_t count = matrixOf(weight).count();
    DensePlace place{findModelTensor(*source_.checkpoint, weight.name), expert * count, count};
    place.transposed = weight.shape.size() == 3; // dense stacks that may be packed are those of x @ W
    if (place.location == nullptr) {
        // The files have the expert in a stack.
        const SingleExpert single(weight.name);
        place.location = &location(single.parameter);
        place.first = single.place() * count;
    }
    return place;
}

std::vector<float> WeightReader::dense(const PackableWeight& weight, std::int64_t expert) {
    const DensePlace place = densePlace(weight, expert);
    const DType dtype = place.location->entry->dtype;
    std::vector<std::byte> bytes(kernels::bytesOf(dtype, place.count));
    readParallel(pool_, *place.location, kernels::bytesOf(dtype, place.first), bytes);
    std::vector<float> values(static_cast<std::size_t>(place.count));
    pool_.parallelFor(place.count, std::int64_t{1} << 16, [&](std::int64_t begin, std::int64_t end, int) {
        kernels::loadFloats(dtype, bytes.data(), begin, end - begin, values.data() + begin);
    });
    return place.transposed ? transposedMatrix(values, matrixOf(weight).in, matrixOf(weight).out) : values;
}

std::vector<std::uint8_t> WeightReader::inMemory(const WeightPacking& packing, const StoredTensor& tensor,
                                                 const PackableWeight& weight, std::int64_t expert, DType& dtype) {
    const Checkpoint::Location& place = location(tensor.name);
    const std::uint64_t bytes = place.entry->bytes / static_cast<std::uint64_t>(matricesOf(weight));
    dtype = tensor.memoryType == DType::None ? place.entry->dtype : tensor.memoryType;
    std::vector<std::uint8_t> stored(bytes);
    readParallel(pool_, place, static_cast<std::uint64_t>(expert) * bytes, std::as_writable_bytes(std::span(stored)));
    if (tensor.converts) {
        std::vector<std::uint8_t> memory(kernels::bytesOf(dtype, tensor.memoryShape.count()));
        toMemory(packing, tensor, stored, memory);
        stored = std::move(memory);
    }
    const auto name = [&] { return fmt::format("{}: {}", place.file->path(), tensor.name); };
    checkStoredBytes(packing, tensor.field, dtype, stored, name, 0);
    checkStoredOrder(packing, tensor.field, matrixOf(weight).in, stored, name, 0);
    return stored;
}

std::vector<float> WeightReader::unpacked(const WeightPacking& packing, const PackableWeight& weight,
                                          std::int64_t expert) {
    const MatrixSize size = matrixOf(weight);
    PackedValues packed;
    packed.scaleOffset = packing.scaleOffset;
    for (const StoredTensor& tensor :
         storedTensors(packing, weight.name, std::vector<std::int64_t>{size.out, size.in})) {
        DType dtype = DType::None;
        fieldOf(packed, tensor.field) = inMemory(packing, tensor, weight, expert, dtype);
        if (tensor.field == WeightField::Scales) {
            packed.scaleType = dtype;
        }
    }
    std::vector<float> values(static_cast<std::size_t>(size.count()));
    expandMatrix(viewOf(packing, size, packed), values, pool_);
    return values;
}

} // namespace vitrine::engine
