// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// torch's reductions, scans and searches. Of symbols only what folds a few of them into one: sum, any, all, min, max,
// dot.
#include <fmt/format.h>

#include "engine/language/builtins/arguments.h"

namespace vitrine::engine {

namespace {

/// Folds an array of symbols along `dim`, or whole.
PyValue foldArray(E& e, PyValue value, std::optional<int> dim, bool keep, ProgramOp op) {
    const PyArray& symbols = *e.symbols.array(value);
    std::int64_t outer = 1;
    std::int64_t along = static_cast<std::int64_t>(symbols.elements.size());
    std::int64_t inner = 1;
    auto* const made = e.heap.make<PyArray>();
    made->narrow = symbols.narrow; // of min and max; sums are wider
    if (keep) {
        made->dims.assign(symbols.dims.size(), 1);
    }
    if (dim && !symbols.dims.empty()) {
        along = symbols.dims[static_cast<std::size_t>(*dim)];
        made->dims = symbols.dims;
        made->dims[static_cast<std::size_t>(*dim)] = 1;
        for (std::size_t d = 0; d < symbols.dims.size(); ++d) {
            (static_cast<int>(d) < *dim ? outer : inner) *= static_cast<int>(d) == *dim ? 1 : symbols.dims[d];
        }
        if (!keep) {
            made->dims.erase(made->dims.begin() + *dim);
        }
    }
    if (along == 0) {
        fail("a reduction of no elements");
    }
    for (std::int64_t i = 0; i < outer * inner; ++i) {
        const std::int64_t base = i / inner * along * inner + i % inner;
        NodeIndex total = symbols.elements[static_cast<std::size_t>(base)];
        for (std::int64_t k = 1; k < along; ++k) {
            total = e.builder.binary(op, total, symbols.elements[static_cast<std::size_t>(base + k * inner)]);
        }
        made->elements.push_back(total);
    }
    return e.symbols.fromArray(made);
}

template <TensorReduction How> PyValue reduction(E& e, C& c) {
    PyValue value = c.required(0, "input");
    const bool picks = How == TensorReduction::Min || How == TensorReduction::Max;
    if (picks && c.arguments.size() > 1 && isTensorLike(c.arguments[1])) {
        const PyValue other = c.required(1, "other");
        c.finish();
        return e.elements.binary(How == TensorReduction::Min ? ProgramOp::Min : ProgramOp::Max, value, other);
    }
    const std::optional<int> dim = dimArgument(e, c, 1, static_cast<int>(dimsOf(value).size()));
    const auto keeps = c.optional(2, "keepdim");
    const auto dtype = c.keyword("dtype");
    c.finish();
    const bool keep = keeps && e.convert.truth(*keeps);
    if (dtype) {
        value = e.elements.cast(e.convert.dtype(*dtype), value);
    }
    if (isSymbolic(e, value)) {
        if (How == TensorReduction::ArgMax || How == TensorReduction::ArgMin || How == TensorReduction::Prod) {
            fail("of values that are known only for each element only sum, mean, any, all, min and max are supported");
        }
        const bool logic = How == TensorReduction::Any || How == TensorReduction::All;
        const bool whole = !isRealDtype(e.symbols.dtypeOf(value));
        value = logic                                  ? e.elements.cast(DType::Bool, value)
                : How == TensorReduction::Sum && whole ? e.elements.cast(DType::I64, value)
                                                       : value;
        const TensorDims dims = dimsOf(value);
        std::int64_t count = 1;
        for (std::size_t d = 0; d < dims.size(); ++d) {
            count *= !dim || static_cast<int>(d) == *dim ? dims[d] : 1;
        }
        const ProgramOp op = How == TensorReduction::Any   ? ProgramOp::Or
                             : How == TensorReduction::All ? ProgramOp::And
                             : How == TensorReduction::Min ? ProgramOp::Min
                             : How == TensorReduction::Max ? ProgramOp::Max
                                                           : ProgramOp::Add;
        const PyValue folded = foldArray(e, value, dim, keep, op);
        return How == TensorReduction::Mean ? e.elements.binary(ProgramOp::Div, folded, PyValue::integer(count))
                                            : folded;
    }
    PyTensor* const made = reduceTensor(e.heap, How, *e.constants.tensor(value), dim, keep);
    if (picks && dim) {
        const TensorReduction where = How == TensorReduction::Min ? TensorReduction::ArgMin : TensorReduction::ArgMax;
        auto* const both = e.heap.tuple({made, reduceTensor(e.heap, where, *e.constants.tensor(value), dim, keep)});
        return both;
    }
    return made;
}

/// amin, amax: no positions.
template <TensorReduction How> PyValue extreme(E& e, C& c) {
    const PyValue made = reduction<How>(e, c);
    const auto* const both = made.as<PySequence>();
    return both != nullptr ? both->items[0] : made;
}

template <TensorScan How> PyValue scan(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const int dim = dimArgument(e, c, 1, tensor.rank()).value_or(0);
    const auto dtype = c.keyword("dtype");
    c.finish();
    PyTensor* const made = scanTensor(e.heap, How, tensor, dim);
    return dtype && !dtype->isNone() ? castTensor(e.heap, *made, e.convert.dtype(*dtype)) : made;
}

PyValue cumulativeMax(E& e, C& c) {
    return e.heap.tuple({scan<TensorScan::Max>(e, c), PyValue()});
}
PyValue cumulativeMin(E& e, C& c) {
    return e.heap.tuple({scan<TensorScan::Min>(e, c), PyValue()});
}

PyValue unique(E& e, C& c, bool sorted) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    static_cast<void>(sorted ? c.keyword("sorted") : std::nullopt);
    const auto flag = [&](std::string_view name) {
        const auto given = c.keyword(name);
        return given && e.convert.truth(*given);
    };
    const bool inverse = flag("return_inverse");
    const bool counts = flag("return_counts");
    c.finish();
    const UniqueTensor made = uniqueTensor(e.heap, tensor, sorted);
    if (!inverse && !counts) {
        return made.values;
    }
    std::vector<PyValue> items = {made.values};
    if (inverse) {
        items.emplace_back(made.inverse);
    }
    if (counts) {
        items.emplace_back(made.counts);
    }
    return e.heap.tuple(std::move(items));
}

/// searchsorted(sorted, values), bucketize(values, sorted).
PyValue search(E& e, C& c, std::size_t sortedAt) {
    const PyTensor& sorted =
        *e.constants.tensor(c.required(sortedAt, sortedAt == 0 ? "sorted_sequence" : "boundaries"));
    const PyValue values = c.required(1 - sortedAt, "input");
    const auto right = c.keyword("right");
    const auto side = c.keyword("side");
    const auto narrow = c.keyword("out_int32");
    c.finish();
    const bool upper = (right && e.convert.truth(*right)) || (side && e.convert.text(*side, "side") == "right");
    const DType dtype = narrow && e.convert.truth(*narrow) ? DType::I32 : DType::I64;
    if (isSymbolic(e, values)) {
        // How many bounds lie below: a sum over the captured bounds.
        C count;
        count.arguments.push_back(upper ? e.elements.binary(ProgramOp::Le, const_cast<PyTensor*>(&sorted), values)
                                        : e.elements.binary(ProgramOp::Lt, const_cast<PyTensor*>(&sorted), values));
        return e.elements.cast(dtype, reduction<TensorReduction::Sum>(e, count));
    }
    return e.elements.cast(dtype, searchSorted(e.heap, sorted, *e.constants.tensorOf(values, std::nullopt), upper));
}

PyValue binCountOf(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const auto least = c.keyword("minlength");
    c.finish();
    return binCount(e.heap, tensor, least ? std::min(e.convert.integer(*least, "minlength"), kMaxElements) : 0);
}

PyValue sort(E& e, C& c, bool positions) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const auto given = c.optional(1, "dim");
    const int dim = wrappedDim(given ? e.convert.integer(*given, "a dimension") : -1, tensor.rank());
    const auto descending = c.keyword("descending");
    static_cast<void>(c.keyword("stable"));
    c.finish();
    const auto [values, order] = sortTensor(e.heap, tensor, dim, descending && e.convert.truth(*descending));
    return positions ? PyValue(order) : PyValue(e.heap.tuple({values, order}));
}

/// The first of a sorted dimension.
PyValue topK(E& e, C& c) {
    const PyTensor& tensor = *e.constants.tensor(c.required(0, "input"));
    const std::int64_t count = e.convert.integer(c.required(1, "k"), "the number of elements");
    const auto given = c.optional(2, "dim");
    const int dim = wrappedDim(given ? e.convert.integer(*given, "a dimension") : -1, tensor.rank());
    const auto largest = c.optional(3, "largest");
    static_cast<void>(c.optional(4, "sorted"));
    c.finish();
    const std::int64_t extent = tensor.rank() == 0 ? 1 : tensor.dims[static_cast<std::size_t>(dim)];
    if (tensor.rank() == 0 || count < 0 || count > extent) {
        fail(fmt::format("topk() of {} of {} elements", count, extent));
    }
    const auto [values, order] = sortTensor(e.heap, tensor, dim, !largest || e.convert.truth(*largest));
    const auto first = [&](PyTensor* all) -> PyValue { return sliceTensor(e.heap, *all, dim, 0, 1, count); };
    return e.heap.tuple({first(values), first(order)});
}

PyValue dot(E& e, C& c) {
    const PyValue products = e.elements.binary(ProgramOp::Mul, c.required(0, "input"), c.required(1, "other"));
    c.finish();
    C sum;
    sum.arguments.push_back(products);
    return reduction<TensorReduction::Sum>(e, sum);
}

/// The Euclidean norm of all elements or along dim.
PyValue norm(E& e, C& c) {
    const PyValue value = c.required(0, "input");
    const bool positional = c.arguments.size() > 1;
    auto order = c.keyword("p");
    order = order ? order : c.keyword("ord");
    order = !order && positional ? std::optional(c.required(1, "p")) : order;
    C squares;
    squares.arguments.push_back(e.elements.binary(ProgramOp::Mul, value, value));
    for (const std::string_view name : {"dim", "keepdim"}) {
        const auto given =
            name == "dim" && c.arguments.size() > 2 ? std::optional(c.required(2, name)) : c.keyword(name);
        if (given) {
            squares.keywords.emplace_back(name, *given);
        }
    }
    c.finish();
    if (order && !order->isNone() && (!order->isNumber() || order->number() != 2)) {
        fail("only the Euclidean norm (p=2) is supported; write sums of abs() or amax() for others");
    }
    return e.elements.unary(ProgramOp::Sqrt, reduction<TensorReduction::Sum>(e, squares));
}

/// Only sums of products of two vectors: "d,d->".
PyValue einsum(E& e, C& c) {
    std::string how = e.convert.text(c.required(0, "equation"), "the equation");
    how.erase(std::remove(how.begin(), how.end(), ' '), how.end());
    const bool isDot =
        how.size() >= 3 && how[1] == ',' && how[0] == how[2] && (how.size() == 3 || how.substr(3) == "->");
    if (!isDot || c.arguments.size() != 3) {
        fail("of einsum only the product of two rows is supported, as einsum(\"d,d->\", a, b)");
    }
    C inner;
    inner.arguments = {c.required(1, "a"), c.required(2, "b")};
    return dot(e, inner);
}

/// a @ b of vectors.
PyValue matrixProduct(E& e, C& c) {
    if (dimsOf(c.required(0, "input")).size() != 1 || dimsOf(c.required(1, "other")).size() != 1) {
        fail("'@' and matmul are supported for two vectors only, as rows of captured tensors; bind the product of "
             "matrices by a safetensors file (--tensors FILE)");
    }
    return dot(e, c);
}

constexpr std::array kReductions = std::to_array<BuiltinEntry>({
    {"torch.sum", reduction<TensorReduction::Sum>},
    {"torch.prod", reduction<TensorReduction::Prod>},
    {"torch.mean", reduction<TensorReduction::Mean>},
    {"torch.min", reduction<TensorReduction::Min>},
    {"torch.max", reduction<TensorReduction::Max>},
    {"torch.amin", extreme<TensorReduction::Min>},
    {"torch.amax", extreme<TensorReduction::Max>},
    {"torch.any", reduction<TensorReduction::Any>},
    {"torch.all", reduction<TensorReduction::All>},
    {"torch.argmin", reduction<TensorReduction::ArgMin>},
    {"torch.argmax", reduction<TensorReduction::ArgMax>},
    {"torch.cumsum", scan<TensorScan::Sum>},
    {"torch.cumprod", scan<TensorScan::Prod>},
    {"torch.cummax", cumulativeMax},
    {"torch.cummin", cumulativeMin},
    {"torch.unique_consecutive", [](E& e, C& c) { return unique(e, c, false); }},
    {"torch.unique", [](E& e, C& c) { return unique(e, c, true); }},
    {"torch.searchsorted", [](E& e, C& c) { return search(e, c, 0); }},
    {"torch.bucketize", [](E& e, C& c) { return search(e, c, 1); }},
    {"torch.bincount", binCountOf},
    {"torch.sort", [](E& e, C& c) { return sort(e, c, false); }},
    {"torch.argsort", [](E& e, C& c) { return sort(e, c, true); }},
    {"torch.topk", topK},
    {"torch.dot", dot},
    {"torch.inner", dot},
    {"torch.vdot", dot},
    {"torch.matmul", matrixProduct},
    {"torch.einsum", einsum},
    {"torch.norm", norm},
    {"torch.linalg.norm", norm},
    {"torch.linalg.vector_norm", norm},
});

} // namespace

std::span<const BuiltinEntry> reductionBuiltins() {
    return kReductions;
}

} // namespace vitrine::engine
