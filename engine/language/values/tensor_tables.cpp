// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// Reductions and the constructors of index tables: what turns document lengths into ids and offsets.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

#include "engine/language/values/tensor.h"

namespace vitrine::engine {

using kernels::DType;
using kernels::ProgramConstant;
using kernels::ProgramOp;
using kernels::ProgramType;

namespace {

/// The tensor as (outer, along, inner) around one dimension; rank 0 counts as one element.
struct Around {
    std::int64_t outer = 1, along = 1, inner = 1;
};

Around around(const PyTensor& tensor, int dim) {
    Around made;
    for (int d = 0; d < tensor.rank(); ++d) {
        const std::int64_t extent = tensor.dims[static_cast<std::size_t>(d)];
        (d < dim ? made.outer : d == dim ? made.along : made.inner) *= extent;
    }
    return made;
}

DType wideDtype(const PyTensor& tensor) {
    return tensor.isReal() ? tensor.dtype : DType::I64;
}

ProgramConstant wide(const ProgramConstant& value) {
    return value.type == ProgramType::Float ? value : kernels::foldCast(ProgramType::Int64, value);
}

bool isBetter(TensorReduction how, const ProgramConstant& value, const ProgramConstant& best) {
    const bool less = how == TensorReduction::Min || how == TensorReduction::ArgMin;
    if (value.type == ProgramType::Float) {
        return less ? value.real < best.real : value.real > best.real;
    }
    return less ? value.integer < best.integer : value.integer > best.integer;
}

DType reducedDtype(TensorReduction how, const PyTensor& tensor) {
    switch (how) {
    case TensorReduction::Sum:
    case TensorReduction::Prod:
        return wideDtype(tensor);
    case TensorReduction::Any:
    case TensorReduction::All:
        return DType::Bool;
    case TensorReduction::ArgMin:
    case TensorReduction::ArgMax:
        return DType::I64;
    case TensorReduction::Mean:
        if (!tensor.isReal()) {
            throw base::BadInput("mean() needs a float tensor; convert it with .float()");
        }
        return tensor.dtype;
    default:
        return tensor.dtype;
    }
}

/// `at` gives the elements along the reduced dimension.
template <class At> ProgramConstant reduced(TensorReduction how, std::int64_t count, const At& at) {
    const bool picks = how == TensorReduction::Min || how == TensorReduction::Max || how == TensorReduction::ArgMin ||
                       how == TensorReduction::ArgMax;
    if (picks) {
        if (count == 0) {
            throw base::BadInput("the smallest or largest of no elements");
        }
        std::int64_t best = 0;
        for (std::int64_t i = 1; i < count; ++i) {
            best = isBetter(how, at(i), at(best)) ? i : best;
        }
        const bool position = how == TensorReduction::ArgMin || how == TensorReduction::ArgMax;
        return position ? kernels::intConstant(ProgramType::Int64, best) : at(best);
    }
    if (how == TensorReduction::Any || how == TensorReduction::All) {
        bool result = how == TensorReduction::All;
        for (std::int64_t i = 0; i < count; ++i) {
            const bool value = at(i).number() != 0;
            result = how == TensorReduction::All ? result && value : result || value;
        }
        return kernels::boolConstant(result);
    }
    ProgramConstant total = kernels::intConstant(ProgramType::Int64, how == TensorReduction::Prod ? 1 : 0);
    for (std::int64_t i = 0; i < count; ++i) {
        const ProgramConstant value = wide(at(i));
        total = kernels::foldCast(value.type, total);
        total = kernels::foldTyped(how == TensorReduction::Prod ? ProgramOp::Mul : ProgramOp::Add, total, value);
    }
    return how == TensorReduction::Mean ? kernels::floatConstant(total.number() / static_cast<double>(count)) : total;
}

} // namespace

PyTensor* reduceTensor(PyHeap& heap, TensorReduction how, const PyTensor& tensor, std::optional<int> dim, bool keep) {
    const std::vector<ProgramConstant> elements = elementsOf(tensor);
    const DType dtype = reducedDtype(how, tensor);
    if (!dim) {
        const auto count = static_cast<std::int64_t>(elements.size());
        PyTensor* const made = scalarTensor(
            heap, dtype, reduced(how, count, [&](std::int64_t i) { return elements[static_cast<std::size_t>(i)]; }));
        made->dims.assign(keep ? tensor.dims.size() : 0, 1);
        made->strides.assign(made->dims.size(), 0);
        made->literal = tensor.literal;
        return made;
    }
    const Around shape = around(tensor, *dim);
    TensorDims dims = tensor.dims;
    if (!dims.empty()) {
        dims[static_cast<std::size_t>(*dim)] = 1;
    }
    PyTensor* made = newTensor(heap, dtype, dims);
    for (std::int64_t outer = 0; outer < shape.outer; ++outer) {
        for (std::int64_t inner = 0; inner < shape.inner; ++inner) {
            const auto at = [&](std::int64_t i) {
                return elements[static_cast<std::size_t>((outer * shape.along + i) * shape.inner + inner)];
            };
            setElement(*made, outer * shape.inner + inner, reduced(how, shape.along, at));
        }
    }
    made->literal = tensor.literal;
    return keep || dims.empty() ? made : squeezeTensor(heap, *made, dim);
}

PyTensor* scanTensor(PyHeap& heap, TensorScan how, const PyTensor& tensor, int dim) {
    const std::vector<ProgramConstant> elements = elementsOf(tensor);
    const bool sums = how == TensorScan::Sum || how == TensorScan::Prod;
    const ProgramOp op = how == TensorScan::Sum    ? ProgramOp::Add
                         : how == TensorScan::Prod ? ProgramOp::Mul
                         : how == TensorScan::Max  ? ProgramOp::Max
                                                   : ProgramOp::Min;
    PyTensor* const made = newTensor(heap, sums ? wideDtype(tensor) : tensor.dtype, tensor.dims);
    made->literal = tensor.literal;
    const Around shape = around(tensor, dim);
    for (std::int64_t outer = 0; outer < shape.outer; ++outer) {
        for (std::int64_t inner = 0; inner < shape.inner; ++inner) {
            ProgramConstant total;
            for (std::int64_t i = 0; i < shape.along; ++i) {
                const std::int64_t at = (outer * shape.along + i) * shape.inner + inner;
                const ProgramConstant value = wide(elements[static_cast<std::size_t>(at)]);
                total = i == 0 ? value : kernels::foldTyped(op, total, value);
                setElement(*made, at, total);
            }
        }
    }
    return made;
}

PyTensor* catTensors(PyHeap& heap, std::span<const PyTensor* const> tensors, int dim) {
    DType dtype = DType::None;
    TensorDims dims;
    bool literal = true;
    for (const PyTensor* const tensor : tensors) {
        dtype = dtype == DType::None ? tensor->dtype : promoted(dtype, tensor->dtype);
        literal = literal && tensor->literal;
        if (tensor->dims == TensorDims{0}) {
            continue; // PyTorch skips empty ones of one dimension
        }
        if (tensor->rank() == 0) {
            throw base::BadInput(
                "tensors of no dimension cannot be joined; give them one with .view(1), or use torch.stack");
        }
        if (dims.empty()) {
            dims = tensor->dims;
            dims.at(static_cast<std::size_t>(dim)) = 0;
        }
        TensorDims other = tensor->dims;
        if (other.size() != dims.size()) {
            throw base::BadInput("tensors of different numbers of dimensions cannot be joined");
        }
        dims[static_cast<std::size_t>(dim)] += other[static_cast<std::size_t>(dim)];
        other[static_cast<std::size_t>(dim)] = dims[static_cast<std::size_t>(dim)];
        if (other != dims) {
            throw base::BadInput("tensors whose other dimensions differ cannot be joined");
        }
    }
    PyTensor* const made =
        newTensor(heap, dtype == DType::None ? DType::F32 : dtype, dims.empty() ? TensorDims{0} : dims);
    made->literal = literal;
    std::int64_t begin = 0;
    for (const PyTensor* const tensor : tensors) {
        if (tensor->dims == TensorDims{0}) {
            continue;
        }
        const std::int64_t extent = tensor->dims[static_cast<std::size_t>(dim)];
        PyTensor* const part = sliceTensor(heap, *made, dim, begin, 1, extent);
        assignTensor(*part, {tensor, {}});
        begin += extent;
    }
    return made;
}

PyTensor* repeatInterleave(PyHeap& heap, const PyTensor& tensor, const PyTensor& repeats, std::optional<int> dim) {
    const PyTensor* const source = dim ? &tensor : reshapeTensor(heap, tensor, {tensor.count()});
    const int along = dim.value_or(0);
    const Around shape = around(*source, along);
    std::vector<std::int64_t> times = integersOf(repeats);
    if (times.size() == 1) {
        times.assign(static_cast<std::size_t>(shape.along), times[0]);
    }
    if (times.size() != static_cast<std::size_t>(shape.along)) {
        throw base::BadInput(fmt::format("{} counts of repetition for {} elements", times.size(), shape.along));
    }
    std::vector<std::int64_t> picked;
    for (std::size_t i = 0; i < times.size(); ++i) {
        if (times[i] < 0 || times[i] > kMaxElements ||
            static_cast<std::int64_t>(picked.size()) + times[i] > kMaxElements) {
            throw base::BadInput(fmt::format("{} repetitions", times[i]));
        }
        picked.insert(picked.end(), static_cast<std::size_t>(times[i]), static_cast<std::int64_t>(i));
    }
    TensorDims dims = source->dims;
    dims.at(static_cast<std::size_t>(along)) = static_cast<std::int64_t>(picked.size());
    PyTensor* const made = newTensor(heap, source->dtype, dims);
    made->literal = tensor.literal && repeats.literal;
    const std::vector<ProgramConstant> elements = elementsOf(*source);
    std::int64_t at = 0;
    for (std::int64_t outer = 0; outer < shape.outer; ++outer) {
        for (const std::int64_t from : picked) {
            for (std::int64_t inner = 0; inner < shape.inner; ++inner) {
                setElement(*made, at++,
                           elements[static_cast<std::size_t>((outer * shape.along + from) * shape.inner + inner)]);
            }
        }
    }
    return made;
}

UniqueTensor uniqueTensor(PyHeap& heap, const PyTensor& tensor, bool sorted) {
    const std::vector<ProgramConstant> elements = elementsOf(tensor);
    std::vector<std::size_t> order(elements.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (sorted) {
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return isBetter(TensorReduction::Min, elements[a], elements[b]);
        });
    }
    std::vector<ProgramConstant> values;
    std::vector<std::int64_t> counts, inverse(elements.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
        const ProgramConstant& value = elements[order[i]];
        if (i == 0 || value.integer != values.back().integer || value.real != values.back().real) {
            values.push_back(value);
            counts.push_back(0);
        }
        ++counts.back();
        inverse[order[i]] = static_cast<std::int64_t>(values.size()) - 1;
    }
    PyTensor* const shaped = fromIntegers(heap, DType::I64, inverse);
    return {fromElements(heap, tensor.dtype, {static_cast<std::int64_t>(values.size())}, values),
            reshapeTensor(heap, *shaped, tensor.dims), fromIntegers(heap, DType::I64, counts)};
}

PyTensor* searchSorted(PyHeap& heap, const PyTensor& sorted, const PyTensor& values, bool right) {
    if (sorted.rank() != 1) {
        throw base::BadInput("searchsorted() and bucketize() need a sorted tensor of one dimension");
    }
    std::vector<double> edges;
    for (const ProgramConstant& edge : elementsOf(sorted)) {
        edges.push_back(edge.number());
    }
    PyTensor* const made = newTensor(heap, DType::I64, values.dims);
    made->literal = sorted.literal && values.literal;
    std::int64_t at = 0;
    for (const ProgramConstant& value : elementsOf(values)) {
        const auto found = right ? std::upper_bound(edges.begin(), edges.end(), value.number())
                                 : std::lower_bound(edges.begin(), edges.end(), value.number());
        setElement(*made, at++, kernels::intConstant(ProgramType::Int64, found - edges.begin()));
    }
    return made;
}

PyTensor* binCount(PyHeap& heap, const PyTensor& tensor, std::int64_t minLength) {
    const std::vector<std::int64_t> values = integersOf(tensor);
    std::int64_t length = std::max<std::int64_t>(minLength, 0);
    for (const std::int64_t value : values) {
        if (value < 0 || value >= kMaxElements) {
            throw base::BadInput(fmt::format("bincount() of {}", value));
        }
        length = std::max(length, value + 1);
    }
    PyTensor* const made = newTensor(heap, DType::I64, {length});
    for (const std::int64_t value : values) {
        ++made->storage->integers[static_cast<std::size_t>(value)];
    }
    return made;
}

std::pair<PyTensor*, PyTensor*> sortTensor(PyHeap& heap, const PyTensor& tensor, int dim, bool descending) {
    const std::vector<ProgramConstant> elements = elementsOf(tensor);
    PyTensor* const values = newTensor(heap, tensor.dtype, tensor.dims);
    PyTensor* const positions = newTensor(heap, DType::I64, tensor.dims);
    const Around shape = around(tensor, dim);
    std::vector<std::int64_t> order(static_cast<std::size_t>(shape.along));
    for (std::int64_t outer = 0; outer < shape.outer; ++outer) {
        for (std::int64_t inner = 0; inner < shape.inner; ++inner) {
            const auto at = [&](std::int64_t i) { return (outer * shape.along + i) * shape.inner + inner; };
            std::iota(order.begin(), order.end(), std::int64_t{0});
            std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
                const ProgramConstant& x = elements[static_cast<std::size_t>(at(a))];
                const ProgramConstant& y = elements[static_cast<std::size_t>(at(b))];
                return isBetter(descending ? TensorReduction::Max : TensorReduction::Min, x, y);
            });
            for (std::int64_t i = 0; i < shape.along; ++i) {
                const std::int64_t from = order[static_cast<std::size_t>(i)];
                setElement(*values, at(i), elements[static_cast<std::size_t>(at(from))]);
                setElement(*positions, at(i), kernels::intConstant(ProgramType::Int64, from));
            }
        }
    }
    return {values, positions};
}

PyTensor* nonzeroTensor(PyHeap& heap, const PyTensor& tensor) {
    std::vector<std::int64_t> found;
    std::int64_t flat = 0, rows = 0;
    for (const ProgramConstant& value : elementsOf(tensor)) {
        if (value.number() != 0) {
            std::int64_t rest = flat;
            found.resize(found.size() + tensor.dims.size());
            for (std::size_t d = tensor.dims.size(); d-- > 0;) {
                found[found.size() - tensor.dims.size() + d] = rest % tensor.dims[d];
                rest /= tensor.dims[d];
            }
            ++rows;
        }
        ++flat;
    }
    return reshapeTensor(heap, *fromIntegers(heap, DType::I64, found), {rows, tensor.rank()});
}

PyTensor* gatherTensor(PyHeap& heap, const PyTensor& tensor, std::span<const PyTensor* const> indices) {
    TensorDims picked;
    for (const PyTensor* const index : indices) {
        picked = broadcastDims(picked, index->dims);
        if (index->isReal() || index->dtype == DType::Bool) {
            throw base::BadInput("an index tensor must hold integers");
        }
    }
    const auto lead = static_cast<std::ptrdiff_t>(indices.size());
    TensorDims dims = picked;
    dims.insert(dims.end(), tensor.dims.begin() + lead, tensor.dims.end());
    PyTensor* const made = newTensor(heap, tensor.dtype, dims);
    made->literal = tensor.literal;
    std::vector<std::vector<std::int64_t>> positions;
    for (const PyTensor* const index : indices) {
        made->literal = made->literal && index->literal;
        positions.push_back(integersOf(*expandTensor(heap, *index, picked)));
    }
    PyTensor* const inner = viewOf(heap, tensor);
    inner->dims.erase(inner->dims.begin(), inner->dims.begin() + lead);
    inner->strides.erase(inner->strides.begin(), inner->strides.begin() + lead);
    inner->offset = 0;
    const std::vector<std::int64_t> within = offsetsOf(*inner);
    const std::size_t rows = positions.empty() ? 0 : positions[0].size();
    std::int64_t at = 0;
    for (std::size_t row = 0; row < rows; ++row) {
        std::int64_t base = tensor.offset;
        for (std::size_t d = 0; d < positions.size(); ++d) {
            const std::int64_t extent = tensor.dims[d];
            const std::int64_t index = positions[d][row];
            if (index < -extent || index >= extent) {
                throw base::BadInput(fmt::format("index {} of a dimension of {} elements", index, extent));
            }
            base += (index < 0 ? index + extent : index) * tensor.strides[d];
        }
        for (const std::int64_t inside : within) {
            setElement(*made, at++, elementAt(tensor, base + inside));
        }
    }
    return made;
}

PyTensor* repeatTensor(PyHeap& heap, const PyTensor& tensor, const TensorDims& times) {
    TensorDims dims = tensor.dims;
    dims.insert(dims.begin(), times.size() > dims.size() ? times.size() - dims.size() : 0, 1);
    if (times.size() < dims.size()) {
        throw base::BadInput("fewer repetitions than dimensions");
    }
    const PyTensor* made = reshapeTensor(heap, tensor, dims);
    for (std::size_t d = 0; d < times.size(); ++d) {
        if (times[d] < 0 || times[d] > kMaxElements) {
            throw base::BadInput(fmt::format("{} repetitions", times[d]));
        }
        heap.charge(times[d]);
        std::vector<const PyTensor*> copies(static_cast<std::size_t>(times[d]), made);
        if (copies.empty()) {
            TensorDims empty = made->dims;
            empty[d] = 0;
            made = newTensor(heap, tensor.dtype, empty);
        } else if (copies.size() > 1) {
            made = catTensors(heap, copies, static_cast<int>(d));
        }
    }
    PyTensor* const out = viewOf(heap, *made);
    out->literal = tensor.literal;
    return out;
}

PyTensor* triangle(PyHeap& heap, const PyTensor& tensor, std::int64_t diagonal, bool upper) {
    if (tensor.rank() < 2) {
        throw base::BadInput("a triangle needs two dimensions");
    }
    PyTensor* const made = castTensor(heap, tensor, tensor.dtype);
    const std::int64_t columns = tensor.dims.back();
    const std::int64_t rows = tensor.dims[tensor.dims.size() - 2];
    for (std::int64_t i = 0; i < made->count(); ++i) {
        const std::int64_t distance = i % columns - i / columns % rows;
        if (upper ? distance < diagonal : distance > diagonal) {
            setElement(*made, i, kernels::intConstant(ProgramType::Int64, 0));
        }
    }
    return made;
}

} // namespace vitrine::engine
