// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/parallel/stored_slice.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "engine/quant/storage_scheme.h"

namespace vitrine::engine {

namespace {

/// The tensor of that field for a weight of `shape`; nothing: the scheme cannot hold the shape.
std::optional<StoredTensor> storedFor(const TensorSpec& spec, const std::vector<std::int64_t>& shape) {
    try {
        for (StoredTensor& tensor : storedTensors(spec.packing, spec.weight, shape)) {
            if (tensor.field == spec.stored.field && tensor.name == spec.stored.name) {
                return std::move(tensor);
            }
        }
    } catch (const base::Unsupported&) {
        return std::nullopt;
    }
    return std::nullopt;
}

/// The shape of the tensor in the file. bitsandbytes stores a matrix as one row of bytes, which is seen with the
/// outputs as a dimension of its own; nothing where a byte belongs to several of them.
std::optional<std::vector<std::int64_t>> fileShape(const WeightPacking& packing, const StoredTensor& stored,
                                                   std::int64_t outputs) {
    if (packing.scheme != StorageScheme::BitsAndBytes) {
        return stored.shape;
    }
    const std::int64_t count =
        std::accumulate(stored.shape.begin(), stored.shape.end(), std::int64_t{1}, std::multiplies<>());
    if (count % outputs != 0) {
        return count == 1 ? std::optional(stored.shape) : std::nullopt;
    }
    return std::vector<std::int64_t>{outputs, count / outputs};
}

/// The part of one dimension of the file for `slice` of `total` elements of the weight; nothing: it cuts through what
/// is stored together.
std::optional<DimSlice> scaled(const DimSlice& slice, std::int64_t total, std::int64_t stored, std::int64_t part) {
    const std::int64_t block = total / slice.blocks, storedBlock = stored / slice.blocks;
    const std::int64_t partBlock = part / slice.blocks;
    if (stored % slice.blocks != 0 || part % slice.blocks != 0 || storedBlock == 0) {
        return std::nullopt;
    }
    if (storedBlock >= block) { // several bytes for each element
        const std::int64_t each = storedBlock / block;
        const bool exact = storedBlock % block == 0 && partBlock == slice.count * each;
        return exact ? std::optional(DimSlice{slice.begin * each, partBlock, slice.blocks}) : std::nullopt;
    }
    const std::int64_t unit = (block + storedBlock - 1) / storedBlock;
    const bool aligned = slice.begin % unit == 0 && (slice.count % unit == 0 || slice.begin + slice.count == block);
    const bool within = slice.begin % unit + slice.count <= unit;
    if (!(aligned || within) || partBlock != (slice.count + unit - 1) / unit) {
        return std::nullopt;
    }
    return DimSlice{slice.begin / unit, partBlock, slice.blocks};
}

/// Which dimensions of the file and of memory grow with an axis of the weight, seen at the smallest cut that the scheme
/// can hold. One that holds a single group for any length counts as none.
struct Dependents {
    std::vector<bool> file, memory;
};

std::vector<bool> differing(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
    std::vector<bool> out(a.size(), false);
    for (std::size_t dim = 0; dim < a.size() && dim < b.size(); ++dim) {
        out[dim] = a[dim] != b[dim];
    }
    return out;
}

Dependents dependentsOf(const TensorSpec& whole, std::size_t axis, const std::vector<std::int64_t>& file) {
    const std::vector<std::int64_t> shape = dimsOf(whole.weightShape);
    for (std::int64_t size = 1; size < shape[axis]; size *= 2) {
        std::vector<std::int64_t> cut = shape;
        cut[axis] = size;
        const std::optional<StoredTensor> small = storedFor(whole, cut);
        const auto to = small ? fileShape(whole.packing, *small, cut[cut.size() - 2]) : std::nullopt;
        if (to && to->size() == file.size()) {
            return {differing(file, *to), differing(dimsOf(whole.stored.memoryShape), dimsOf(small->memoryShape))};
        }
    }
    return {std::vector<bool>(file.size(), false),
            std::vector<bool>(static_cast<std::size_t>(whole.stored.memoryShape.rank()), false)};
}

/// Cuts the dimensions of `part` that go with the axis; false: it cuts through what is stored together.
bool cutAlike(const DimSlice& slice, std::int64_t total, const std::vector<std::int64_t>& to,
              const std::vector<bool>& dependents, TensorPart& part) {
    if (to.size() != part.shape.size()) {
        return false;
    }
    for (std::size_t dim = 0; dim < to.size(); ++dim) {
        if (!dependents[dim]) {
            continue;
        }
        const auto stored = scaled(slice, total, part.shape[dim], to[dim]);
        if (!stored) {
            return false;
        }
        part.slice[dim] = *stored;
    }
    return true;
}

} // namespace

std::vector<std::int64_t> dimsOf(const kernels::Shape& shape) {
    return {shape.dims().begin(), shape.dims().end()};
}

std::optional<StoredPart> storedPart(const TensorSpec& whole, const TensorSlice& weight) {
    const std::vector<std::int64_t> shape = dimsOf(whole.weightShape);
    const std::size_t outputs = shape.size() - 2;
    std::vector<std::int64_t> cut = shape;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        cut[axis] = weight[axis].size();
    }
    if (whole.packing.ordered && cut.back() != shape.back()) {
        return std::nullopt; // its inputs may be of any group
    }
    const std::optional<StoredTensor> part = storedFor(whole, cut);
    const auto from = fileShape(whole.packing, whole.stored, shape[outputs]);
    if (!part || !from) {
        return std::nullopt;
    }
    const std::vector<std::int64_t> memory = dimsOf(whole.stored.memoryShape);
    StoredPart out{whole, {*from, wholeSlice(*from)}, {memory, wholeSlice(memory)}};
    out.spec.stored = *part;
    out.spec.shape = part->shape;
    out.spec.weightShape = kernels::Shape(cut);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (cut[axis] == shape[axis]) {
            continue;
        }
        const Dependents dependents = dependentsOf(whole, axis, *from);
        std::vector<std::int64_t> one = shape;
        one[axis] = cut[axis];
        const std::optional<StoredTensor> alone = storedFor(whole, one);
        const auto to = alone ? fileShape(whole.packing, *alone, one[outputs]) : std::nullopt;
        if (!to || !cutAlike(weight[axis], shape[axis], *to, dependents.file, out.part) ||
            !cutAlike(weight[axis], shape[axis], dimsOf(alone->memoryShape), dependents.memory, out.memory)) {
            return std::nullopt;
        }
    }
    return out;
}

std::int64_t storedUnit(const TensorSpec& whole, int axis) {
    const std::vector<std::int64_t> shape = dimsOf(whole.weightShape);
    const std::int64_t total = shape[static_cast<std::size_t>(axis)];
    for (std::int64_t unit = 1; unit < total && total % unit == 0; unit *= 2) {
        TensorSlice slice = wholeSlice(shape);
        // From the second unit to the end: a shorter one may lie within what is stored together.
        slice[static_cast<std::size_t>(axis)] = {unit, total - unit, 1};
        if (storedPart(whole, slice)) {
            return unit;
        }
    }
    return total;
}

} // namespace vitrine::engine
