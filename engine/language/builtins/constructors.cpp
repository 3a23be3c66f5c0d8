// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// torch's constructors of constant tensors.
#include <cmath>
#include <fmt/format.h>

#include "engine/language/builtins/builtin.h"

namespace vitrine::engine {

namespace {

/// Tensors made inside a program from numbers alone belong to the program; requires_grad asks for gradients.
PyValue made(E& e, C& c, PyTensor* tensor) {
    const auto gradient = c.keyword("requires_grad");
    c.finish();
    tensor->literal = e.evaluation.inProgram;
    tensor->gradient = gradient && tensor->isReal() && e.convert.truth(*gradient);
    return tensor;
}

std::optional<DType> wantedDtype(E& e, C& c) {
    const auto given = c.keyword("dtype");
    return given && !given->isNone() ? std::optional(e.convert.dtype(*given)) : std::nullopt;
}

/// zeros(2, 3), zeros((2, 3)), zeros(size=(2, 3)).
TensorDims sizes(E& e, C& c, std::size_t from) {
    TensorDims dims;
    const auto named = c.keyword("size");
    std::vector<PyValue> items;
    if (named) {
        items = e.containers.iterate(*named);
    } else {
        for (std::size_t i = from; i < c.arguments.size(); ++i) {
            items.push_back(c.required(i, ""));
        }
        if (items.size() == 1 && items[0].as<PySequence>() != nullptr) {
            items = e.containers.iterate(items[0]);
        }
    }
    for (const PyValue item : items) {
        dims.push_back(e.convert.integer(item, "a tensor's size"));
    }
    return dims;
}

PyTensor* filled(E& e, DType dtype, TensorDims dims, const ProgramConstant& value) {
    PyTensor* const tensor = newTensor(e.heap, dtype, std::move(dims));
    assignTensor(*tensor, {nullptr, value});
    return tensor;
}

template <int Value> PyValue constantTensor(E& e, C& c) {
    const DType dtype = wantedDtype(e, c).value_or(DType::F32);
    const TensorDims dims = sizes(e, c, 0);
    return made(e, c, filled(e, dtype, dims, kernels::intConstant(ProgramType::Int64, Value)));
}

/// zeros_like(x), x.new_zeros(...).
template <int Value> PyValue constantLike(E& e, C& c) {
    const PyValue like = c.required(0, "input");
    const DType dtype = wantedDtype(e, c).value_or(e.symbols.dtypeOf(like));
    return made(e, c, filled(e, dtype, dimsOf(like), kernels::intConstant(ProgramType::Int64, Value)));
}
template <int Value> PyValue newConstant(E& e, C& c) {
    const DType dtype = wantedDtype(e, c).value_or(e.symbols.dtypeOf(c.required(0, "self")));
    const TensorDims dims = sizes(e, c, 1);
    return made(e, c, filled(e, dtype, dims, kernels::intConstant(ProgramType::Int64, Value)));
}

PyValue fullOf(E& e, C& c, TensorDims dims, std::size_t at, std::optional<DType> otherwise) {
    const PyValue value = c.required(at, "fill_value");
    const DType natural = isTensorLike(value) || value.isNumber() || value.as<PySlider>() != nullptr
                              ? value.kind() == PyValue::Kind::Float ? DType::F32 : e.symbols.dtypeOf(value)
                              : DType::F32;
    const DType dtype = wantedDtype(e, c).value_or(otherwise.value_or(natural));
    if (value.isSymbol() && dims.empty()) {
        return e.elements.cast(dtype, value);
    }
    const double number = e.convert.real(value, "fill_value");
    return made(e, c,
                filled(e, dtype, std::move(dims),
                       isRealDtype(dtype) ? kernels::floatConstant(number)
                                          : kernels::intConstant(
                                                ProgramType::Int64,
                                                e.convert.integer(e.elements.cast(DType::I64, value), "fill_value"))));
}

PyValue full(E& e, C& c) {
    TensorDims dims;
    const PyValue size = c.required(0, "size");
    for (const PyValue item :
         size.as<PySequence>() != nullptr ? e.containers.iterate(size) : std::vector<PyValue>{size}) {
        dims.push_back(e.convert.integer(item, "a tensor's size"));
    }
    return fullOf(e, c, dims, 1, std::nullopt);
}
PyValue fullLike(E& e, C& c) {
    const PyValue like = c.required(0, "input");
    return fullOf(e, c, dimsOf(like), 1, e.symbols.dtypeOf(like));
}

PyValue arange(E& e, C& c) {
    std::array<PyValue, 3> bounds = {PyValue::integer(0), PyValue::integer(0), PyValue::integer(1)};
    if (c.arguments.size() == 1) {
        bounds[1] = c.required(0, "end");
        bounds[0] = c.keyword("start").value_or(bounds[0]);
    } else {
        bounds[0] = c.optional(0, "start").value_or(bounds[0]);
        bounds[1] = c.required(1, "end");
        bounds[2] = c.optional(2, "step").value_or(bounds[2]);
    }
    bounds[2] = c.keyword("step").value_or(bounds[2]);
    bool whole = true;
    std::array<double, 3> numbers{};
    for (std::size_t i = 0; i < 3; ++i) {
        bounds[i] = e.convert.concrete(bounds[i]);
        const auto* const tensor = bounds[i].as<PyTensor>();
        whole = whole && bounds[i].kind() != PyValue::Kind::Float && !(tensor != nullptr && tensor->isReal());
        numbers[i] = e.convert.real(bounds[i], "a bound of arange()");
    }
    const double count = std::ceil((numbers[1] - numbers[0]) / numbers[2]);
    if (!(count >= 0) || count > static_cast<double>(kMaxElements)) {
        fail(fmt::format("arange() of {} elements; it makes at most {}", count, kMaxElements));
    }
    const DType dtype = wantedDtype(e, c).value_or(whole ? DType::I64 : DType::F32);
    PyTensor* const tensor = newTensor(e.heap, dtype, {static_cast<std::int64_t>(count)});
    for (std::int64_t i = 0; i < tensor->count(); ++i) {
        const double value = numbers[0] + static_cast<double>(i) * numbers[2];
        setElement(*tensor, i, kernels::floatConstant(value));
    }
    return made(e, c, tensor);
}

/// Equal steps; logspace() takes `base` to their power.
template <bool Powers> PyValue linspace(E& e, C& c) {
    const double start = e.convert.real(c.required(0, "start"), "the start");
    const double end = e.convert.real(c.required(1, "end"), "the end");
    const std::int64_t count = e.convert.integer(c.required(2, "steps"), "the number of steps");
    const auto base = Powers ? c.optional(3, "base") : std::nullopt;
    const double root = base ? e.convert.real(*base, "the base") : 10;
    const DType dtype = wantedDtype(e, c).value_or(DType::F32);
    PyTensor* const tensor = newTensor(e.heap, dtype, {count});
    const double step = count > 1 ? (end - start) / static_cast<double>(count - 1) : 0;
    for (std::int64_t i = 0; i < count; ++i) {
        // From both ends, as PyTorch does: the last element is `end` itself.
        const double value =
            i < count / 2 ? start + step * static_cast<double>(i) : end - step * static_cast<double>(count - 1 - i);
        setElement(*tensor, i, kernels::floatConstant(Powers ? std::pow(root, value) : value));
    }
    return made(e, c, tensor);
}

PyValue tensorFrom(E& e, C& c) {
    const PyValue data = c.required(0, "data");
    const std::optional<DType> dtype = wantedDtype(e, c);
    if (data.isSymbol() || data.as<PyRow>() != nullptr || data.as<PyArray>() != nullptr) {
        c.finish();
        return dtype ? e.elements.cast(*dtype, data) : data;
    }
    PyTensor* const source = e.constants.tensorOf(data, dtype);
    if (data.as<PyTensor>() != nullptr) {
        return source;
    }
    return made(e, c, source);
}

template <DType To> PyValue legacyTensor(E& e, C& c) {
    const PyValue data = c.required(0, "data");
    return made(e, c, e.constants.tensorOf(data, To));
}

PyValue eye(E& e, C& c) {
    const std::int64_t rows = e.convert.integer(c.required(0, "n"), "the number of rows");
    const auto given = c.optional(1, "m");
    const std::int64_t columns = given ? e.convert.integer(*given, "the number of columns") : rows;
    PyTensor* const tensor = newTensor(e.heap, wantedDtype(e, c).value_or(DType::F32), {rows, columns});
    for (std::int64_t i = 0; i < std::min(rows, columns); ++i) {
        setElement(*tensor, i * columns + i, kernels::intConstant(ProgramType::Int64, 1));
    }
    return made(e, c, tensor);
}

PyValue random(E&, C&) {
    failNotKnown("random numbers are not supported: they cannot equal PyTorch's; bind the tensor by its name from a "
                 "safetensors file "
                 "(--tensors FILE)");
}

PyValue scalar(E& e, C& c) {
    const PyValue data = c.required(1, "data");
    const DType dtype = wantedDtype(e, c).value_or(e.symbols.dtypeOf(c.required(0, "self")));
    return data.isSymbol() ? e.elements.cast(dtype, data) : made(e, c, e.constants.tensorOf(data, dtype));
}

PyValue parameter(E& e, C& c) {
    const PyValue data = c.required(0, "data");
    PyTensor* const tensor = e.constants.tensor(data);
    tensor->gradient = tensor->isReal();
    return tensor;
}

constexpr std::array kConstructors = std::to_array<BuiltinEntry>({
    {"torch.zeros", constantTensor<0>},
    {"torch.ones", constantTensor<1>},
    {"torch.empty", constantTensor<0>},
    {"torch.zeros_like", constantLike<0>},
    {"torch.ones_like", constantLike<1>},
    {"torch.empty_like", constantLike<0>},
    {"Tensor.new_zeros", newConstant<0>},
    {"Tensor.new_ones", newConstant<1>},
    {"Tensor.new_empty", newConstant<0>},
    {"Tensor.new_tensor", scalar},
    {"Tensor.new_full",
     [](E& e, C& c) {
         const DType dtype = e.symbols.dtypeOf(c.required(0, "self"));
         TensorDims dims;
         for (const PyValue item : e.containers.iterate(c.required(1, "size"))) {
             dims.push_back(e.convert.integer(item, "a tensor's size"));
         }
         return fullOf(e, c, dims, 2, dtype);
     }},
    {"torch.full", full},
    {"torch.full_like", fullLike},
    {"torch.arange", arange},
    {"torch.linspace", linspace<false>},
    {"torch.logspace", linspace<true>},
    {"torch.tensor", tensorFrom},
    {"torch.as_tensor", tensorFrom},
    {"torch.asarray", tensorFrom},
    {"torch.scalar_tensor", tensorFrom},
    {"torch.IntTensor", legacyTensor<DType::I32>},
    {"torch.LongTensor", legacyTensor<DType::I64>},
    {"torch.FloatTensor", legacyTensor<DType::F32>},
    {"torch.BoolTensor", legacyTensor<DType::Bool>},
    {"torch.Tensor", legacyTensor<DType::F32>},
    {"torch.Parameter", parameter},
    {"torch.Buffer", parameter},
    {"torch.eye", eye},
    {"torch.rand", random},
    {"torch.randn", random},
    {"torch.randint", random},
    {"torch.randperm", random},
    {"torch.rand_like", random},
    {"torch.randn_like", random},
    {"torch.normal", random},
    {"torch.bernoulli", random},
    {"torch.multinomial", random},
});

} // namespace

std::span<const BuiltinEntry> constructorBuiltins() {
    return kConstructors;
}

} // namespace vitrine::engine
